"""``turnkeeper session delete`` of many: by age, by project, dry, and never what runs."""

import asyncio
import contextlib
import os
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

import pytest
from cli_store import Answer, api, command, tk
from served_process import Place
from steps import busy_here
from workshop import Shop

from turnkeeper.app import open_store
from turnkeeper.client import Client
from turnkeeper.mint import Mint
from turnkeeper.model.event import StatusChanged
from turnkeeper.model.session import Session
from turnkeeper.model.status import BUSY
from turnkeeper.model.value import encode
from turnkeeper.testing.server import ScriptedServer
from turnkeeper.workspace.owner import this_process

DAY_MS = 86_400_000


class Ages(NamedTuple):
    """Sessions by when they were last active."""

    ancient: Session
    kept_by_child: Session
    with_child: Session
    child: Session
    archived: Session
    new: Session

    def names(self, found: list[str]) -> list[str]:
        known = {one.id: name for name, one in self._asdict().items()}
        return [known[one] for one in found]


def fill(shop: Shop) -> Ages:
    """Sessions of 100 days ago, of which one has a child that was active today."""
    store = f"sqlite:{shop.data / 'turnkeeper.db'}"
    now = int(time.time() * 1000)

    async def made() -> Ages:
        async with open_store(store, directory=shop.project, mint=Mint.fixed(now - 100 * DAY_MS)) as opened:
            ancient = await opened.create(title="Ancient")
            kept = await opened.create(title="Kept by its child")
            parent = await opened.create(title="With a child")
            child = await opened.create(title="The child", parent_id=parent.id)
            archived = await opened.archive((await opened.create(title="Archived")).id)
        async with open_store(store, directory=shop.project, mint=Mint.fixed(now - DAY_MS, seed=7)) as opened:
            await opened.create(title="Active child", parent_id=kept.id)
            new = await opened.create(title="New")
        return Ages(ancient, kept, parent, child, archived, new)

    return asyncio.run(made())


def delete(shop: Shop, *words: str) -> Answer:
    return tk(shop.data, "session", "delete", *words)


def stored(shop: Shop) -> bytes:
    return encode(api(shop.data, lambda opened: opened.list(roots=False, archived=True)))


def removed(ages: Ages, answer: Answer) -> list[str]:
    assert answer.code == 0, answer.err
    return ages.names([one["id"] for one in answer.json["items"]])


def test_what_is_old_goes_with_its_children_and_what_has_an_active_child_stays(shop: Shop) -> None:
    ages = fill(shop)
    before = stored(shop)
    dry = delete(shop, "--older-than", "30d", "--dry-run", "--json")
    assert (stored(shop), dry.json["dryRun"]) == (before, True)
    done = delete(shop, "--older-than", "30d", "--yes", "--json")
    assert removed(ages, dry) == removed(ages, done) == ["ancient", "child", "with_child", "archived"]
    assert done.json["skipped"] == []
    left = tk(shop.data, "session", "list", "--all", "--json").json["items"]
    assert {one["title"] for one in left} == {"Kept by its child", "Active child", "New"}
    assert tk(shop.data, "doctor").code == 0
    again = delete(shop, "--older-than", "30d", "--yes")
    assert (again.code, again.out, again.err) == (0, "", "No session fits.\n")


def test_a_person_is_told_what_would_go(shop: Shop) -> None:
    ages = fill(shop)
    said = delete(shop, "--older-than", "2w", "--dry-run").out.splitlines()
    assert said[0] == f"Would remove {ages.ancient.id}  Ancient  {shop.project}"
    assert len(said) == 4


def test_a_project_limits_it(shop: Shop, tmp_path: Path) -> None:
    ages = fill(shop)
    other = tmp_path / "elsewhere"
    other.mkdir()
    for words in (["git", "init", "-q"], ["git", "commit", "-q", "--allow-empty", "-m", "x"]):
        who = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a", "GIT_COMMITTER_NAME": "a", "GIT_COMMITTER_EMAIL": "a"}
        subprocess.run(words, cwd=other, check=True, env={**os.environ, **who})
    inside = api(shop.data, lambda opened: opened.create(title="In another project", directory=other))
    done = delete(shop, "--project", str(other), "--yes", "--json").json
    assert [one["id"] for one in done["items"]] == [inside.id]
    assert removed(ages, delete(shop, "--project", str(shop.project), "--older-than", "9w", "--dry-run", "--json"))


def test_a_directory_without_a_repository_stands_for_itself(shop: Shop, tmp_path: Path) -> None:
    """All such directories share the project ``global``."""
    fill(shop)
    other = tmp_path / "elsewhere"
    other.mkdir()
    inside = api(shop.data, lambda opened: opened.create(title="In another directory", directory=other))
    for place, given in ((other, "."), (other, str(other)), (tmp_path, "elsewhere")):
        with contextlib.chdir(place):
            gone = delete(shop, "--project", given, "--dry-run", "--json").json
            listed = tk(shop.data, "session", "list", "--project", given, "--json").json
        assert [one["id"] for answer in (gone, listed) for one in answer["items"]] == [inside.id, inside.id]


def test_with_ids_the_limits_hold_for_these_and_what_does_not_fit_is_named(shop: Shop) -> None:
    ages = fill(shop)
    done = delete(shop, ages.ancient.id, ages.new.id, "--older-than", "30d", "--yes", "--json")
    assert done.code == 1
    assert [one["id"] for one in done.json["items"]] == [ages.ancient.id]
    assert done.json["skipped"] == [{"sessionID": ages.new.id, "reason": "it was active since"}]


def test_a_parent_and_its_child_are_deleted_once(shop: Shop) -> None:
    ages = fill(shop)
    done = delete(shop, ages.child.id, ages.with_child.id, ages.ancient.slug, "--yes", "--json")
    assert removed(ages, done) == ["child", "with_child", "ancient"]


def test_what_a_process_runs_is_skipped_and_named_also_if_it_is_a_child(shop: Shop) -> None:
    ages = fill(shop)
    running = api(shop.data, busy_here)
    busy = StatusChanged(status=BUSY, owner=this_process())
    api(shop.data, lambda opened: opened.store.journal.append(ages.child.id, busy))
    said = delete(shop, running, ages.ancient.id, "--dry-run")
    assert said.code == 1
    assert f"Skipped {running} (At work): process {os.getpid()}" in said.err
    assert shop.process("session", "delete", running, "--yes").returncode == 1
    done = delete(shop, "--project", "global", "--yes", "--json")
    assert done.code == 0
    assert {one["sessionID"] for one in done.json["skipped"]} == {running, ages.with_child.id}
    assert f"process {os.getpid()}" in done.json["skipped"][0]["reason"]
    left = tk(shop.data, "session", "list", "--all", "--json").json["items"]
    assert {one["title"] for one in left} == {"At work", "With a child", "The child"}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ((), "name the sessions to delete"),
        (("--older-than", "soon"), "'soon' is not a duration"),
        (("--older-than", "0d"), "is not a duration"),
        (("--older-than=-3d",), "is not a duration"),
        (("--older-than",), "older-than"),
        (("--dry-run",), "name the sessions to delete"),
    ],
)
def test_a_wrong_command_is_refused_with_2_and_deletes_nothing(shop: Shop, words: tuple[str, ...], why: str) -> None:
    fill(shop)
    before = stored(shop)
    refused = delete(shop, *words, "--yes")
    assert (refused.code, refused.out) == (2, "")
    assert why in refused.err
    assert stored(shop) == before


def test_an_unknown_id_among_others_deletes_nothing(shop: Shop) -> None:
    ages = fill(shop)
    before = stored(shop)
    refused = delete(shop, ages.ancient.id, "ses_nobody_at_all", "--yes")
    assert (refused.code, "there is no session" in refused.err) == (1, True)
    assert delete(shop, "--older-than", "30d").code == 1  # There is no terminal to ask on.
    assert stored(shop) == before


def test_a_person_is_asked_once_for_all(shop: Shop) -> None:
    fill(shop)
    with shop.terminal("session", "delete", "--older-than", "30d") as seat:
        assert "Remove 3 sessions and 1 child for ever? [y/N]" in seat.read_until("[y/N] ")
        seat.types("n\n")
        assert seat.end() == 1
    with shop.terminal("session", "delete", "--older-than", "30d") as seat:
        seat.read_until("[y/N] ")
        seat.types("y\n")
        assert seat.read_until("").count("Removed ") == 4


async def test_on_a_server_the_same_is_deleted(tmp_path: Path) -> None:
    async with ScriptedServer() as provider:
        place = Place(tmp_path, provider)
        place.configure()
        async with place.serving() as (_, http):
            url = str(http.base_url)
            async with Client(url) as client:
                root = await client.create(title="Root")
                await client.create(title="Child", parent_id=root.id)
            words = ("session", "delete", "--project", "global", "--yes", "--json", "--server", url)
            answer = await asyncio.to_thread(tk_served, *words)
    assert [one["title"] for one in answer.json["items"]] == ["Child", "Root"]


def tk_served(*words: str) -> Answer:
    done = subprocess.run(command(*words), capture_output=True, text=True, check=False, timeout=60)
    return Answer(done.returncode, done.stdout, done.stderr)

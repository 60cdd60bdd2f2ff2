"""The commands `snapshot du` and `snapshot gc`."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from cli_store import api
from confined import unprivileged
from workshop import Shop

from turnkeeper.app import Turnkeeper
from turnkeeper.mint import Mint
from turnkeeper.model.config import Config
from turnkeeper.model.event import RevertStaged
from turnkeeper.model.session import Revert
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import Snapshots

DAY_MS = 24 * 3600 * 1000


def captured(shop: Shop, directory: Path, session_id: str, *, days_ago: int = 0) -> str:
    """The tree of a directory's files, captured some days ago."""

    async def capture() -> str | None:
        environ = shop.environ()
        now = Mint().now() - days_ago * DAY_MS
        shadow = await Snapshots(environ, lambda: now).of(await identify(directory, environ=environ), Config())
        return await shadow.capture(session_id) if shadow else None

    tree = anyio.run(capture)
    assert tree is not None
    return tree


@pytest.fixture
def used(shop: Shop) -> Shop:
    """A project with an old snapshot of one session and new ones of another, and a second project."""
    other = shop.home / "other"
    other.mkdir()
    (shop.project / "large").write_bytes(os.urandom(200_000))
    captured(shop, shop.project, "ses_old", days_ago=8)
    (shop.project / "large").unlink()
    captured(shop, shop.project, "ses_new")
    captured(shop, other, "ses_new")
    return shop


def answer(shop: Shop, *words: str) -> dict[str, Any]:
    done = shop.process("snapshot", *words, "--json")
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout)
    return said


def test_du_shows_what_was_captured_before_the_directory_became_another_project(used: Shop) -> None:
    who = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    for words in (("init", "-q"), (*who, "commit", "-q", "--allow-empty", "-m", "first")):
        subprocess.run(["git", *words], cwd=used.project, env=used.environ(), check=True, timeout=60)
    [item] = answer(used, "du")["items"]
    assert (item["projectID"], item["directory"]) == ("global", str(used.project))


def test_du_shows_what_the_snapshots_of_this_project_take(used: Shop) -> None:
    [item] = answer(used, "du")["items"]
    assert item.pop("bytes") > 200_000
    assert item == {"projectID": "global", "directory": str(used.project), "sessions": 2, "snapshots": 2}
    done = used.process("snapshot", "du")
    assert done.stdout.splitlines()[0].split() == ["ON", "DISK", "SNAPSHOTS", "SESSIONS", "DIRECTORY"]
    assert done.stdout.splitlines()[1].split()[2:] == ["2", "2", str(used.project)]


def test_a_repository_without_commits_shows_no_other_directories(used: Shop) -> None:
    subprocess.run(["git", "init", "-q", used.project], check=True)
    assert [item["directory"] for item in answer(used, "du")["items"]] == [str(used.project)]


def test_du_shows_all_projects_with_their_sum(used: Shop) -> None:
    said = answer(used, "du", "--all")
    items = said["items"]
    assert sorted(str(item["directory"]) for item in items) == sorted([str(used.home / "other"), str(used.project)])
    assert said["bytes"] == sum(item["bytes"] for item in items)
    assert used.process("snapshot", "du", "--all").stdout.splitlines()[-1].endswith("in all")


def test_gc_removes_the_snapshots_of_idle_sessions(used: Shop) -> None:
    said = answer(used, "gc")
    [item] = said["items"]
    assert item["directory"] == str(used.project)
    assert item["snapshots"] == 1
    assert said["bytes"] == item["bytesBefore"] - item["bytesAfter"]
    assert item["bytesAfter"] < item["bytesBefore"]
    again = used.process("snapshot", "gc")
    assert f"{used.project}: 0 snapshots removed, " in again.stdout
    assert [one["snapshots"] for one in answer(used, "du")["items"]] == [1]


def test_gc_goes_on_after_a_directory_that_may_not_be_reached(used: Shop) -> None:
    hidden = used.home / "closed/hidden"
    hidden.mkdir(parents=True)
    (hidden / "file").write_text("one\n")
    captured(used, hidden, "ses_new")
    hidden.parent.chmod(0)
    done = unprivileged(lambda: used.process("snapshot", "gc", "--all", "--json"))
    hidden.parent.chmod(0o700)
    found = {str(item["directory"]) for item in json.loads(done.stdout)["items"]}
    assert (done.returncode, found) == (1, {str(used.home / "other"), str(used.project)})
    assert f"Left as they are: the snapshots of {str(hidden)!r} cannot be reached" in " ".join(done.stderr.split())


def test_gc_keeps_the_snapshots_of_a_pending_undo(shop: Shop) -> None:
    async def reverted(tk: Turnkeeper) -> str:
        session = await tk.create(title="Tides")
        await tk.store.journal.append(session.id, RevertStaged(revert=Revert(message_id="msg_1")))
        return session.id

    captured(shop, shop.project, api(shop.data, reverted), days_ago=30)
    assert [one["snapshots"] for one in answer(shop, "gc")["items"]] == [0]


def test_gc_follows_the_configuration_of_the_project(used: Shop) -> None:
    used.configure(snapshot={"retention_days": 30})
    assert [one["snapshots"] for one in answer(used, "gc")["items"]] == [0]
    used.configure(snapshot={"quota_bytes": 0})
    assert [one["snapshots"] for one in answer(used, "gc")["items"]] == [2]


@pytest.mark.parametrize("word", ["du", "gc"])
def test_without_snapshots_there_is_nothing_to_show(shop: Shop, word: str) -> None:
    assert answer(shop, word) == {"bytes": 0, "items": []}
    done = shop.process("snapshot", word)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "There are no snapshots.\n")


def test_a_wrong_setting_is_named(used: Shop) -> None:
    used.configure(snapshot={"quota_bytes": "much"})
    done = used.process("snapshot", "gc")
    assert done.returncode != 0
    assert "snapshot" in done.stderr

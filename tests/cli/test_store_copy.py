"""The command that copies a store: verified, continued after a kill, and nothing else is touched."""

import json
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest
from cli_store import Family, command, environment, fill, process
from stores import store_url

import turnkeeper
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model import event as e
from turnkeeper.sessions.copy_store import copy_store
from turnkeeper.store import keys
from turnkeeper.store.crash import EXIT_CODE
from turnkeeper.store.engine import Engine, Key
from turnkeeper.store.engines import open_engine
from turnkeeper.testing.builders import a_turn, every_event

Dump = tuple[dict[Key, bytes], dict[str, tuple[list[bytes], int]]]

PAIRS = [("sqlite", "postgres"), ("postgres", "files"), ("files", "sqlite"), ("postgres", "postgres")]


async def dump(url: str) -> Dump:
    """Everything that a store has, but for what an engine cannot list: the search index."""
    engine = await open_engine(url)
    try:
        logs = {name: (await engine.read(name), await engine.fence(name)) for name in await engine.logs()}
        documents = dict(await engine.scan(()))
        documents.pop(keys.ADOPTED, None)  # Says of a store of files that it was looked through.
        return documents, logs
    finally:
        await engine.aclose()


async def filled(url: str) -> Family:
    """A store with a family, a session in which every kind of event happened, long texts, and a fence."""
    async with turnkeeper.open(url) as opened:
        family = await fill(opened)
        created, *events = every_event("ses_all")
        assert isinstance(created, e.SessionCreated)
        await opened.store.journal.create(created.session, *events)
        long = a_turn(family.child.id, 7, answer="a long answer " * BLOB_CHARS_MIN)
        await opened.store.journal.append(family.child.id, *long, fence=3)
        return family


@pytest.mark.parametrize(("source", "target"), PAIRS)
async def test_a_copy_has_every_byte_and_is_sound(tmp_path: Path, source: str, target: str) -> None:
    one, two = store_url(source, tmp_path, "one"), store_url(target, tmp_path, "two")
    family = await filled(one)
    before = await dump(one)
    done = process(tmp_path, "store", "copy", one, two, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    counts = {"sessions": 4, "events": sum(len(log) for log, _ in before[1].values()), "continued": 0, "problems": []}
    assert counts.items() <= json.loads(done.stdout).items()
    assert json.loads(done.stdout)["blobs"] > 0
    assert await dump(two) == await dump(one) == before
    async with turnkeeper.open(two) as opened:
        assert [one for one in (await opened.doctor()).problems if one.is_damage] == []
        found = [await opened.search(words) for words in ("gust knots", "long answer", "bay")]
    async with turnkeeper.open(one) as opened:
        assert found == [await opened.search(words) for words in ("gust knots", "long answer", "bay")]
    assert all(found)
    assert family.root.id in before[1]


@pytest.mark.parametrize(("point", "hits"), [("postgres.after-commit", (1, 3, 6)), ("postgres.before-commit", (2, 9))])
async def test_a_copy_that_was_killed_is_continued(tmp_path: Path, point: str, hits: tuple[int, ...]) -> None:
    one, two = store_url("sqlite", tmp_path, "one"), store_url("postgres", tmp_path)
    await filled(one)
    for hit in hits:
        killed = process_with_crash(tmp_path, f"{point}:{hit}", one, two)
        assert killed == EXIT_CODE
    assert ("unfinished copy" in await problems(two), "unfinished copy" in await problems(one)) == (True, False)
    done = process(tmp_path, "store", "copy", one, two)
    assert done.returncode == 0
    assert await dump(two) == await dump(one)
    assert "unfinished copy" not in await problems(two)


@pytest.mark.parametrize("engine", ["sqlite", "files"])
async def test_a_session_that_grows_while_it_is_copied_is_copied_again(tmp_path: Path, engine: str) -> None:
    one, two = store_url("sqlite", tmp_path, "one"), store_url(engine, tmp_path, "two")
    family = await filled(one)
    titles = iter(["Wind over the lake"])

    def write(done: int, total: int) -> None:
        if done == total and (title := next(titles, None)):
            assert process(tmp_path, "--store", one, "session", "rename", family.root.id, title).returncode == 0

    async with turnkeeper.open(one) as source, turnkeeper.open(two) as target:
        done = await copy_store(source.store, target.store, name=one, progress=write)
        assert (await target.get(family.root.id)).title == "Wind over the lake"
    assert (done.sessions, done.problems) == (4, ())
    assert await dump(two) == await dump(one)
    assert await problems(two) == []


async def test_a_copy_that_is_whole_may_be_repeated_until_either_store_is_written(tmp_path: Path) -> None:
    one, two = store_url("sqlite", tmp_path, "one"), store_url("files", tmp_path, "two")
    family = await filled(one)
    assert process(tmp_path, "store", "copy", one, two).returncode == 0
    again = process(tmp_path, "store", "copy", one, two, "--json")
    assert again.returncode == 0
    assert {"sessions": 4, "continued": 4, "events": 0}.items() <= json.loads(again.stdout).items()
    assert await dump(two) == await dump(one)
    assert process(tmp_path, "--store", two, "session", "rename", family.root.id, "Mine").returncode == 0
    used = await dump(two)
    refused = process(tmp_path, "store", "copy", one, two)
    assert (refused.returncode, "not empty" in refused.stderr) == (1, True)
    assert await dump(two) == used


async def problems(url: str) -> list[str]:
    async with turnkeeper.open(url) as opened:
        diagnosis = await opened.doctor()
    assert diagnosis.ok == (not any(one.is_damage for one in diagnosis.problems))
    return [one.kind for one in diagnosis.problems if one.is_damage]


def process_with_crash(data: Path, crash: str, one: str, two: str) -> int:
    words = command("store", "copy", one, two)
    return subprocess.run(words, env=environment(data, TURNKEEPER_CRASH=crash), check=False, timeout=120).returncode


async def test_a_target_with_anything_else_is_refused_and_not_changed(tmp_path: Path) -> None:
    one, two, three = [store_url("sqlite", tmp_path, name) for name in ("one", "two", "three")]
    await filled(one)
    await filled(two)
    before = await dump(two)
    refused = process(tmp_path, "store", "copy", one, two, "--json")
    assert refused.returncode == 1
    assert "not empty" in json.loads(refused.stderr)["error"]["message"]
    assert await dump(two) == before
    assert process_with_crash(tmp_path, "sqlite.after-commit:4", one, three) == EXIT_CODE
    refused = process(tmp_path, "store", "copy", two, three)
    assert refused.returncode == 1
    assert "another copy" in refused.stderr


async def test_a_continued_copy_refuses_another_history_under_the_same_name(tmp_path: Path) -> None:
    one, two = store_url("sqlite", tmp_path, "one"), store_url("sqlite", tmp_path, "two")
    await filled(one)
    assert process_with_crash(tmp_path, "sqlite.after-commit:4", one, two) == EXIT_CODE
    engine = await open_engine(two)
    [name, *_] = await engine.logs()
    entries = await engine.read(name)
    await engine.remove({name: len(entries)}, [])
    await engine.append(name, 0, [b"{}" for _ in entries])
    await engine.aclose()
    refused = process(tmp_path, "store", "copy", one, two)
    assert refused.returncode == 1
    assert "another history in the target" in refused.stderr


async def test_a_damaged_session_is_left_out_and_named(tmp_path: Path) -> None:
    one, two = store_url("sqlite", tmp_path, "one"), store_url("postgres", tmp_path)
    family = await filled(one)
    with closing(sqlite3.connect(tmp_path / "one")) as connection, connection:
        connection.execute("UPDATE entry SET body = replace(CAST(body AS TEXT), 'gust', 'dust')")
    done = process(tmp_path, "store", "copy", one, two, "--json")
    assert done.returncode == 1
    [problem] = json.loads(done.stdout)["problems"]
    assert problem["sessionID"] == family.root.id
    shown = process(tmp_path, "store", "copy", one, store_url("sqlite", tmp_path, "three"))
    assert f"not copied  {family.root.id}" in shown.stdout
    engine: Engine = await open_engine(two)
    assert len(await engine.logs()) == 3
    await engine.aclose()


@pytest.mark.parametrize(
    ("source", "target", "code", "said"),
    [
        ("sqlite:none.db", "files:there", 1, "there is no store"),
        ("memory:", "files:there", 2, "no store that can be copied"),
        ("oracle:x", "files:there", 2, "sqlite:PATH"),
        ("postgresql://ada:s3cret@/x?nonsense=1", "files:there", 2, "cannot be read as an address"),
    ],
)
def test_what_cannot_be_copied_is_refused(tmp_path: Path, source: str, target: str, code: int, said: str) -> None:
    answer = process(tmp_path, "store", "copy", source, target, cwd=tmp_path)
    assert (answer.returncode, answer.stdout) == (code, "")
    assert said in answer.stderr
    assert "s3cret" not in answer.stderr
    assert not (tmp_path / "there").exists()

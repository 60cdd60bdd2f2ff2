"""Killed anywhere, a store keeps what it acknowledged, at most one write more, and is sound.

A child process lives a scripted life (``turnkeeper.testing.session_child``) and dies at a named crash point. With the
same mint the life makes the same store everywhere, so what must be there is the store of a life in memory, document by
document and byte by byte.
"""

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from stores import store_url

from turnkeeper.mint import Mint
from turnkeeper.sessions.diagnosis import Problem
from turnkeeper.sessions.doctor import examine
from turnkeeper.store.crash import EXIT_CODE, POINTS, VARIABLE
from turnkeeper.store.engine import Key
from turnkeeper.store.store import Store
from turnkeeper.testing import session_child
from turnkeeper.workspace.project import identify

TIMEOUT_S = 120
DURABLE = ("sqlite", "files", "postgres")
HOME = Path("/")
"""Where the sessions work: a place that is the same for every process, and no repository."""

Dump = tuple[dict[Key, bytes], dict[str, list[bytes]]]

MATRIX = [(engine, point) for point in POINTS for engine in DURABLE if point.startswith(("journal.", f"{engine}."))]


@contextmanager
def child(role: str, url: str, *arguments: str, crash: str = "") -> "Iterator[subprocess.Popen[str]]":
    """A process that plays a role. It is gone when this is left, whatever happened."""
    command = [sys.executable, "-m", session_child.__name__, role, url, str(HOME), *arguments]
    environment = {**os.environ, **({VARIABLE: crash} if crash else {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            yield process
        finally:
            process.kill()


async def dump(store: Store) -> Dump:
    """Everything a store holds."""
    logs = {name: await store.engine.read(name) for name in await store.engine.logs()}
    return dict(await store.engine.scan(())), logs


@pytest.fixture(scope="session")
def expected() -> list[Dump]:
    """The store before the first step of the life and after each one, made in memory.

    Made in another thread: an asynchronous fixture of the whole run would keep a loop open in this one, and later tests
    that run a loop of their own would fail.
    """
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(anyio.run, whole_life).result()


async def whole_life() -> list[Dump]:
    store = await session_child.open_quiet("memory:", Mint.fixed(step_ms=1))
    found = [await dump(store)]
    for step in session_child.script(store, await identify(HOME)):
        await step()
        found.append(await dump(store))
    return found


async def look(url: str) -> tuple[Dump, list[Problem]]:
    """What a new process finds in the store, and what doctor says of it."""
    store = await session_child.open_quiet(url, Mint())
    try:
        return await dump(store), [one for one in (await examine(store)).problems if one.is_damage]
    finally:
        await store.engine.aclose()


def place(tmp_path: Path, engine: str, number: int) -> str:
    return store_url(engine, tmp_path, f"store{number}")


async def crash_at(url: str, point: str, hit: int) -> int | None:
    """Let a child die at a point: how many steps it acknowledged; None if it never came so far."""
    with child("play", url, crash=f"{point}:{hit}") as process:
        acknowledged, _ = process.communicate(timeout=TIMEOUT_S)
    if process.returncode == 0:
        return None
    assert process.returncode == EXIT_CODE
    return len(acknowledged.split())


@pytest.mark.parametrize(("engine", "point"), MATRIX)
async def test_killed_at_a_crash_point_a_store_holds_every_acknowledged_step(
    tmp_path: Path, expected: list[Dump], engine: str, point: str
) -> None:
    for number, hit in enumerate((1, 6)):
        url = place(tmp_path, engine, number)
        acknowledged = await crash_at(url, point, hit)
        assert acknowledged is not None or hit > 1, f"{point} is never reached"
        if acknowledged is not None:
            await check(url, expected, acknowledged)


@pytest.mark.soak
@pytest.mark.parametrize(("engine", "point"), MATRIX)
async def test_killed_at_every_hit_of_a_crash_point_a_store_holds_every_acknowledged_step(
    tmp_path: Path, expected: list[Dump], engine: str, point: str
) -> None:
    for hit in range(1, 1000):
        url = place(tmp_path, engine, hit)
        acknowledged = await crash_at(url, point, hit)
        if acknowledged is None:
            assert hit > 1, f"{point} is never reached"
            return
        await check(url, expected, acknowledged)


async def check(url: str, expected: list[Dump], acknowledged: int) -> None:
    """The store is as after the last acknowledged step, or one step on; and looking at it changes nothing."""
    found, damage = await look(url)
    assert damage == []
    assert found in expected[acknowledged : acknowledged + 2]
    assert await look(url) == (found, [])


# Killed at any moment, by nobody's choice.


@pytest.mark.parametrize("engine", DURABLE)
@pytest.mark.parametrize("count", [1, 40])
async def test_killed_at_any_moment_a_store_holds_every_acknowledged_write(
    tmp_path: Path, engine: str, count: int
) -> None:
    await kill_after(place(tmp_path, engine, 0), "one", count)


@pytest.mark.soak
@pytest.mark.parametrize("engine", DURABLE)
@pytest.mark.parametrize("seed", range(4))
async def test_killed_again_and_again_a_store_holds_every_acknowledged_write(
    tmp_path: Path, engine: str, seed: int
) -> None:
    moments = random.Random(seed)
    url = place(tmp_path, engine, 0)
    for number in range(6):
        await kill_after(url, f"life{number}", moments.randrange(1, 120))


async def kill_after(url: str, name: str, count: int) -> None:
    """Kill a child once it has acknowledged so many writes, and look for each of them."""
    with child("pour", url, name) as process:
        assert process.stdout is not None
        words = [process.stdout.readline().split() for _ in range(count)]
        process.send_signal(signal.SIGKILL)
        words += [line.split() for line in process.stdout]
    (documents, logs), damage = await look(url)
    assert damage == []
    assert logs["ses_shared"]
    shared = [int(number) for word, number in words if word == "shared"]
    store = await session_child.open_quiet(url, Mint())
    paths = (await store.journal.view("ses_shared")).instructions
    await store.engine.aclose()
    mine = [int(path.partition("/")[2]) for path in paths if path.startswith(f"{name}/")]
    assert mine in (shared, [*shared, len(shared) + 1])
    made = {session_id for word, session_id in words if word == "made"}
    removed = {session_id for word, session_id in words if word == "removed"}
    assert not removed & logs.keys()
    assert not any(name in key for key in documents for name in removed)
    assert len(made - removed - logs.keys()) <= 1  # One may be gone whose removal was not acknowledged yet.


# Two processes at once.


@pytest.mark.parametrize("engine", DURABLE)
async def test_two_processes_write_one_session_and_neither_loses_an_acknowledged_write(
    tmp_path: Path, engine: str
) -> None:
    url, count = place(tmp_path, engine, 0), 25
    with child("share", url, f"one:{count}") as one, child("share", url, f"two:{count}") as two:
        for process in (one, two):
            acknowledged, _ = process.communicate(timeout=TIMEOUT_S)
            assert (process.returncode, len(acknowledged.splitlines())) == (0, count)
    (_, logs), damage = await look(url)
    assert damage == []
    assert [json.loads(entry)["seq"] for entry in logs["ses_shared"]] == list(range(1, len(logs["ses_shared"]) + 1))
    store = await session_child.open_quiet(url, Mint())
    view = await store.journal.view("ses_shared")
    await store.engine.aclose()
    assert view.session.metadata == {"count": 2 * count}
    for name in ("one", "two"):
        mine = [path for path in view.instructions if path.startswith(name)]
        assert mine == [f"{name}/{number}" for number in range(count)]

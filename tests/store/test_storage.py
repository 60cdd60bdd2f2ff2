"""Storage as seed 001 section 5.2 names it: write, read, update, remove and list JSON values under keys."""

import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from turnkeeper.store.storage import Storage, StorageNotFound, open_storage

COUNT = 40
"""How often each process adds one to the same number."""

COUNTING = """
import asyncio, sys
from pathlib import Path
from turnkeeper.store.storage import open_storage

async def main():
    storage = await open_storage(Path(sys.argv[1]))
    for _ in range(int(sys.argv[2])):
        await storage.update(("count",), lambda value: {"n": value["n"] + 1})
    await storage.aclose()

asyncio.run(main())
"""


@pytest.fixture
async def storage(tmp_path: Path) -> AsyncIterator[Storage]:
    opened = await open_storage(tmp_path / "storage")
    yield opened
    await opened.aclose()


async def test_what_is_written_is_read(storage: Storage) -> None:
    session = {"id": "ses_1", "title": "Grüße", "time": {"created": 1}, "summary": None, "cost": 0.25}
    await storage.write(("session", "p", "ses_1"), session)
    assert await storage.read(("session", "p", "ses_1")) == session
    await storage.write(("session", "p", "ses_1"), [1, "two"])
    assert await storage.read(("session", "p", "ses_1")) == [1, "two"]


async def test_reading_what_is_not_there_names_it(storage: Storage) -> None:
    with pytest.raises(StorageNotFound, match="resource not found: session/p/ses_none") as refusal:
        await storage.read(("session", "p", "ses_none"))
    assert refusal.value.key == ("session", "p", "ses_none")


async def test_a_value_is_updated_in_place_or_by_what_the_function_returns(storage: Storage) -> None:
    await storage.write(("a",), {"n": 1})

    def touch(value: dict[str, int]) -> None:
        value["n"] += 1

    assert await storage.update(("a",), touch) == {"n": 2}
    assert await storage.update(("a",), lambda value: {**value, "m": 5}) == {"n": 2, "m": 5}
    assert await storage.read(("a",)) == {"n": 2, "m": 5}


async def test_updating_what_is_not_there_is_refused_and_writes_nothing(storage: Storage) -> None:
    with pytest.raises(StorageNotFound, match="resource not found: a/b"):
        await storage.update(("a", "b"), lambda value: {"n": 1})
    assert await storage.list(()) == []


async def test_an_update_that_raises_changes_nothing(storage: Storage) -> None:
    await storage.write(("a",), {"n": 1})

    def fail(value: dict[str, int]) -> None:
        value["n"] = 99
        raise ZeroDivisionError("my own")

    with pytest.raises(ZeroDivisionError, match="my own"):
        await storage.update(("a",), fail)
    assert await storage.read(("a",)) == {"n": 1}


async def test_removing_is_a_success_even_if_there_was_nothing(storage: Storage) -> None:
    await storage.write(("a", "b"), 1)
    await storage.remove(("a", "b"))
    await storage.remove(("a", "b"))
    with pytest.raises(StorageNotFound):
        await storage.read(("a", "b"))


async def test_a_list_is_sorted_and_holds_what_is_below_its_prefix(storage: Storage) -> None:
    for key in (("m", "b", "2"), ("m", "a", "1"), ("m",), ("m", "a"), ("ma", "1"), ("m", "a", "0")):
        await storage.write(key, 1)
    assert await storage.list(("m",)) == [("m", "a"), ("m", "a", "0"), ("m", "a", "1"), ("m", "b", "2")]
    assert await storage.list(("m", "a")) == [("m", "a", "0"), ("m", "a", "1")]
    assert await storage.list(("none",)) == []


async def test_updates_of_many_tasks_are_all_counted(storage: Storage) -> None:
    await storage.write(("count",), {"n": 0})

    async def count() -> None:
        for _ in range(5):
            await storage.update(("count",), lambda value: {"n": value["n"] + 1})

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(count)
    assert await storage.read(("count",)) == {"n": 40}


async def test_updates_of_several_processes_are_all_counted(tmp_path: Path) -> None:
    storage = await open_storage(tmp_path)
    await storage.write(("count",), {"n": 0})
    command = [sys.executable, "-c", COUNTING, str(tmp_path), str(COUNT)]
    with subprocess.Popen(command) as first, subprocess.Popen(command) as second:
        for _ in range(COUNT):
            await storage.update(("count",), lambda value: {"n": value["n"] + 1})
        assert [first.wait(60), second.wait(60)] == [0, 0]
    assert await storage.read(("count",)) == {"n": 3 * COUNT}
    await storage.aclose()

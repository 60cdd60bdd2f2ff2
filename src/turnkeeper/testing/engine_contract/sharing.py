"""Contract tests of concurrent callers, closing and reopening."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from turnkeeper.store.engine import Engine, Key, LogConflict, StaleFence, StoreUnavailable
from turnkeeper.testing.engine_contract.store import StoreUnderTest


async def test_many_logs_written_at_once_are_all_whole(engine: Engine) -> None:
    async def fill(log: str) -> None:
        for number in range(20):
            body = f"{log} {number}".encode()
            await engine.append(log, number, [body], {("doc", log, f"{number:02}"): body})

    names = [f"ses_{number:02}" for number in range(16)]
    await asyncio.gather(*[fill(log) for log in names])
    for log in names:
        expected = [f"{log} {number}".encode() for number in range(20)]
        assert await engine.read(log) == expected
        assert [body for _, body in await engine.scan(("doc", log))] == expected


async def test_entries_and_documents_become_visible_together(engine: Engine) -> None:
    done = asyncio.Event()

    async def write() -> None:
        for number in range(1, 101):
            body = b"%d" % number
            await engine.append("ses_1", number - 1, [body], {("a", "1"): body, ("z", "2"): body})
            await asyncio.sleep(0)
        done.set()

    async def watch() -> None:
        while not done.is_set():
            first, second = await engine.get([("a", "1"), ("z", "2")])
            assert first == second
            below_a, below_z = await engine.gather([("a",), ("z",)])
            assert [body for _, body in below_a] == [body for _, body in below_z]
            assert await engine.length("ses_1") >= int(first or 0)
            await asyncio.sleep(0)

    await asyncio.gather(write(), watch(), watch())


@pytest.mark.parametrize("pauses", range(6))
async def test_a_cancelled_append_is_whole_or_absent(engine: Engine, pauses: int) -> None:
    documents: dict[Key, bytes | None] = {("a", "1"): b"x", ("a", "2"): b"x"}
    appending = asyncio.create_task(engine.append("ses_1", 0, [b"one", b"two"], documents, fence=1))
    for _ in range(pauses):
        await asyncio.sleep(0)
    appending.cancel()
    await asyncio.wait([appending])
    # Appends are written in order, so the first is written or cancelled when the second is acknowledged.
    await engine.append("ses_2", 0, [b"x"])
    whole = ([b"one", b"two"], [b"x", b"x"], 1)
    absent: tuple[list[bytes], list[None], int] = ([], [None, None], 0)
    found = (await engine.read("ses_1"), await engine.get(list(documents)), await engine.fence("ses_1"))
    assert found in (whole, absent)
    await engine.append("ses_1", len(found[0]), [b"next"])
    assert (await engine.read("ses_1"))[-1] == b"next"


async def test_the_version_changes_with_every_write_and_with_nothing_else(engine: Engine) -> None:
    seen = [await engine.version()]
    await engine.append("ses_1", 0, [b"x"], {("a", "1"): b"x"})
    seen.append(await engine.version())
    await engine.put({("a", "2"): b"x"})
    seen.append(await engine.version())
    await engine.remove({}, [("a",)])
    seen.append(await engine.version())
    assert len(set(seen)) == 4
    await engine.read("ses_1")
    await engine.scan(())
    assert await engine.version() == seen[-1]


async def test_inspection_names_the_place_and_finds_no_problem(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"x" * 1000])
    facts = await engine.inspect()
    assert isinstance(facts["path"], str)
    assert isinstance(facts["bytes"], int)
    assert facts["bytes"] >= 1000
    assert facts["problems"] == []


async def test_a_closed_engine_refuses_and_closing_twice_is_harmless(store: StoreUnderTest) -> None:
    engine = await store.open()
    await engine.aclose()
    await engine.aclose()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.append("ses_1", 0, [b"x"]),
        lambda: engine.put({("a",): b"x"}),
        lambda: engine.remove({}, [("a",)]),
        lambda: engine.read("ses_1"),
        lambda: engine.get([("a",)]),
        lambda: engine.scan(()),
        lambda: engine.version(),
    ]
    for call in calls:
        with pytest.raises(StoreUnavailable):
            await call()


async def test_closing_waits_for_accepted_appends(durable: StoreUnderTest) -> None:
    engine = await durable.open()
    appends = [asyncio.create_task(engine.append(f"ses_{number}", 0, [b"x"])) for number in range(20)]
    await asyncio.sleep(0)
    await engine.aclose()
    answers = await asyncio.gather(*appends, return_exceptions=True)
    reopened = await durable.open()
    lengths = [await reopened.length(f"ses_{number}") for number in range(20)]
    await reopened.aclose()
    assert lengths == [1 if answer is None else 0 for answer in answers]
    assert lengths[0] == 1


async def test_everything_survives_close_and_reopen(durable: StoreUnderTest) -> None:
    engine = await durable.open()
    await engine.append("ses_1", 0, [b"one", b"two"], {("a", "1"): b"x"}, texts={("t", "1"): "apple"}, fence=3)
    await engine.put({("b",): b"y"})
    await engine.append("ses_2", 0, [b"gone"])
    await engine.remove({"ses_2": 1}, [])
    await engine.aclose()
    reopened = await durable.open()
    assert await reopened.logs() == ["ses_1"]
    assert await reopened.read("ses_1") == [b"one", b"two"]
    assert await reopened.fence("ses_1") == 3
    assert await reopened.scan(()) == [(("a", "1"), b"x"), (("b",), b"y")]
    assert await reopened.search("apple", ()) == [("t", "1")]
    await reopened.append("ses_1", 2, [b"three"], fence=3)
    await reopened.aclose()


async def test_a_new_store_can_be_opened_by_several_at_once(durable: StoreUnderTest) -> None:
    engines = await asyncio.gather(*[durable.open() for _ in range(4)])
    for number, engine in enumerate(engines):
        await engine.append("ses_1", number, [b"%d" % number])
    assert [await engine.read("ses_1") for engine in engines] == [[b"0", b"1", b"2", b"3"]] * 4
    for engine in engines:
        await engine.aclose()


async def test_two_engines_on_one_store_see_each_other_and_have_one_winner(durable: StoreUnderTest) -> None:
    one, two = await durable.open(), await durable.open()
    for number in range(10):
        before = await one.version()
        attempts = [engine.append("ses_1", number, [name]) for engine, name in ((one, b"1"), (two, b"2"))]
        answers = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(answer) for answer in answers if answer is not None] == [LogConflict]
        winner = b"%d" % (answers.index(None) + 1)
        assert await one.read("ses_1", after=number) == await two.read("ses_1", after=number) == [winner]
        assert await one.version() != before
    await one.aclose()
    await two.put({("a",): b"x"})
    await two.aclose()


async def test_a_fence_raised_by_one_engine_stops_the_other(durable: StoreUnderTest) -> None:
    one, two = await durable.open(), await durable.open()
    await one.append("ses_1", 0, [b"x"], fence=1)
    await two.append("ses_1", 1, [b"y"], fence=2)
    with pytest.raises(StaleFence):
        await one.append("ses_1", 2, [b"z"], fence=1)
    await one.aclose()
    await two.aclose()

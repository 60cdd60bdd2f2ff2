"""Contract tests of logs and fences."""

import asyncio

import pytest

from turnkeeper.store.engine import Engine, LogConflict, StaleFence


async def test_an_engine_is_an_engine(engine: Engine) -> None:
    assert isinstance(engine, Engine)
    assert engine.name


async def test_what_is_appended_is_read_back_in_order(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one", b"two"])
    await engine.append("ses_1", 2, [b"three"])
    assert await engine.read("ses_1") == [b"one", b"two", b"three"]
    assert await engine.length("ses_1") == 3


async def test_a_log_can_be_read_from_any_entry_on_and_in_pieces(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"%d" % number for number in range(1, 11)])
    assert await engine.read("ses_1", after=7) == [b"8", b"9", b"10"]
    assert await engine.read("ses_1", after=3, limit=2) == [b"4", b"5"]
    assert await engine.read("ses_1", after=9, limit=5) == [b"10"]
    assert await engine.read("ses_1", after=10) == []
    assert await engine.read("ses_1", after=99) == []
    assert await engine.read("ses_1", limit=0) == []


async def test_a_log_begun_anew_is_told_by_its_last_entry(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one", b"two"])
    await engine.append("ses_1", 2, [b"three"], last=b"two")
    await engine.remove({"ses_1": 3}, [])
    await engine.append("ses_1", 0, [b"un", b"deux", b"trois"])
    with pytest.raises(LogConflict, match="begun anew"):
        await engine.append("ses_1", 3, [b"four"], {("a", "b"): b"x"}, last=b"three")
    with pytest.raises(LogConflict):
        await engine.append("ses_2", 0, [b"one"], last=b"none")
    assert await engine.read("ses_1") == [b"un", b"deux", b"trois"]
    assert await engine.get([("a", "b")]) == [None]
    await engine.append("ses_1", 3, [b"quatre"], last=b"trois")
    assert await engine.length("ses_1") == 4


async def test_an_unknown_log_is_empty(engine: Engine) -> None:
    assert await engine.read("ses_none") == []
    assert await engine.length("ses_none") == 0
    assert await engine.fence("ses_none") == 0
    assert await engine.logs() == []


async def test_logs_do_not_mix(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"a"])
    await engine.append("ses_10", 0, [b"b", b"c"])
    await engine.append("ses_1", 1, [b"d"])
    assert await engine.read("ses_1") == [b"a", b"d"]
    assert await engine.read("ses_10") == [b"b", b"c"]


async def test_logs_are_listed_in_order_and_in_pages(engine: Engine) -> None:
    for log in ("ses_2", "ses_10", "ses_1", "ses_ü"):
        await engine.append(log, 0, [b"x"])
    assert await engine.logs() == ["ses_1", "ses_10", "ses_2", "ses_ü"]
    assert await engine.logs(limit=2) == ["ses_1", "ses_10"]
    assert await engine.logs(after="ses_10", limit=5) == ["ses_2", "ses_ü"]
    assert await engine.logs(after="ses_1z") == ["ses_2", "ses_ü"]
    assert await engine.logs(limit=0) == []


async def test_a_log_without_entries_is_not_listed(engine: Engine) -> None:
    await engine.append("ses_1", 0, [], {("a", "b"): b"x"}, fence=3)
    assert await engine.logs() == []
    assert await engine.length("ses_1") == 0
    assert await engine.get([("a", "b")]) == [b"x"]


@pytest.mark.parametrize("after", [0, 1, 3])
async def test_a_late_or_early_writer_is_refused_and_writes_nothing(engine: Engine, after: int) -> None:
    await engine.append("ses_1", 0, [b"one", b"two"], {("a", "b"): b"old"})
    with pytest.raises(LogConflict) as refusal:
        await engine.append(
            "ses_1",
            after,
            [b"x"],
            {("a", "b"): b"new", ("a", "c"): b"new"},
            texts={("a", "b"): "word"},
            fence=7,
        )
    assert (refusal.value.log, refusal.value.expected, refusal.value.actual) == ("ses_1", after, 2)
    assert await engine.read("ses_1") == [b"one", b"two"]
    assert await engine.get([("a", "b"), ("a", "c")]) == [b"old", None]
    assert await engine.search("word", ()) == []
    assert await engine.fence("ses_1") == 0


async def test_an_append_that_cannot_be_written_whole_writes_nothing(engine: Engine) -> None:
    with pytest.raises(ValueError, match="key segment"):
        await engine.append("ses_1", 0, [b"one"], {("a", "b"): b"x", ("a/b",): b"y"}, fence=7)
    assert await engine.read("ses_1") == []
    assert await engine.get([("a", "b")]) == [None]
    assert await engine.fence("ses_1") == 0
    await engine.append("ses_1", 0, [b"one"])
    assert await engine.read("ses_1") == [b"one"]


async def test_one_refused_append_does_not_hurt_those_beside_it(engine: Engine) -> None:
    attempts = [
        engine.append(f"ses_{number}", 5 if number % 3 == 0 else 0, [b"x"], {("doc", str(number)): b"x"})
        for number in range(30)
    ]
    answers = await asyncio.gather(*attempts, return_exceptions=True)
    refused = [number for number, answer in enumerate(answers) if isinstance(answer, LogConflict)]
    assert refused == list(range(0, 30, 3))
    assert [await engine.length(f"ses_{number}") for number in range(30)] == [min(n % 3, 1) for n in range(30)]
    assert len(await engine.scan(("doc",))) == 20


async def test_two_writers_have_one_winner(engine: Engine) -> None:
    for number in range(20):
        attempts = [engine.append("ses_1", number, [b"%d" % who], {("winner",): b"%d" % who}) for who in (1, 2)]
        answers = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(answer) for answer in answers if answer is not None] == [LogConflict]
        winner = b"%d" % (answers.index(None) + 1)
        assert await engine.read("ses_1", after=number) == [winner]
        assert await engine.get([("winner",)]) == [winner]


async def test_the_same_append_twice_is_refused_the_second_time(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"x"])
    with pytest.raises(LogConflict):
        await engine.append("ses_1", 0, [b"x"])
    assert await engine.length("ses_1") == 1


async def test_a_stale_fence_is_refused_and_writes_nothing(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one"], fence=5)
    with pytest.raises(StaleFence) as refusal:
        await engine.append("ses_1", 1, [b"x"], {("a", "b"): b"x"}, fence=4)
    assert (refusal.value.log, refusal.value.given, refusal.value.current) == ("ses_1", 4, 5)
    assert await engine.read("ses_1") == [b"one"]
    assert await engine.get([("a", "b")]) == [None]
    assert await engine.fence("ses_1") == 5


async def test_a_higher_fence_replaces_and_no_fence_neither_checks_nor_changes(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one"], fence=5)
    await engine.append("ses_1", 1, [b"two"], fence=5)
    await engine.append("ses_1", 2, [b"three"])
    assert await engine.fence("ses_1") == 5
    await engine.append("ses_1", 3, [b"four"], fence=6)
    assert await engine.fence("ses_1") == 6
    assert await engine.fence("ses_2") == 0


async def test_a_fence_can_be_raised_without_an_entry(engine: Engine) -> None:
    await engine.append("ses_1", 0, [], fence=2)
    assert await engine.fence("ses_1") == 2
    with pytest.raises(StaleFence):
        await engine.append("ses_1", 0, [b"x"], fence=1)


async def test_who_is_stale_and_late_is_told_to_stop_not_to_try_again(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one"], fence=5)
    with pytest.raises(StaleFence):
        await engine.append("ses_1", 0, [b"x"], fence=4)

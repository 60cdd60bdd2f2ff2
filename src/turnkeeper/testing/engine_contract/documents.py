"""Contract tests of documents, scans and removal."""

import pytest

from turnkeeper.store.engine import Engine, InvalidKey, Key, LogConflict
from turnkeeper.testing.engine_contract.store import keys_below, walk


async def test_documents_are_given_in_the_order_asked_for(engine: Engine) -> None:
    await engine.put({("a", "1"): b"one", ("a", "2"): b"two", ("single",): b"three"})
    asked: list[Key] = [("a", "2"), ("none", "x"), ("a", "1"), ("single",), ("a", "2"), ("a",)]
    assert await engine.get(asked) == [b"two", None, b"one", b"three", b"two", None]
    assert await engine.get([]) == []


async def test_a_document_is_replaced_and_removed(engine: Engine) -> None:
    await engine.put({("a", "1"): b"one", ("a", "2"): b"two"})
    await engine.append("ses_1", 0, [b"x"], {("a", "1"): b"new", ("a", "2"): None, ("a", "none"): None})
    assert await engine.scan(("a",)) == [(("a", "1"), b"new")]
    await engine.put({("a", "1"): None, ("a", "3"): b"three"})
    assert await engine.scan(("a",)) == [(("a", "3"), b"three")]


BAD_KEYS: tuple[Key, ...] = (("a/b",), ("a", ""), ("", "a"), ("a\x00",), ("a", "\ud800"), ("a", 3))  # type: ignore[assignment]


async def test_a_put_with_a_bad_key_writes_nothing(engine: Engine) -> None:
    for bad in BAD_KEYS:
        with pytest.raises(InvalidKey, match="key segment"):
            await engine.put({("a", "1"): b"one", bad: b"x"})
    assert await engine.scan(()) == []


async def test_a_bad_key_is_refused_by_every_read(engine: Engine) -> None:
    for bad in BAD_KEYS:
        with pytest.raises(InvalidKey):
            await engine.get([("a", "1"), bad])
        with pytest.raises(InvalidKey):
            await engine.scan(bad)
        with pytest.raises(InvalidKey):
            await engine.scan(("a",), after=bad)
        with pytest.raises(InvalidKey):
            await engine.scan(("a",), before=bad)
        with pytest.raises(InvalidKey):
            await engine.gather([("a",), bad])
        with pytest.raises(InvalidKey):
            await engine.search("word", bad)


async def test_empty_large_and_foreign_bodies_round_trip(engine: Engine) -> None:
    bodies = [
        b"",
        b"0123456789abcdef" * 655_360,
        "Grüße 🌍 \u2028 漢字".encode(),
        b"\x00\xff\xfe{",
        b'{"a":1}',
    ]
    keys = [("body", str(number)) for number in range(len(bodies))]
    await engine.append("ses_1", 0, bodies, dict(zip(keys, bodies, strict=True)))
    assert await engine.read("ses_1") == bodies
    assert await engine.get(keys) == bodies
    assert await engine.scan(("body",)) == list(zip(keys, bodies, strict=True))


async def test_bodies_come_back_as_bytes(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"{}"], {("a", "b"): b"{}"})
    found = [*await engine.read("ses_1"), *await engine.get([("a", "b")]), (await engine.scan(("a",)))[0][1]]
    assert [type(body) for body in found] == [bytes] * 3


async def test_a_prefix_holds_what_is_strictly_below_it(engine: Engine) -> None:
    keys: list[Key] = [("a",), ("a", "x"), ("a", "x", "y"), ("ab", "c"), ("a!", "c"), ("a0", "c"), ("b", "x")]
    await engine.put(dict.fromkeys(keys, b"x"))
    assert await keys_below(engine, ("a",)) == [("a", "x"), ("a", "x", "y")]
    assert await keys_below(engine, ("a", "x")) == [("a", "x", "y")]
    assert await keys_below(engine, ("none",)) == []


async def test_ses_1_does_not_list_ses_10(engine: Engine) -> None:
    await engine.put({("message", "ses_1", "msg_a"): b"x", ("message", "ses_10", "msg_b"): b"y"})
    assert await engine.scan(("message", "ses_1")) == [(("message", "ses_1", "msg_a"), b"x")]


async def test_keys_are_ordered_by_the_bytes_of_their_joined_segments(engine: Engine) -> None:
    segments = [
        "a",
        "a!",
        "a-",
        "a.",
        "a0",
        "aa",
        "A",
        "~",
        "é",
        "\uffff",
        "😀",
        " ",
        "%",
        "%2F",
        "a\\",
        "a\x01",
        "'",
    ]
    keys = [(first, second) for first in segments for second in ("k", "k!", "é")] + [(only,) for only in segments]
    await engine.put({key: "/".join(key).encode() for key in keys})
    ordered = sorted(keys, key=lambda key: "/".join(key).encode())
    assert await keys_below(engine, ()) == ordered
    assert [key for key, _ in await engine.scan((), reverse=True)] == ordered[::-1]
    for segment in segments:
        assert await keys_below(engine, (segment,)) == [key for key in ordered if key[0] == segment and key[1:]]


async def test_keys_that_differ_only_in_case_are_two_keys(engine: Engine) -> None:
    await engine.put({("msg", "aB"): b"1", ("msg", "Ab"): b"2", ("msg", "ab"): b"3"})
    assert await engine.get([("msg", "aB"), ("msg", "Ab"), ("msg", "ab")]) == [b"1", b"2", b"3"]


@pytest.mark.parametrize("size", [1, 3, 7, 23, 100])
async def test_pages_walk_both_ways_without_gap_or_repeat(engine: Engine, size: int) -> None:
    inside = [("page", f"k{number:02}") for number in range(23)]
    await engine.put(dict.fromkeys([*inside, ("pag", "z"), ("page!", "a"), ("page0", "a")], b"x"))
    assert await walk(engine, ("page",), size, reverse=False) == inside
    assert await walk(engine, ("page",), size, reverse=True) == inside[::-1]


async def test_a_scan_lies_strictly_between_after_and_before(engine: Engine) -> None:
    await engine.put({("n", letter): b"x" for letter in "abcdef"})
    between = await engine.scan(("n",), after=("n", "b"), before=("n", "e"))
    assert [key[1] for key, _ in between] == ["c", "d"]
    from_the_end = await engine.scan(("n",), after=("n", "a"), before=("n", "e"), limit=2, reverse=True)
    assert [key[1] for key, _ in from_the_end] == ["d", "c"]
    assert await engine.scan(("n",), after=("n", "d"), before=("n", "b")) == []
    assert await engine.scan(("n",), after=("z",)) == []
    assert len(await engine.scan(("n",), after=("a", "z"), before=("z", "a"))) == 6
    assert await engine.scan(("n",), limit=0) == []


async def test_several_prefixes_are_gathered_in_the_order_asked_for(engine: Engine) -> None:
    keys: list[Key] = [("a",), ("a", "2"), ("a", "1"), ("ab", "1"), ("b", "1", "x")]
    await engine.put(dict.fromkeys(keys, b"x"))
    below_a, below_b = [(("a", "1"), b"x"), (("a", "2"), b"x")], [(("b", "1", "x"), b"x")]
    assert await engine.gather([("b",), ("none",), ("a",), ("b", "1")]) == [below_b, [], below_a, below_b]
    assert await engine.gather([]) == []


async def test_a_page_survives_writes_between_two_pages(engine: Engine) -> None:
    await engine.put({("n", letter): b"x" for letter in "bdfh"})
    first = await engine.scan(("n",), limit=2)
    await engine.put({("n", "a"): b"new", ("n", "d"): None, ("n", "e"): b"new"})
    assert [key[1] for key, _ in await engine.scan(("n",), after=first[-1][0])] == ["e", "f", "h"]


async def test_removing_one_session_leaves_its_neighbours(engine: Engine) -> None:
    for log in ("ses_1", "ses_10", "ses_2"):
        documents = {("session", log): b"s", ("message", log, "m1"): b"m", ("message", log, "m2"): b"m"}
        await engine.append(log, 0, [b"x"], documents, texts={("message", log, "m1"): "apple"}, fence=4)
    await engine.remove({"ses_1": 1, "ses_none": 0}, [("session", "ses_1"), ("message", "ses_1"), ("none",)])
    assert await engine.logs() == ["ses_10", "ses_2"]
    assert (await engine.length("ses_1"), await engine.fence("ses_1")) == (0, 0)
    assert await keys_below(engine, ()) == [
        ("message", "ses_10", "m1"),
        ("message", "ses_10", "m2"),
        ("message", "ses_2", "m1"),
        ("message", "ses_2", "m2"),
        ("session", "ses_10"),
        ("session", "ses_2"),
    ]
    assert await engine.search("apple", ()) == [("message", "ses_2", "m1"), ("message", "ses_10", "m1")]
    assert await engine.read("ses_10") == [b"x"]


async def test_a_removed_log_begins_anew(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"old", b"old"], fence=9)
    await engine.remove({"ses_1": 2}, [])
    await engine.append("ses_1", 0, [b"new"], fence=1)
    assert await engine.read("ses_1") == [b"new"]


async def test_a_log_that_has_grown_is_not_removed_and_neither_is_anything_else(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one"], {("a", "1"): b"x"})
    await engine.append("ses_2", 0, [b"one"], {("a", "2"): b"x"})
    await engine.append("ses_2", 1, [b"two"])
    with pytest.raises(LogConflict) as refusal:
        await engine.remove({"ses_1": 1, "ses_2": 1}, [("a",)])
    assert (refusal.value.log, refusal.value.expected, refusal.value.actual) == ("ses_2", 1, 2)
    assert await engine.logs() == ["ses_1", "ses_2"]
    assert await keys_below(engine, ("a",)) == [("a", "1"), ("a", "2")]


async def test_a_log_that_is_gone_already_may_be_removed_again(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"one"], {("a", "1"): b"x"})
    await engine.remove({"ses_1": 1}, [])
    await engine.remove({"ses_1": 1}, [("a",)])
    assert await engine.scan(()) == []


async def test_the_empty_prefix_removes_every_document_and_no_log(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"x"], {("a", "b"): b"x", ("c",): b"x"}, texts={("t", "1"): "apple"})
    await engine.remove({}, [()])
    assert await engine.scan(()) == []
    assert await engine.search("apple", ()) == []
    assert await engine.read("ses_1") == [b"x"]


async def test_an_orphan_goes_when_nothing_is_left_below_its_prefix(engine: Engine) -> None:
    await engine.put(
        {
            ("blob", "only_mine"): b"1",
            ("blob", "shared"): b"2",
            ("blob", "unused"): b"3",
            ("use", "only_mine", "ses_1"): b"",
            ("use", "shared", "ses_1"): b"",
            ("use", "shared", "ses_10"): b"",
            ("use", "unuse"): b"",
        }
    )
    orphans: dict[Key, Key] = {("blob", name): ("use", name) for name in ("only_mine", "shared", "unused", "never_was")}
    gone: list[Key] = [("use", "only_mine", "ses_1"), ("use", "shared", "ses_1")]
    await engine.remove({}, gone, orphans=orphans)
    assert await keys_below(engine, ()) == [("blob", "shared"), ("use", "shared", "ses_10"), ("use", "unuse")]
    await engine.remove({}, [("use", "shared", "ses_10")], orphans=orphans)
    assert await keys_below(engine, ()) == [("use", "unuse")]


async def test_a_removal_with_a_bad_key_removes_nothing(engine: Engine) -> None:
    await engine.append("ses_1", 0, [b"x"], {("a", "b"): b"x"})
    with pytest.raises(InvalidKey, match="key segment"):
        await engine.remove({"ses_1": 1}, [("a",), ("a/b",)])
    with pytest.raises(InvalidKey, match="key segment"):
        await engine.remove({"ses_1": 1}, [("a",)], orphans={("b",): ("",)})
    assert await engine.read("ses_1") == [b"x"]
    assert await engine.get([("a", "b")]) == [b"x"]

"""The files engine: what its tree looks like, what survives a kill or a full disk, and who waits for whom."""

import asyncio
import errno
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest

from turnkeeper.store.crash import POINTS
from turnkeeper.store.engine import EngineError, InvalidKey, Key, StoreUnavailable
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.files import FilesEngine, open_files
from turnkeeper.store.engines.files.disk import Disk
from turnkeeper.store.engines.files.lock import StoreLock
from turnkeeper.store.engines.files.record import Write, decoded, encoded, is_cut_short
from turnkeeper.store.engines.files.tree import ATTEMPTS_MAX
from turnkeeper.store.engines.files.words import FileWords
from turnkeeper.testing.engine_contract import StoreUnderTest
from turnkeeper.testing.engine_contract.processes import check_streamed, kill_after, read_acknowledged

WRITE_POINTS = [point for point in POINTS if point.startswith("files.")]
WAIT_S = 30


class FaultyDisk(Disk):
    """A disk on which the n-th change fails, and every later one too if it is broken for good."""

    def __init__(self, code: int, *, is_broken: bool = False) -> None:
        self.left: int | None = None
        self._code, self._is_broken = code, is_broken

    def about_to(self, action: str, target: str) -> None:
        if self.left is None:
            return
        self.left -= 1
        if self.left == 0 or (self._is_broken and self.left < 0):
            raise OSError(self._code, os.strerror(self._code), target)


def a_store(tmp_path: Path) -> StoreUnderTest:
    return StoreUnderTest(open_engine, f"files:{tmp_path}/store", is_durable=True)


def tree_of(directory: Path) -> list[str]:
    """Every document and log, as a person with a shell sees them."""
    files = (file.relative_to(directory) for file in directory.rglob("*") if file.is_file())
    return sorted(str(file) for file in files if file.parts[0] != ".store")


async def problems_of(engine: FilesEngine) -> list[str]:
    """What inspection finds wrong with a store."""
    problems = (await engine.inspect())["problems"]
    assert isinstance(problems, list)
    return problems


async def test_documents_lie_where_the_seeds_draw_them_as_formatted_json(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    documents: dict[Key, bytes | None] = {
        ("project", "p"): b'{"id":"p"}',
        ("session", "p", "ses_1"): b'{"id":"ses_1","time":{"created":1}}',
        ("message", "ses_1", "msg_1"): b"{}",
        ("part", "msg_1", "prt_1"): b"{}",
        ("session_diff", "ses_1"): b"[]",
        ("share", "ses_1"): b"{}",
        ("todo", "ses_1"): b"[]",
    }
    await engine.append("ses_1", 0, [b'{"seq":1}', b'{"seq":2}'], documents)
    await engine.aclose()
    assert tree_of(tmp_path) == [
        "log/ses_1.jsonl",
        "message/ses_1/msg_1.json",
        "part/msg_1/prt_1.json",
        "project/p.json",
        "session/p/ses_1.json",
        "session_diff/ses_1.json",
        "share/ses_1.json",
        "todo/ses_1.json",
    ]
    formatted = '{\n  "id": "ses_1",\n  "time": {\n    "created": 1\n  }\n}'
    assert (tmp_path / "session/p/ses_1.json").read_text() == formatted
    assert (tmp_path / "log/ses_1.jsonl").read_bytes() == b'{"seq":1}\n{"seq":2}\n'


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"x",
        b' {"a":1}',
        b'{"a": 1}',
        b'{"a":1}\n',
        b'"\xff"',
        b"[" * 5000 + b"]" * 5000,
        b'{"a":1,"a":2}',
        b"1.0e5",
    ],
)
async def test_any_body_comes_back_byte_for_byte_and_replaces_any_other(tmp_path: Path, body: bytes) -> None:
    engine = await open_files(tmp_path)
    for content in (b'{"a":1}', body, b'{"a":2}', body):
        await engine.put({("a", "b"): content})
        assert await engine.get([("a", "b")]) == [content]
        assert await engine.scan(()) == [(("a", "b"), content)]
        assert len(list((tmp_path / "a").iterdir())) == 1
    await engine.append("log", 0, [body, b"=", b"==\n"])
    assert await engine.read("log") == [body, b"=", b"==\n"]
    await engine.aclose()


async def test_no_key_can_take_a_name_that_the_store_uses_itself(tmp_path: Path) -> None:
    directory = tmp_path / "store"
    engine = await open_files(directory)
    keys: list[Key] = [
        ("log", "ses_1"),
        ("migration", "x"),
        ("migration",),
        (".store", "journal"),
        ("..", "..", "etc"),
        (".",),
        ("a.json", "b"),
        ("a",),
        ("a.raw", "b"),
        ("a%2Ejson", "b"),
        ("a\nb", "c.jsonl"),
    ]
    await engine.append("ses_1", 0, [b"entry"], {key: "/".join(key).encode() for key in keys})
    assert await engine.get(keys) == ["/".join(key).encode() for key in keys]
    assert [key for key, _ in await engine.scan(())] == sorted(keys, key=lambda key: "/".join(key).encode())
    assert await engine.logs() == ["ses_1"]
    assert (await engine.inspect())["problems"] == []
    await engine.aclose()
    assert list(tmp_path.iterdir()) == [directory]


async def test_a_name_too_long_for_the_disk_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    for bad in (("a" * 256,), ("é" * 130,), tuple("abcdefghij" * 30 for _ in range(1)), ("x" * 200,) * 12):
        with pytest.raises(EngineError, match="too long"):
            await engine.put({("good",): b"x", bad: b"x"})
    with pytest.raises(EngineError, match="too long"):
        await engine.append("s" * 300, 0, [b"x"])
    assert await engine.scan(()) == []
    await engine.aclose()


async def test_directories_go_with_their_last_document(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.put({("part", "msg_1", "a"): b"1", ("part", "msg_2", "b"): b"2"})
    await engine.put({("part", "msg_1", "a"): None})
    assert [entry.name for entry in (tmp_path / "part").iterdir()] == ["msg_2"]
    await engine.remove({}, [("part",)])
    assert not (tmp_path / "part").exists()
    await engine.put({("part", "msg_1", "a"): b"3"})
    assert await engine.scan(("part",)) == [(("part", "msg_1", "a"), b"3")]
    await engine.aclose()


async def test_strange_files_are_ignored_by_scans_and_reported_by_inspection(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"entry"], {("a", "good"): b"1", ("a", "twice"): b"1"})
    await engine.aclose()
    engine = await open_files(tmp_path)
    strange = ["a/notes.txt", "a/.hidden.json", "a/%zz.json", "log/readme", "a/twice.raw", "stray"]
    for name in strange:
        (tmp_path / name).write_text("?")
    (tmp_path / "a/broken.json").write_text("{")
    await engine.put({("a", "new"): b"2"})
    other = await open_files(tmp_path)
    assert await other.keys(("a",)) == [("a", "broken"), ("a", "good"), ("a", "new"), ("a", "twice")]
    problems = (await other.inspect())["problems"]
    assert isinstance(problems, list)
    for name in [*strange, "a/broken.json"]:
        assert len([problem for problem in problems if str(tmp_path / name) in problem]) == 1, name
    assert len(problems) == len(strange) + 1
    assert await other.get([("a", "broken"), ("a", "good")]) == [b"", b"1"]
    await engine.aclose()
    await other.aclose()


async def test_a_damaged_log_is_reported_and_never_read_as_a_shorter_one(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one", b"two", b"three"])
    lines = tmp_path / "log/ses_1.jsonl"
    lines.write_bytes(b"one\ntwo\nth")
    with pytest.raises(StoreUnavailable, match="damaged"):
        await engine.read("ses_1")
    lines.unlink()
    with pytest.raises(StoreUnavailable, match="damaged"):
        await engine.read("ses_1")
    assert len(await problems_of(engine)) == 1
    await engine.aclose()


async def test_a_tree_copied_without_our_own_directory_still_has_its_logs(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log/ses_1.jsonl").write_bytes(b"one\ntwo\n")
    engine = await open_files(tmp_path)
    assert await engine.read("ses_1", after=1) == [b"two"]
    await engine.append("ses_1", 2, [b"three"], fence=4)
    assert await engine.read("ses_1") == [b"one", b"two", b"three"]
    assert await engine.fence("ses_1") == 4
    await engine.aclose()


async def test_what_another_engine_writes_is_seen_although_directories_are_listed_once(tmp_path: Path) -> None:
    one, two = await open_files(tmp_path), await open_files(tmp_path)
    for number in range(5):
        await one.put({("a", f"{number}", "x"): b"1", ("a", f"{number}!"): b"1"})
        assert await two.keys(("a",)) == await one.keys(("a",))
        assert len(await two.keys(("a",))) == 2 * number + 2
        await two.put({("a", f"{number}", "x"): None, ("b", f"{number}"): b"1"})
        await one.put({("a", f"{number}", "x"): b"2"})
        assert await two.keys(()) == await one.keys(())
        assert len(await one.keys(())) == 3 * number + 3
    await one.aclose()
    await two.aclose()


async def test_old_lines_of_the_text_index_are_dropped_and_nothing_else(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    long_text = " ".join(f"filler{number}" for number in range(20_000))
    for number in range(20):
        texts = {("t", "again"): f"{long_text} turn{number}", ("t", f"{number}", "x"): f"apple seed{number}"}
        await engine.append("ses_1", number, [b"x"], texts=texts)
        if number == 8:
            await engine.remove({}, [("t", "7")])
    await engine.aclose()
    reopened = await open_files(tmp_path)
    assert (tmp_path / ".store/words").stat().st_size < 5 * len(long_text)
    assert await reopened.search("turn19", ()) == [("t", "again")]
    assert await reopened.search("turn18", ()) == []
    kept = [("t", f"{number}", "x") for number in reversed(range(20)) if number != 7]
    assert await reopened.search("apple", ("t",)) == kept
    await reopened.append("ses_1", 20, [b"x"], texts={("t", "again"): "apple"})
    assert (await reopened.search("apple", ("t",)))[0] == ("t", "again")
    await reopened.aclose()


# Kills.


@pytest.mark.parametrize("point", WRITE_POINTS)
async def test_killed_at_a_crash_point_it_keeps_what_was_acknowledged(tmp_path: Path, point: str) -> None:
    store = a_store(tmp_path)
    for hit in (1, 2, 4):
        with store.child("stream", "200", crash=f"{point}:{hit}") as child:
            acknowledged = read_acknowledged(child)
        assert child.returncode == 137, f"{point} was not reached {hit} times"
        await check_streamed(store, acknowledged)


@pytest.mark.parametrize("point", ["files.staged", "files.intent-synced", "files.document-placed", "files.synced"])
async def test_killed_while_it_repairs_it_is_repaired_by_the_next(tmp_path: Path, point: str) -> None:
    store = a_store(tmp_path)
    with store.child("stream", "200", crash="files.document-placed:7") as child:
        acknowledged = read_acknowledged(child)
    with store.child("stream", "200", crash=f"{point}:1") as child:
        again = read_acknowledged(child)
    assert child.returncode == 137
    await check_streamed(store, acknowledged | again)


@pytest.mark.parametrize(
    "point", ["files.intent-synced", "files.place-begun", "files.document-placed", "files.log-placed"]
)
async def test_a_living_process_sees_no_half_of_what_a_dying_one_wrote(tmp_path: Path, point: str) -> None:
    """It never opens anew, so its reads and its writes must notice by themselves."""
    store = a_store(tmp_path)
    reader, writer = await store.open(), await store.open()
    with store.child("stream", "200", crash=f"{point}:9") as child:
        acknowledged = read_acknowledged(child)
    assert child.returncode == 137
    for log, least in acknowledged.items():
        length = await reader.length(log)
        assert length >= least
        assert await reader.get([("head", log)]) == [b"%d" % length]
        assert len(await reader.scan(("item", log))) == length
    # A write first does what the dead process had committed and not yet shown.
    await writer.put({("z",): b"1"})
    for log in acknowledged:
        await writer.append(log, await writer.length(log), [b"next"])
        assert (await reader.read(log))[-1] == b"next"
    await reader.aclose()
    await writer.aclose()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(4))
async def test_killed_again_and_again_by_chance_it_keeps_what_was_acknowledged(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    store = a_store(tmp_path)
    for _ in range(50):
        if chance.random() < 0.5:
            await kill_after(store, chance.randrange(200))
            continue
        point = f"{chance.choice(WRITE_POINTS)}:{chance.randrange(1, 5)}"
        with store.child("stream", "200", crash=point) as child:
            acknowledged = read_acknowledged(child)
        await check_streamed(store, acknowledged)


async def test_two_processes_killed_while_both_write_lose_nothing(tmp_path: Path) -> None:
    """Two children append to the same logs; a loser ends with its conflict, and the other goes on."""
    store = a_store(tmp_path)
    with store.child("compete", "30") as first, store.child("stream", "100000") as second:
        assert second.stdout is not None
        lines = [second.stdout.readline() for _ in range(60)]
        second.send_signal(signal.SIGKILL)
        acknowledged = {log: int(number) for log, number in (line.split() for line in lines)}
        acknowledged |= read_acknowledged(second)
        assert first.wait(WAIT_S) == 0
    engine = await store.open()
    shared = await engine.read("shared")
    assert [body for _, body in await engine.scan(("slot",))] == shared
    assert len(shared) == 30
    await engine.aclose()
    await check_streamed(store, acknowledged)


# The journal.


WRITES = [Write([(f"a/{number}", b"x" * number)], log="ses_1", entries=[b"y"]) for number in range(4)]


def test_a_journal_is_read_up_to_the_first_record_that_is_not_whole() -> None:
    records = [encoded(number, write) for number, write in enumerate(WRITES, 7)]
    data = b"".join(records)
    ends = [len(b"".join(records[: number + 1])) for number in range(len(records))]
    assert decoded(data) == (WRITES, len(data))
    for cut in range(len(data)):
        whole = [end for end in ends if end <= cut]
        assert decoded(data[:cut]) == (WRITES[: len(whole)], max(whole, default=0))
        assert is_cut_short(data[:cut], max(whole, default=0))
    for position in range(len(data)):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        whole = [end for end in ends if end <= position]
        assert decoded(flipped) == (WRITES[: len(whole)], max(whole, default=0))


def test_the_rest_of_an_older_journal_is_not_taken_for_this_one() -> None:
    newer, older = encoded(9, WRITES[0]), encoded(4, WRITES[1])
    assert decoded(newer + older) == ([WRITES[0]], len(newer))


async def test_a_record_that_was_cut_while_it_was_written_is_dropped(tmp_path: Path) -> None:
    reader = await open_files(tmp_path)
    journal = tmp_path / ".store/journal"
    for number in range(3):
        engine = await open_files(tmp_path)
        journal.write_bytes(encoded(2, Write(log="ses_1", after=number, entries=[b"never"]))[:-1])
        if number == 2:
            await (await open_files(tmp_path)).aclose()
        await engine.append("ses_1", number, [b"%d" % number])
        await engine.aclose()
        assert journal.read_bytes() == b""
    assert await reader.read("ses_1") == [b"0", b"1", b"2"]
    assert (await reader.inspect())["problems"] == []
    await reader.aclose()


async def test_behind_a_write_the_journal_is_empty(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one"], {("a",): b"1"})
    await engine.aclose()
    assert (tmp_path / ".store/journal").read_bytes() == b""


# Damage.


async def killed_at(tmp_path: Path, point: str) -> Path:
    """A store whose writer was killed in its ninth write, or behind it."""
    with a_store(tmp_path).child("stream", "200", crash=f"{point}:9") as child:
        child.wait(WAIT_S)
    assert child.returncode == 137
    return tmp_path / "store"


@pytest.mark.parametrize("point", ["files.intent-synced", "files.log-placed", "files.placed", "files.synced"])
async def test_no_flipped_bit_in_the_journal_costs_a_log_an_entry(tmp_path: Path, point: str) -> None:
    killed = await killed_at(tmp_path / "killed", point)
    whole = {file.name: file.read_bytes() for file in (killed / "log").iterdir()}
    size = (killed / ".store/journal").stat().st_size
    for position in range(0, size, 1 + size // 8):
        tree = tmp_path / str(position)
        shutil.copytree(killed, tree)
        flip(tree / ".store/journal", position)
        engine = await open_files(tree)
        for name, content in whole.items():
            assert (tree / "log" / name).read_bytes().startswith(content)
        problems = await problems_of(engine)
        if point == "files.log-placed":
            assert any("journal" in problem for problem in problems)
        await engine.aclose()
        again = await open_files(tree)
        assert await problems_of(again) == problems
        await again.aclose()


def flip(file: Path, position: int) -> None:
    data = bytearray(file.read_bytes())
    data[position] ^= 1 << position % 8
    file.write_bytes(data)


async def test_a_flipped_bit_in_an_index_is_reported_and_the_log_stays_whole(tmp_path: Path) -> None:
    entries = [b"%d" % number * number for number in range(1, 9)]
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, entries)
    log, index = tmp_path / "log/ses_1.jsonl", tmp_path / ".store/index/ses_1"
    content, numbers = log.read_bytes(), index.read_bytes()
    for position in range(16, len(numbers)):
        flip(index, position)
        for after in range(8):
            with suppress(StoreUnavailable):
                assert await engine.read("ses_1", after=after, limit=1) == [entries[after]]
        if position >= len(numbers) - 8:
            with pytest.raises(StoreUnavailable, match="is damaged"):
                await engine.append("ses_1", 8, [b"next"])
        assert log.read_bytes() == content
        assert len(await problems_of(engine)) == 1
        index.write_bytes(numbers)
    index.unlink()
    assert await engine.read("ses_1") == entries
    await engine.append("ses_1", 8, [b"next"])
    assert await problems_of(engine) == []
    await engine.aclose()


async def test_lines_that_no_write_acknowledged_are_reported_and_never_cut(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one"])
    log = tmp_path / "log/ses_1.jsonl"
    log.write_bytes(b"one\ntwo\nthr")
    with pytest.raises(StoreUnavailable, match="whole lines stand behind"):
        await engine.append("ses_1", 1, [b"new"])
    assert log.read_bytes() == b"one\ntwo\nthr"
    assert await engine.read("ses_1") == [b"one"]
    [problem] = await problems_of(engine)
    assert "goes on behind entry 1" in problem
    await engine.aclose()


@pytest.mark.parametrize("name", ["ses_1", "x" * 249, "漢" * 83])
async def test_an_incomplete_last_line_is_set_aside_and_reported(tmp_path: Path, name: str) -> None:
    engine = await open_files(tmp_path)
    await engine.append(name, 0, [b"one"])
    file = tmp_path / f"log/{name}.jsonl"
    with file.open("ab") as log:
        log.write(b"tw")
    await engine.append(name, 1, [b"new"])
    assert await engine.read(name) == [b"one", b"new"]
    assert file.read_bytes() == b"one\nnew\n"
    [problem] = await problems_of(engine)
    assert Path(problem.split()[0]).read_bytes() == b"tw"
    await engine.aclose()


async def test_a_write_whose_log_was_changed_meanwhile_is_set_aside_and_the_store_opens(tmp_path: Path) -> None:
    store = await killed_at(tmp_path, "files.place-begun")
    for log in (store / "log").iterdir():
        with log.open("ab") as file:
            file.write(b"something else\n")
    engine = await open_files(store)
    assert any("journal" in problem for problem in await problems_of(engine))
    await engine.append("other", 0, [b"x"])
    await engine.aclose()


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.5, 0.9, 1.0])
async def test_after_a_power_cut_the_journal_brings_back_what_the_files_have_lost(tmp_path: Path, keep: float) -> None:
    """A power cut is played by taking away or cutting files that were written but never flushed."""
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one"], {("a", "kept"): b'{"old":1}', ("a", "gone"): b"1"})
    await engine.aclose()

    class Unsyncable(Disk):
        def about_to(self, action: str, target: str) -> None:
            if action == "sync" and not target.endswith("journal"):
                raise OSError(errno.EIO, os.strerror(errno.EIO), target)

    engine = await open_files(tmp_path, disk=Unsyncable())
    documents: dict[Key, bytes | None] = {("a", "gone"): None, ("a", "kept"): b'{"new":2}'}
    documents |= {("b", f"{number}"): b"%d" % number for number in range(10)}
    texts: dict[Key, str | None] = {("b", f"{number}"): "pear" for number in range(10)}
    await engine.append("ses_1", 1, [b"2", b"3"], documents, texts=texts)
    await engine.aclose()
    chance = random.Random(keep)
    for file in [*(tmp_path / "b").iterdir(), tmp_path / "a/kept.json", tmp_path / ".store/words"]:
        os.truncate(file, int(file.stat().st_size * keep * chance.random()))
    os.truncate(tmp_path / "log/ses_1.jsonl", len(b"one\n"))
    os.truncate(tmp_path / ".store/index/ses_1", 24)
    (tmp_path / "a/gone.json").write_text("1")
    if keep < 0.5:
        (tmp_path / ".store/version").unlink()
    reopened = await open_files(tmp_path)
    assert await reopened.read("ses_1") == [b"one", b"2", b"3"]
    assert await reopened.get([("a", "kept"), ("a", "gone")]) == [b'{"new":2}', None]
    assert len(await reopened.scan(("b",))) == 10
    assert len(await reopened.search("pear", ())) == 10
    assert (await reopened.inspect())["problems"] == []
    await reopened.aclose()


# The disk says no.


async def whole_or_absent(engine: FilesEngine) -> bool:
    """Whether the write of ``try_to_write`` is there; it must not be there in part."""
    length = await engine.length("ses_1")
    found = (
        await engine.get([("a", "kept"), ("a", "gone"), ("n", "new")]),
        await engine.search("pear", ()),
        await engine.fence("ses_1"),
    )
    if length == 1:
        assert found == ([b"old", b"1", None], [], 1)
    else:
        assert (length, found) == (2, ([b"new", None, b'{"a":1}'], [("n", "new")], 2))
    return length == 2


async def try_to_write(engine: FilesEngine) -> bool:
    """Whether the write was acknowledged; if not, the disk was given as the reason."""
    documents: dict[Key, bytes | None] = {("a", "kept"): b"new", ("a", "gone"): None, ("n", "new"): b'{"a":1}'}
    try:
        await engine.append("ses_1", 1, [b"two"], documents, texts={("n", "new"): "pear"}, fence=2)
    except StoreUnavailable:
        return False
    return True


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO])
async def test_when_any_one_call_to_the_disk_fails_a_write_is_whole_or_refused(tmp_path: Path, code: int) -> None:
    outcomes = []
    for call in range(1, 40):
        disk = FaultyDisk(code)
        directory = tmp_path / str(call)
        engine = await open_files(directory, disk=disk)
        await engine.append("ses_1", 0, [b"one"], {("a", "kept"): b"old", ("a", "gone"): b"1"}, fence=1)
        await engine.aclose()  # Once it is closed, nothing is left to be synced.
        engine = await open_files(directory, disk=disk)
        disk.left = call
        is_acknowledged = await try_to_write(engine)
        is_reached = disk.left <= 0
        disk.left = None
        assert await whole_or_absent(engine) == is_acknowledged
        await engine.aclose()
        reopened = await open_files(directory)
        assert await whole_or_absent(reopened) == is_acknowledged
        assert (await reopened.inspect())["problems"] == []
        await reopened.aclose()
        if not is_reached:
            break
        outcomes.append(is_acknowledged)
    # Before the commit it is refused, behind it it is acknowledged, and no other order is possible.
    assert outcomes == sorted(outcomes)
    assert set(outcomes) == {False, True}


async def test_on_a_disk_that_stays_broken_nothing_is_acknowledged_and_nothing_torn(tmp_path: Path) -> None:
    for call in range(1, 30):
        disk = FaultyDisk(errno.EIO, is_broken=True)
        directory = tmp_path / str(call)
        engine = await open_files(directory, disk=disk)
        await engine.append("ses_1", 0, [b"one"], {("a", "kept"): b"old", ("a", "gone"): b"1"}, fence=1)
        await engine.aclose()  # Once it is closed, nothing is left to be synced.
        engine = await open_files(directory, disk=disk)
        disk.left = call
        is_acknowledged = await try_to_write(engine)
        disk.left = None
        is_there = await whole_or_absent(engine)
        assert is_there or not is_acknowledged
        await engine.aclose()


async def test_a_write_that_does_not_fit_does_not_hurt_those_beside_it(tmp_path: Path) -> None:
    class SmallDisk(Disk):
        def write(self, target: str, body: bytes, offset: int | None = None) -> None:
            if len(body) > 1000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
            super().write(target, body, offset)

    engine = await open_files(tmp_path, disk=SmallDisk())
    refused: list[int] = []

    async def append(number: int) -> None:
        try:
            await engine.append(f"ses_{number}", 0, [b"x"], {("a", f"{number}"): b"x" * (5000 if number == 3 else 5)})
        except StoreUnavailable:
            refused.append(number)

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(append, number)
    assert refused == [3]
    assert await engine.logs() == [f"ses_{number}" for number in range(8) if number != 3]
    await engine.aclose()


async def test_what_could_not_be_synced_is_written_again_before_the_journal_is_emptied(tmp_path: Path) -> None:
    """After a sync has failed, the system may drop what it held although the next sync succeeds."""

    class ForgetfulDisk(Disk):
        fails = 0

        def about_to(self, action: str, target: str) -> None:
            if action == "sync" and target.endswith("a.json"):
                self.fails += 1
                if self.fails == 1:
                    os.truncate(target, 0)
                    raise OSError(errno.EIO, os.strerror(errno.EIO), target)

    disk = ForgetfulDisk()
    engine = await open_files(tmp_path, disk=disk)
    reader = await open_files(tmp_path, disk=disk)
    await engine.put({("a",): b'{"n":1}'})
    await engine.aclose()
    assert disk.fails == 1
    assert await reader.get([("a",)]) == [b'{"n":1}']
    await reader.aclose()
    assert disk.fails > 1
    assert (tmp_path / ".store/journal").read_bytes() == b""
    assert (tmp_path / "a.json").read_text() == '{\n  "n": 1\n}'


async def test_a_file_size_limit_of_the_system_refuses_and_leaves_the_store_whole(tmp_path: Path) -> None:
    program = (
        "import asyncio, resource, sys\n"
        "from pathlib import Path\n"
        "from turnkeeper.store.engine import StoreUnavailable\n"
        "from turnkeeper.store.engines.files import open_files\n"
        "async def main():\n"
        "    engine = await open_files(Path(sys.argv[1]))\n"
        "    await engine.append('ses_1', 0, [b'one'], {('a',): b'old'})\n"
        "    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
        "    try:\n"
        "        await engine.append('ses_1', 1, [b'x' * 200_000], {('a',): b'new'})\n"
        "    except StoreUnavailable as error:\n"
        "        sys.stdout.write('refused')\n"
        "    await engine.append('ses_1', 1, [b'two'])\n"
        "asyncio.run(main())\n"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "refused"
    engine = await open_files(tmp_path)
    assert await engine.read("ses_1") == [b"one", b"two"]
    assert await engine.get([("a",)]) == [b"old"]
    await engine.aclose()


async def test_a_place_that_cannot_be_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(StoreUnavailable, match="the disk failed"):
        await open_files(tmp_path / "file")


# Locks.


def test_a_lock_holds_between_threads_and_processes_and_ends_with_its_holder(tmp_path: Path) -> None:
    file = str(tmp_path / "lock")
    program = (
        "import sys\n"
        "from turnkeeper.store.engines.files.lock import StoreLock\n"
        "with StoreLock(sys.argv[1]).held():\n"
        "    sys.stdout.write('held\\n'); sys.stdout.flush(); sys.stdin.read()\n"
    )
    impatient = StoreLock(file, wait_s=0.05)
    with impatient.held(), pytest.raises(StoreUnavailable, match="has held"), impatient.held():
        pass
    command = [sys.executable, "-c", program, file]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        with pytest.raises(StoreUnavailable), impatient.held():
            pass
        child.kill()
    with StoreLock(file).held():
        pass


class StuckDisk(Disk):
    """A disk that, once armed, does not come back from a flush before it is freed."""

    def __init__(self) -> None:
        self.is_armed = False
        self.stuck, self.freed = threading.Event(), threading.Event()

    def about_to(self, action: str, target: str) -> None:
        if self.is_armed and action == "sync":
            self.stuck.set()
            assert self.freed.wait(WAIT_S)


async def test_a_reader_does_not_wait_while_a_writer_waits_for_the_disk(tmp_path: Path) -> None:
    disk = StuckDisk()
    engine = await open_files(tmp_path, disk=disk)
    await engine.append("ses_1", 0, [b"one"], {("a",): b"old"})
    disk.is_armed = True
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(lambda: engine.append("ses_1", 1, [b"two"], {("a",): b"new"}))
            assert await anyio.to_thread.run_sync(disk.stuck.wait, WAIT_S)
            assert await engine.read("ses_1") == [b"one"]
            assert await engine.get([("a",)]) == [b"old"]
            assert await engine.scan(()) == [(("a",), b"old")]
            disk.freed.set()
    finally:
        disk.freed.set()
    assert await engine.get([("a",)]) == [b"new"]
    await engine.aclose()


async def test_a_reader_that_met_a_write_reads_again(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.put({("a",): b"old", ("b",): b"old"})
    entered, written = threading.Event(), threading.Event()
    tries: list[bytes | None] = []

    def read_slowly(_: object) -> tuple[bytes | None, bytes | None]:
        first = engine.tree.documents.read("a")
        tries.append(first)
        entered.set()
        assert written.wait(WAIT_S)
        return first, engine.tree.documents.read("b")

    async def write() -> None:
        assert await anyio.to_thread.run_sync(entered.wait, WAIT_S)
        await engine.put({("a",): b"new", ("b",): b"new"})
        written.set()

    async with anyio.create_task_group() as group:
        group.start_soon(write)
        assert await anyio.to_thread.run_sync(engine.tree.read, read_slowly) == (b"new", b"new")
    assert tries == [b"old", b"new"]
    await engine.aclose()


async def test_a_reader_that_meets_a_write_each_time_keeps_writers_out_in_the_end(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    other = await open_files(tmp_path)
    await engine.put({("a",): b"0"})
    tries: list[int] = []

    def read_and_let_write(_: object) -> bytes | None:
        tries.append(len(tries))
        if len(tries) <= ATTEMPTS_MAX:
            documents: dict[Key, bytes | None] = {("a",): b"%d" % len(tries)}
            anyio.from_thread.run(other.put, documents)
        return engine.tree.documents.read("a")

    assert await anyio.to_thread.run_sync(engine.tree.read, read_and_let_write) == b"%d" % ATTEMPTS_MAX
    assert len(tries) == ATTEMPTS_MAX + 1
    await engine.aclose()
    await other.aclose()


async def test_an_append_that_is_cancelled_before_its_turn_is_absent(tmp_path: Path) -> None:
    disk = StuckDisk()
    engine = await open_files(tmp_path, disk=disk)
    disk.is_armed = True
    try:
        first = asyncio.create_task(engine.append("ses_1", 0, [b"x"]))
        assert await anyio.to_thread.run_sync(disk.stuck.wait, WAIT_S)
        second, third = (asyncio.create_task(engine.append(log, 0, [b"x"])) for log in ("ses_2", "ses_3"))
        await asyncio.sleep(0)
        second.cancel()
        assert await asyncio.wait([second]) == ({second}, set())
    finally:
        disk.freed.set()
    await asyncio.gather(first, third)
    assert await engine.logs() == ["ses_1", "ses_3"]
    await engine.aclose()


@pytest.mark.parametrize("pauses", range(8))
async def test_a_cancelled_append_does_not_take_those_beside_it_along(tmp_path: Path, pauses: int) -> None:
    engine = await open_files(tmp_path)
    first = asyncio.create_task(engine.append("ses_1", 0, [b"x"]))
    others = [asyncio.create_task(engine.append(f"ses_{number}", 0, [b"x"])) for number in (2, 3)]
    for _ in range(pauses):
        await asyncio.sleep(0)
    first.cancel()
    assert await asyncio.wait_for(asyncio.gather(*others), WAIT_S) == [None, None]
    assert (await engine.logs())[-2:] == ["ses_2", "ses_3"]
    await engine.aclose()


# Permissions and keys.


async def test_nothing_that_is_created_can_be_read_by_others(tmp_path: Path) -> None:
    program = (
        "import asyncio, os, sys\n"
        "from pathlib import Path\n"
        "from turnkeeper.store.engines.files import open_files\n"
        "async def main():\n"
        "    os.umask(0)\n"
        "    engine = await open_files(Path(sys.argv[1]))\n"
        "    long = ' '.join(f'word{n}' for n in range(60_000))\n"
        "    for n in range(3):\n"
        "        documents = {('a', 'b', str(n)): b'{}', ('raw',): b'x'}\n"
        "        await engine.append('ses_1', n, [b'x'], documents, texts={('t',): long}, fence=n)\n"
        "    open(sys.argv[1] + '/log/ses_1.jsonl', 'a').write('torn')\n"
        "    await engine.append('ses_1', 3, [b'x'])\n"
        "    engine.tree.set_form(2)\n"
        "    await engine.aclose()\n"
        "asyncio.run(main())\n"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "new/store")], check=True)
    made = [tmp_path / "new", *(tmp_path / "new").rglob("*")]
    assert len(made) > 15
    assert {file.name for file in made} >= {"journal", "version", "writers.lock", "words", "aside", "migration"}
    assert [file for file in made if file.stat().st_mode & 0o777 != (0o700 if file.is_dir() else 0o600)] == []


@pytest.mark.parametrize("bad", ["", "a/b", "\x00", "\ud800", "x" * 5000, "é" * 130])
async def test_what_cannot_be_a_key_is_refused_by_every_call_and_nothing_is_written(tmp_path: Path, bad: str) -> None:
    engine = await open_files(tmp_path)
    key: Key = ("a", bad)
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: engine.append(bad, 0, [b"x"]),
        lambda: engine.append("ses_1", 0, [b"x"], {key: b"x"}),
        lambda: engine.append("ses_1", 0, [b"x"], texts={key: "x"}),
        lambda: engine.put({("a",): b"x", key: b"x"}),
        lambda: engine.put({key: None}),
        lambda: engine.update(key, lambda body: b"x"),
        lambda: engine.read(bad),
        lambda: engine.length(bad),
        lambda: engine.fence(bad),
        lambda: engine.get([key]),
        lambda: engine.scan(key),
        lambda: engine.gather([key]),
        lambda: engine.keys(key),
        lambda: engine.remove({bad: 0}, []),
        lambda: engine.remove({}, [key]),
        lambda: engine.remove({}, [], orphans={key: ("a",)}),
        lambda: engine.remove({}, [], orphans={("a",): key}),
    ]
    for call in calls:
        with pytest.raises(InvalidKey) as refusal:
            await call()
        assert len(str(refusal.value)) < 400
    assert await engine.scan(()) == []
    assert await engine.logs() == []
    await engine.aclose()


def test_a_search_below_a_prefix_reads_the_removals_of_what_is_above_it(tmp_path: Path) -> None:
    index = FileWords(str(tmp_path / "words"), Disk())
    index.add([], [("text/a/1", "tide"), ("text/a/2", "tide"), ("text/ab/1", "tide"), ("text/ü/1", "tide")])
    assert index.search(["tide"], "text/a/", 9) == ["text/a/2", "text/a/1"]
    assert index.search(["tide"], "text/ü/", 9) == ["text/ü/1"]
    index.add(["text"], [("text/a/1", "tide")])
    assert index.search(["tide"], "text/a/", 9) == ["text/a/1"]
    assert index.search(["tide"], "", 9) == ["text/a/1"]

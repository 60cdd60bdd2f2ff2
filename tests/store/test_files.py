"""The files engine: what its tree looks like, what survives a kill or a full disk, and who waits for whom."""

import asyncio
import errno
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from turnkeeper.store.crash import POINTS
from turnkeeper.store.engine import EngineError, Key, StoreUnavailable
from turnkeeper.store.engines import open_engine
from turnkeeper.store.engines.file_disk import Disk
from turnkeeper.store.engines.file_journal import Intent, record, records
from turnkeeper.store.engines.file_lock import FileLock
from turnkeeper.store.engines.files import FilesEngine, open_files
from turnkeeper.testing.engine_contract import StoreUnderTest
from turnkeeper.testing.engine_contract.processes import check_streamed, kill_after, read_acknowledged

WRITE_POINTS = [point for point in POINTS if point.startswith("files.") and "migration" not in point]
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
        "migration",
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
    assert (tmp_path / "migration").read_text() == "2"


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
    with pytest.raises(StoreUnavailable, match="damaged"):
        await other.get([("a", "broken")])
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
    assert len((await engine.inspect())["problems"]) == 1  # type: ignore[arg-type]
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


@pytest.mark.parametrize(
    "point", ["files.staged", "files.intent-synced", "files.document-placed", "files.checkpoint-synced"]
)
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
@pytest.mark.parametrize("seed", range(10))
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


def test_a_journal_is_read_up_to_the_first_record_that_is_not_whole() -> None:
    intents = [Intent(documents=[(f"a/{number}", b"x" * number)]) for number in range(4)]
    data = b"".join(record(number + 7, intent) for number, intent in enumerate(intents))
    ends = [end for _, end, _ in records(data)]
    assert [(number, intent) for number, _, intent in records(data)] == list(enumerate(intents, 7))
    for cut in range(len(data)):
        assert len(list(records(data[:cut]))) == len([end for end in ends if end <= cut])
    for position in range(len(data)):
        flipped = data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :]
        whole = len([end for end in ends if end <= position])
        assert [intent for _, _, intent in records(flipped)] == intents[:whole]


def test_the_rest_of_an_older_journal_is_not_taken_for_this_one() -> None:
    newer, older = record(9, Intent(removed_logs=["a"])), record(4, Intent(removed_logs=["b"]))
    assert [number for number, _, _ in records(newer + older)] == [9]


async def test_a_record_that_was_cut_while_it_was_written_is_dropped(tmp_path: Path) -> None:
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one"])
    journal = tmp_path / ".store/journal"
    cut = record(2, Intent(log="ses_1", after=1, entries=[b"never"]))[:-1]
    journal.write_bytes(journal.read_bytes() + cut)
    await engine.append("ses_1", 1, [b"two"])
    journal.write_bytes(journal.read_bytes() + cut)
    reopened = await open_files(tmp_path)
    assert await reopened.read("ses_1") == [b"one", b"two"]
    assert journal.read_bytes() == b""
    journal.write_bytes(cut)
    await engine.append("ses_1", 2, [b"three"])
    await engine.aclose()
    await reopened.aclose()
    journal.write_bytes(cut)
    last = await open_files(tmp_path)
    assert await last.read("ses_1") == [b"one", b"two", b"three"]
    assert journal.read_bytes() == b""
    await last.aclose()


@pytest.mark.parametrize("keep", [0.0, 0.3, 0.5, 0.9, 1.0])
async def test_after_a_power_cut_the_journal_brings_back_what_the_files_have_lost(tmp_path: Path, keep: float) -> None:
    """A power cut is played by taking away or cutting files that were written but never flushed."""
    engine = await open_files(tmp_path)
    await engine.append("ses_1", 0, [b"one"], {("a", "kept"): b'{"old":1}', ("a", "gone"): b"1"})
    await engine.aclose()
    engine = await open_files(tmp_path)
    for number in range(2, 12):
        documents = {("a", "kept"): b'{"new":%d}' % number, ("b", f"{number}"): b"%d" % number, ("a", "gone"): None}
        await engine.append("ses_1", number - 1, [b"%d" % number], documents, texts={("b", f"{number}"): "pear"})
    chance = random.Random(keep)
    for file in [*(tmp_path / "b").iterdir(), tmp_path / "a/kept.json", tmp_path / ".store/words"]:
        os.truncate(file, int(file.stat().st_size * keep * chance.random()))
    os.truncate(tmp_path / "log/ses_1.jsonl", len(b"one\n"))
    os.truncate(tmp_path / ".store/index/ses_1", 24)
    (tmp_path / "a/gone.json").write_text("1")
    if keep < 0.5:
        (tmp_path / ".store/state").unlink()
    reopened = await open_files(tmp_path)
    assert await reopened.read("ses_1") == [b"one", *(b"%d" % number for number in range(2, 12))]
    assert await reopened.get([("a", "kept"), ("a", "gone")]) == [b'{"new":11}', None]
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
        engine = await open_files(tmp_path / str(call), disk=disk)
        await engine.append("ses_1", 0, [b"one"], {("a", "kept"): b"old", ("a", "gone"): b"1"}, fence=1)
        disk.left = call
        is_acknowledged = await try_to_write(engine)
        disk.left = None
        is_there = await whole_or_absent(engine)
        assert is_there or not is_acknowledged
        await engine.aclose()


async def test_a_write_that_does_not_fit_does_not_hurt_those_beside_it(tmp_path: Path) -> None:
    class SmallDisk(Disk):
        def create(self, target: str, body: bytes) -> None:
            if len(body) > 1000:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)
            super().create(target, body)

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


async def test_what_could_not_be_flushed_is_written_again_before_the_journal_is_emptied(tmp_path: Path) -> None:
    """After a flush has failed, the system may drop what it held although the next flush succeeds."""

    class ForgetfulDisk(Disk):
        fails = 0

        def about_to(self, action: str, target: str) -> None:
            if action == "flush" and target.endswith("a.json"):
                self.fails += 1
                if self.fails == 1:
                    os.truncate(target, 0)
                    raise OSError(errno.EIO, os.strerror(errno.EIO), target)

    disk = ForgetfulDisk()
    engine = await open_files(tmp_path, disk=disk)
    await engine.put({("a",): b'{"n":1}'})
    await anyio.to_thread.run_sync(engine.tree.checkpoint)
    assert disk.fails == 1
    assert await engine.get([("a",)]) == [b'{"n":1}']
    await engine.aclose()
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
    with pytest.raises(StoreUnavailable, match="the disk said no"):
        await open_files(tmp_path / "file")


# Locks.


def test_readers_share_a_lock_and_a_writer_has_it_alone(tmp_path: Path) -> None:
    lock = FileLock(str(tmp_path), "x", wait_s=0.05)
    with lock.shared(), lock.shared(), pytest.raises(StoreUnavailable, match="has held"), lock.exclusive():
        pass
    with lock.exclusive():
        with pytest.raises(StoreUnavailable), lock.shared():
            pass
        with pytest.raises(StoreUnavailable), lock.exclusive():
            pass
    with lock.exclusive():
        pass


def test_a_lock_holds_between_processes_and_ends_with_its_holder(tmp_path: Path) -> None:
    program = (
        "import sys\n"
        "from turnkeeper.store.engines.file_lock import FileLock\n"
        "with getattr(FileLock(sys.argv[1], 'x'), sys.argv[2])():\n"
        "    sys.stdout.write('held\\n'); sys.stdout.flush(); sys.stdin.read()\n"
    )
    impatient = FileLock(str(tmp_path), "x", wait_s=0.05)
    for mode, is_shared in (("exclusive", False), ("shared", True)):
        command = [sys.executable, "-c", program, str(tmp_path), mode]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            assert child.stdout.readline() == "held\n"
            with pytest.raises(StoreUnavailable), impatient.exclusive():
                pass
            if is_shared:
                with impatient.shared():
                    pass
            else:
                with pytest.raises(StoreUnavailable), impatient.shared():
                    pass
            child.kill()
        with FileLock(str(tmp_path), "x").exclusive():
            pass


def test_a_waiting_writer_is_not_starved_by_readers_that_keep_coming(tmp_path: Path) -> None:
    lock = FileLock(str(tmp_path), "x", wait_s=WAIT_S)
    done = threading.Event()
    reading = threading.Semaphore(0)

    def read() -> None:
        # Two hands: the next lock is taken before the last one is let go, so there is always a reader.
        held = lock.shared()
        held.__enter__()
        reading.release()
        while not done.is_set():
            following = FileLock(str(tmp_path), "x", wait_s=0.01).shared()
            try:
                following.__enter__()
            except StoreUnavailable:
                # Nobody new is let in while a writer waits; a patient reader lets go of its old lock.
                held.__exit__(None, None, None)
                held = lock.shared()
                held.__enter__()
                continue
            held.__exit__(None, None, None)
            held = following
        held.__exit__(None, None, None)

    readers = [threading.Thread(target=read) for _ in range(3)]
    for reader in readers:
        reader.start()
        reading.acquire()
    try:
        with lock.exclusive():
            done.set()
    finally:
        done.set()
        for reader in readers:
            reader.join()


class StuckDisk(Disk):
    """A disk that, once armed, does not come back from a flush before it is freed."""

    def __init__(self) -> None:
        self.is_armed = False
        self.stuck, self.freed = threading.Event(), threading.Event()

    def about_to(self, action: str, target: str) -> None:
        if self.is_armed and action == "flush":
            self.stuck.set()
            assert self.freed.wait(WAIT_S)


async def test_a_reader_does_not_wait_while_a_writer_waits_for_the_disk(tmp_path: Path) -> None:
    disk = StuckDisk()
    engine = await open_files(tmp_path, disk=disk)
    await engine.append("ses_1", 0, [b"one"], {("a",): b"old"})
    disk.is_armed = True
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(engine.append, "ses_1", 1, [b"two"], {("a",): b"new"})
            assert await anyio.to_thread.run_sync(disk.stuck.wait, WAIT_S)
            assert await engine.read("ses_1") == [b"one"]
            assert await engine.get([("a",)]) == [b"old"]
            assert await engine.scan(()) == [(("a",), b"old")]
            disk.freed.set()
    finally:
        disk.freed.set()
    assert await engine.get([("a",)]) == [b"new"]
    await engine.aclose()


async def test_nothing_is_put_in_place_while_a_reader_is_in(tmp_path: Path) -> None:
    class WatchedDisk(Disk):
        def __init__(self) -> None:
            self.committed, self.placing = threading.Event(), threading.Event()

        def about_to(self, action: str, target: str) -> None:
            if action == "rename":
                self.placing.set()
            if action == "flush":
                self.committed.set()

    disk = WatchedDisk()
    engine = await open_files(tmp_path, disk=disk)
    await engine.put({("a",): b"old", ("b",): b"old"})
    disk.committed.clear()
    disk.placing.clear()

    def read_slowly() -> tuple[bytes | None, bytes | None]:
        with engine.tree.reading():
            first = engine.tree.documents.read("a")
            entered.set()
            assert disk.committed.wait(WAIT_S)
            assert not disk.placing.wait(0.1)
            return first, engine.tree.documents.read("b")

    entered = threading.Event()
    found: list[tuple[bytes | None, bytes | None]] = []

    async def read() -> None:
        found.append(await anyio.to_thread.run_sync(read_slowly))

    async with anyio.create_task_group() as group:
        group.start_soon(read)
        assert await anyio.to_thread.run_sync(entered.wait, WAIT_S)
        await engine.put({("a",): b"new", ("b",): b"new"})
    assert found == [(b"old", b"old")]
    assert await engine.get([("a",), ("b",)]) == [b"new", b"new"]
    await engine.aclose()


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
    assert await asyncio.gather(first, third) == [None, None]
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


async def test_appends_that_come_together_share_a_flush(tmp_path: Path) -> None:
    class CountingDisk(Disk):
        flushes = 0

        def about_to(self, action: str, target: str) -> None:
            self.flushes += action == "flush" and target.endswith("journal")

    disk = CountingDisk()
    engine = await open_files(tmp_path, disk=disk)
    disk.flushes = 0
    async with anyio.create_task_group() as group:
        for number in range(32):
            group.start_soon(engine.append, f"ses_{number}", 0, [b"x"])
    assert disk.flushes <= 2
    assert len(await engine.logs()) == 32
    await engine.aclose()

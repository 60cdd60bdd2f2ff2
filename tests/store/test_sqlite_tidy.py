"""What the SQLite engine does between writes: old entries are packed, words indexed, and all reads as before."""

import asyncio
import itertools
import shutil
import sqlite3
import subprocess
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import Key
from turnkeeper.store.engines.jobs import Append
from turnkeeper.store.engines.sqlite import SqliteEngine
from turnkeeper.store.engines.sqlite.connection import StoreFile
from turnkeeper.store.engines.sqlite.entries import ENTRIES_PER_PACK, UNPACKED_MIN
from turnkeeper.store.engines.sqlite.tidy import Tidying
from turnkeeper.store.engines.sqlite.words import CHANGES_PER_PIECE, QUEUE_MIN
from turnkeeper.store.engines.sqlite.write import WriteConnection
from turnkeeper.store.sqlite_layout import LAYOUT, open_sqlite


def entry(number: int) -> bytes:
    return b'{"seq":%d,"prev":"","time":%d,"type":"noted","data":{"n":%d}}' % (number, number, number)


PACK, TAIL = ENTRIES_PER_PACK, UNPACKED_MIN
LENGTH = 3 * PACK + TAIL + 7
ENTRIES = [entry(number) for number in range(1, LENGTH + 1)]


def ask(path: Path, sql: str) -> list[tuple[Any, ...]]:
    with closing(apsw.Connection(str(path))) as reader:
        return reader.execute(sql).fetchall()


async def open_tidying(path: Path, crash: Callable[[str], None] = crash_point) -> SqliteEngine:
    """A store that is tidied after every write, without a pause."""
    return await open_sqlite(path, tidy_share=1, crash=crash)


async def wait_for(path: Path, sql: str) -> None:
    """Wait until a statement finds something: tidying is done in the background."""
    with anyio.fail_after(60):
        while not ask(path, sql)[0][0]:
            await asyncio.sleep(0)


async def fill(path: Path, entries: list[bytes] = ENTRIES) -> None:
    """A log that is packed, if it can be."""
    engine = await open_tidying(path)
    for begin in range(0, len(entries), 50):
        await engine.append("ses_1", begin, entries[begin : begin + 50])
    await engine.aclose()
    # Opened again, for the first one may have been closed before it was tidied.
    engine = await open_tidying(path)
    await engine.append("ses_1", len(entries), [entry(len(entries) + 1)])
    if b"\n" not in entries[0]:
        await wait_for(path, "SELECT count(*) = 3 FROM packed")
    await engine.aclose()


async def test_a_long_log_is_packed_but_for_its_end(tmp_path: Path) -> None:
    await fill(tmp_path / "store")
    [(runs, last)] = ask(tmp_path / "store", "SELECT count(*), max(id) & 4294967295 FROM packed")
    [(plain, first)] = ask(tmp_path / "store", "SELECT count(*), min(id) & 4294967295 FROM entry")
    assert (runs, last, first, plain) == (3, 3 * PACK, 3 * PACK + 1, LENGTH + 1 - 3 * PACK)
    assert plain >= TAIL


async def test_a_packed_log_reads_as_it_was_written_from_every_place(tmp_path: Path) -> None:
    await fill(tmp_path / "store")
    engine = await open_tidying(tmp_path / "store")
    whole = [*ENTRIES, entry(LENGTH + 1)]
    assert await engine.length("ses_1") == len(whole)
    assert await engine.read("ses_1") == whole
    for after in (0, 1, PACK - 1, PACK, PACK + 1, 3 * PACK - 1, 3 * PACK, 3 * PACK + 1, LENGTH, LENGTH + 1, LENGTH + 9):
        assert await engine.read("ses_1", after=after) == whole[after:]
        for limit in (0, 1, 2, PACK, PACK + 1, 2 * PACK, LENGTH * 2):
            assert await engine.read("ses_1", after=after, limit=limit) == whole[after : after + limit]
    await engine.aclose()


async def test_a_log_goes_with_what_is_packed_of_it(tmp_path: Path) -> None:
    await fill(tmp_path / "store")
    engine = await open_tidying(tmp_path / "store")
    await engine.remove({"ses_1": LENGTH + 1}, [])
    assert await engine.read("ses_1") == []
    await engine.append("ses_1", 0, [b"anew"])
    assert await engine.read("ses_1") == [b"anew"]
    await engine.aclose()
    assert ask(tmp_path / "store", "SELECT count(*) FROM packed") == [(0,)]


async def test_entries_with_line_breaks_stay_as_they_are(tmp_path: Path) -> None:
    broken = [body + b"\n" for body in ENTRIES]
    await fill(tmp_path / "store", broken)
    engine = await open_tidying(tmp_path / "store")
    assert (await engine.read("ses_1"))[:LENGTH] == broken
    await engine.aclose()
    assert ask(tmp_path / "store", "SELECT count(*) FROM packed") == [(0,)]


class Killed(BaseException):
    """The end of the writer."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("point", ["sqlite.begin-tidying", "sqlite.before-tidied"])
async def test_a_writer_that_dies_while_it_tidies_loses_nothing(tmp_path: Path, point: str) -> None:
    died: list[str] = []

    def crash(passed: str) -> None:
        if passed == point:
            died.append(passed)
            raise Killed
        crash_point(passed)

    engine = await open_tidying(tmp_path / "store", crash)
    await engine.append("ses_1", 0, ENTRIES, texts={("t", str(n)): f"word{n}" for n in range(3)})
    await engine.aclose()
    assert died == [point]
    engine = await open_tidying(tmp_path / "store")
    assert await engine.read("ses_1") == ENTRIES
    assert await engine.search("word1", ()) == [("t", "1")]
    await engine.aclose()


async def test_words_are_found_before_and_after_they_are_indexed(tmp_path: Path) -> None:
    engine = await open_tidying(tmp_path / "store")
    names = [("t", f"{number:03d}") for number in range(3 * QUEUE_MIN)]
    for number, name in enumerate(names):
        await engine.append("ses_1", number, [b"x"], texts={name: f"tide table {number}"})
        if number in (0, QUEUE_MIN // 2, QUEUE_MIN, QUEUE_MIN + 1, 2 * QUEUE_MIN + 3):
            assert await engine.search("tab ti", ("t",), limit=1000) == names[number::-1]
    assert await engine.search("tide", ("t",), limit=5) == names[:-6:-1]
    assert await engine.search("able", ("t",)) == []  # The end of a word is not its beginning.
    with anyio.fail_after(60):
        while ask(tmp_path / "store", "SELECT count(*) FROM word_queue")[0][0] >= QUEUE_MIN:
            assert await engine.search("tide", ("t",), limit=5) == names[:-6:-1]
    await engine.aclose()
    [(texts, indexed, fresh)] = ask(
        tmp_path / "store",
        "SELECT (SELECT count(*) FROM text), (SELECT count(*) FROM word_docsize), (SELECT count(*) FROM word_queue)",
    )
    assert (texts, indexed + fresh) == (indexed, len(names))
    assert indexed > 0


async def test_what_short_lives_leave_is_indexed_by_a_later_one(tmp_path: Path) -> None:
    half = QUEUE_MIN // 2
    for life in range(2):
        engine = await open_tidying(tmp_path / "store")
        texts: dict[Key, str | None] = {
            ("t", f"{number:03d}"): "tide" for number in range(life * half, (life + 1) * half)
        }
        await engine.append("ses_1", life, [b"x"], texts=texts)
        if life == 1:
            await wait_for(tmp_path / "store", "SELECT count(*) > 0 FROM text")
        await engine.aclose()
    assert ask(tmp_path / "store", "SELECT count(*) FROM text") == [(2 * half,)]


async def test_many_texts_at_once_are_indexed_in_their_order(tmp_path: Path) -> None:
    engine = await open_tidying(tmp_path / "store")
    await engine.append("ses_1", 0, [b"x"], texts={("t", "old"): "tide"})
    many: dict[Key, str | None] = {("t", f"{number:04d}"): "tide" for number in range(2 * CHANGES_PER_PIECE + 9)}
    await engine.append("ses_1", 1, [b"x"], texts=many)
    newest_first = [*reversed(many), ("t", "old")]
    assert await engine.search("tide", ("t",), limit=9999) == newest_first
    with anyio.fail_after(60):
        while ask(tmp_path / "store", "SELECT count(*) FROM word_queue")[0][0] > QUEUE_MIN:
            assert await engine.search("tide", ("t",), limit=9999) == newest_first
    assert await engine.search("tide", ("t",), limit=9999) == newest_first
    await engine.aclose()


WHOLE = "SELECT session_id, seq, time, type, data FROM event ORDER BY seq"


async def test_people_see_packed_events_too(tmp_path: Path) -> None:
    await fill(tmp_path / "store")
    with closing(sqlite3.connect(tmp_path / "store")) as shell:
        shell.create_function("sqlar_uncompress", 2, lambda packed, size: zlib.decompress(packed))
        found = shell.execute(WHOLE).fetchall()
        tail = shell.execute("SELECT count(*) FROM event_tail").fetchone()
    assert found == [("ses_1", n, n, "noted", f'{{"n":{n}}}') for n in range(1, LENGTH + 2)]
    assert tail == (LENGTH + 1 - 3 * PACK,)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
async def test_the_sqlite3_shell_reads_packed_events(tmp_path: Path) -> None:
    await fill(tmp_path / "store")
    said = subprocess.run(
        ["sqlite3", str(tmp_path / "store"), "SELECT count(*), sum(seq) FROM event"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == f"{LENGTH + 1}|{sum(range(LENGTH + 2))}"


def test_the_last_entries_of_a_log_are_never_packed(tmp_path: Path) -> None:
    file = StoreFile(tmp_path / "store", LAYOUT, busy_timeout_s=1, vfs=None, crash=crash_point)
    file.create()
    connection = WriteConnection(file, Tidying(file, share=1))
    connection.write([Append("ses_1", 0, ENTRIES[: 2 * PACK + TAIL - 1], (), (), None, None)])
    for _ in range(5):
        connection.upkeep()
    assert connection.seconds_until_upkeep() is None
    connection.close()
    assert ask(tmp_path / "store", "SELECT count(*), (SELECT count(*) FROM packed) FROM entry") == [
        (PACK + TAIL - 1, 1)
    ]


def test_the_write_ahead_log_is_copied_into_the_file_before_it_is_long(tmp_path: Path) -> None:
    checkpoints: list[int] = []
    path, written = tmp_path / "store", 0

    def crash(passed: str) -> None:
        if passed == "sqlite.after-checkpoint":
            checkpoints.append(written)

    file = StoreFile(path, LAYOUT, busy_timeout_s=1, vfs=None, crash=crash)
    file.create()
    connection = WriteConnection(file, Tidying(file, share=1, checkpoint_pages=20))
    for written in range(100):
        connection.write([Append("ses_1", written, [b"x" * 4000], (), (), None, None)])
        connection.upkeep()  # As the writer does after every group, also if the next one waits.
    connection.close()
    assert len(checkpoints) > 5
    assert max(after - before for before, after in itertools.pairwise(checkpoints)) < 20


def test_a_piece_of_tidying_is_followed_by_a_pause_of_its_share(tmp_path: Path) -> None:
    file = StoreFile(tmp_path / "store", LAYOUT, busy_timeout_s=1, vfs=None, crash=crash_point)
    file.create()
    connection = WriteConnection(file, Tidying(file, share=1e-9))
    assert connection.seconds_until_upkeep() is None
    many = [(f"t/{number:04d}", "tide") for number in range(4 * CHANGES_PER_PIECE)]
    connection.write([Append("ses_1", 0, [b"x"], (), many, None, None)])
    assert connection.seconds_until_upkeep() == 0
    connection.upkeep()
    connection.upkeep()  # Too early.
    assert (connection.seconds_until_upkeep() or 0) > 1000
    connection.close()
    assert ask(tmp_path / "store", "SELECT count(*) FROM text") == [(CHANGES_PER_PIECE,)]

"""What the SQLite engine does while nobody waits: old entries are packed, words indexed, and all reads as before."""

import asyncio
import itertools
import shutil
import sqlite3
import subprocess
import zlib
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import anyio
import apsw
import pytest

from turnkeeper.store.crash import crash_point
from turnkeeper.store.engines.sqlite import SqliteEngine, open_sqlite
from turnkeeper.store.engines.sqlite_pack import PLAIN, RUN
from turnkeeper.store.engines.sqlite_schema import APPLICATION_ID, MIGRATIONS
from turnkeeper.store.engines.sqlite_words import FRESH_MAX, WORKED_OFF_MAX


def entry(number: int) -> bytes:
    return b'{"seq":%d,"prev":"","time":%d,"type":"noted","data":{"n":%d}}' % (number, number, number)


LENGTH = 3 * RUN + PLAIN + 7
ENTRIES = [entry(number) for number in range(1, LENGTH + 1)]


def ask(path: Path, sql: str) -> list[tuple[int, ...]]:
    with closing(apsw.Connection(str(path))) as reader:
        return reader.execute(sql).fetchall()


async def tidied(engine: SqliteEngine) -> None:
    """Closed, and so done with all that was begun."""
    await engine.aclose()


async def open_resting(path: Path, **given: object) -> SqliteEngine:
    """A store in which nobody is ever in the middle of something."""
    return await open_sqlite(path, rest_s=0.0, **given)  # type: ignore[arg-type] # As it takes them.


def resting() -> Callable[[], float]:
    """A clock that stands still but for a little, whenever somebody looks at it."""
    return itertools.count(100.0, 1 / 1024).__next__


async def filled(path: Path, entries: list[bytes] = ENTRIES) -> None:
    engine = await open_resting(path, clock=resting())
    for begin in range(0, len(entries), 50):
        await engine.append("ses_1", begin, entries[begin : begin + 50])
    await tidied(engine)
    engine = await open_resting(
        path, clock=resting()
    )  # Once more, in case the last one was closed before it came to it.
    await engine.append("ses_1", len(entries), [entry(len(entries) + 1)])
    with anyio.fail_after(60):
        while len(ask(path, "SELECT 1 FROM packed")) < 3 and b"\n" not in entries[0]:
            await asyncio.sleep(0)
    await tidied(engine)


async def test_a_long_log_is_packed_but_for_its_end(tmp_path: Path) -> None:
    await filled(tmp_path / "store")
    [(runs, last)] = ask(tmp_path / "store", "SELECT count(*), max(id) & 4294967295 FROM packed")
    [(plain, first)] = ask(tmp_path / "store", "SELECT count(*), min(id) & 4294967295 FROM entry")
    assert (runs, last, first, plain) == (3, 3 * RUN, 3 * RUN + 1, LENGTH + 1 - 3 * RUN)
    assert plain >= PLAIN


async def test_a_packed_log_reads_as_it_was_written_from_every_place(tmp_path: Path) -> None:
    await filled(tmp_path / "store")
    engine = await open_resting(tmp_path / "store")
    whole = [*ENTRIES, entry(LENGTH + 1)]
    assert await engine.length("ses_1") == len(whole)
    assert await engine.read("ses_1") == whole
    for after in (0, 1, RUN - 1, RUN, RUN + 1, 3 * RUN - 1, 3 * RUN, 3 * RUN + 1, LENGTH, LENGTH + 1, LENGTH + 9):
        assert await engine.read("ses_1", after=after) == whole[after:]
        for limit in (0, 1, 2, RUN, RUN + 1, 2 * RUN, LENGTH * 2):
            assert await engine.read("ses_1", after=after, limit=limit) == whole[after : after + limit]
    await engine.aclose()


async def test_a_log_goes_with_what_is_packed_of_it(tmp_path: Path) -> None:
    await filled(tmp_path / "store")
    engine = await open_resting(tmp_path / "store")
    await engine.remove({"ses_1": LENGTH + 1}, [])
    assert await engine.read("ses_1") == []
    await engine.append("ses_1", 0, [b"anew"])
    assert await engine.read("ses_1") == [b"anew"]
    await engine.aclose()
    assert ask(tmp_path / "store", "SELECT count(*) FROM packed") == [(0,)]


async def test_entries_with_line_breaks_stay_as_they_are(tmp_path: Path) -> None:
    broken = [body + b"\n" for body in ENTRIES]
    await filled(tmp_path / "store", broken)
    engine = await open_resting(tmp_path / "store")
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

    engine = await open_resting(tmp_path / "store", crash=crash, clock=resting())
    await engine.append("ses_1", 0, ENTRIES, texts={("t", str(n)): f"word{n}" for n in range(3)})
    await engine.aclose()
    assert died == [point]
    engine = await open_resting(tmp_path / "store")
    assert await engine.read("ses_1") == ENTRIES
    assert await engine.search("word1", ()) == [("t", "1")]
    await engine.aclose()


async def test_words_are_found_before_and_after_they_are_indexed(tmp_path: Path) -> None:
    engine = await open_resting(tmp_path / "store")
    names = [("t", f"{number:03d}") for number in range(3 * FRESH_MAX)]
    for number, name in enumerate(names):
        await engine.append("ses_1", number, [b"x"], texts={name: f"tide table {number}"})
        if number in (0, FRESH_MAX // 2, FRESH_MAX, FRESH_MAX + 1, 2 * FRESH_MAX + 3):
            assert await engine.search("tab ti", ("t",), limit=1000) == names[number::-1]
    assert await engine.search("tide", ("t",), limit=5) == names[:-6:-1]
    assert await engine.search("able", ("t",)) == []  # The end of a word is not its beginning.
    while ask(tmp_path / "store", "SELECT count(*) FROM fresh")[0][0] >= FRESH_MAX:
        assert await engine.search("tide", ("t",), limit=5) == names[:-6:-1]
    await engine.aclose()
    [(texts, indexed, fresh)] = ask(
        tmp_path / "store",
        "SELECT (SELECT count(*) FROM text), (SELECT count(*) FROM word_docsize), (SELECT count(*) FROM fresh)",
    )
    assert (texts, indexed + fresh) == (indexed, len(names))
    assert indexed > 0


async def test_what_short_lives_leave_is_indexed_by_a_later_one(tmp_path: Path) -> None:
    half = FRESH_MAX // 2
    for life in range(2):
        engine = await open_resting(tmp_path / "store", clock=resting())
        texts = {("t", f"{number:03d}"): "tide" for number in range(life * half, (life + 1) * half)}
        await engine.append("ses_1", life, [b"x"], texts=texts)
        await engine.aclose()
    assert ask(tmp_path / "store", "SELECT count(*) FROM text") == [(2 * half,)]


async def test_many_texts_at_once_are_indexed_in_their_order(tmp_path: Path) -> None:
    engine = await open_resting(tmp_path / "store")
    await engine.append("ses_1", 0, [b"x"], texts={("t", "old"): "tide"})
    many = {("t", f"{number:04d}"): "tide" for number in range(2 * WORKED_OFF_MAX + 9)}
    await engine.append("ses_1", 1, [b"x"], texts=many)
    newest_first = [*reversed(many), ("t", "old")]
    assert await engine.search("tide", ("t",), limit=9999) == newest_first
    while ask(tmp_path / "store", "SELECT count(*) FROM fresh")[0][0] > FRESH_MAX:
        assert await engine.search("tide", ("t",), limit=9999) == newest_first
    assert await engine.search("tide", ("t",), limit=9999) == newest_first
    await engine.aclose()


OLD = {
    "session/global/ses_1": '{"id":"ses_1"}',
    "receipt/msg_1": '{"sessionID":"ses_1"}',
    "receipted/ses_1/msg_1": "{}",
    "recent/store/-/all/000000000000001/ses_1": '{"title":"root"}',
    "recent/store/-/listed/000000000000001/ses_1": '{"title":"root"}',
    "recent/store/-/all/000000000000002/ses_2": '{"title":"child"}',
    "recent/parent/ses_1/all/000000000000002/ses_2": '{"title":"child"}',
}


async def test_a_store_of_the_first_schema_is_brought_to_the_newest(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "store"))) as old:
        old.execute(MIGRATIONS[0])
        old.pragma("application_id", APPLICATION_ID)
        old.pragma("user_version", 1)
        old.executemany("INSERT INTO document (key, value) VALUES (?, ?)", OLD.items())
        old.execute("INSERT INTO log (name) VALUES ('ses_1')")
        old.execute("INSERT INTO entry (log, seq, body) VALUES (1, 1, 'x')")
        old.execute("INSERT INTO text (id, key) VALUES (1, 't/1'); INSERT INTO word (rowid, words) VALUES (1, 'tide')")
    engine = await open_resting(tmp_path / "store")
    assert [key for key, _ in await engine.scan(())] == [
        ("receipt", "msg_1"),
        ("recent", "parent", "ses_1", "unlisted", "000000000000002", "ses_2"),
        ("recent", "store", "-", "listed", "000000000000001", "ses_1"),
        ("recent", "store", "-", "unlisted", "000000000000002", "ses_2"),
        ("session", "global", "ses_1"),
    ]
    assert await engine.read("ses_1") == [b"x"]
    assert await engine.search("tide", ()) == [("t", "1")]
    assert (await engine.inspect())["problems"] == []
    await engine.aclose()


async def test_a_store_of_the_second_schema_is_brought_to_the_newest(tmp_path: Path) -> None:
    with closing(apsw.Connection(str(tmp_path / "store"))) as old:
        old.execute("".join(MIGRATIONS[:2]))
        old.pragma("application_id", APPLICATION_ID)
        old.pragma("user_version", 2)
        old.execute("INSERT INTO log (name) VALUES ('ses_1'), ('ses_2')")
        old.executemany("INSERT INTO entry VALUES (?, ?, ?)", [(2, 2, "d"), (1, 3, "c"), (2, 1, "a")])
        packed = zlib.compress(b"a\nb")
        old.execute("INSERT INTO packed VALUES (1, 2, 3, ?)", (packed,))
        old.execute("INSERT INTO text VALUES (1, 't/1'), (2, 't/2'), (3, 't/3')")
        old.execute("INSERT INTO word (rowid, words) VALUES (1, 'tide')")
        old.execute("INSERT INTO fresh VALUES (3, 'Tide!'), (2, 'Ebb, tide')")
    engine = await open_resting(tmp_path / "store")
    assert (await engine.read("ses_1"), await engine.length("ses_1")) == ([b"a", b"b", b"c"], 3)
    assert await engine.read("ses_2") == [b"a", b"d"]
    assert await engine.search("tide", ()) == [("t", "3"), ("t", "2"), ("t", "1")]
    await engine.append("ses_1", 3, [b"d"], texts={("t", "2"): "said anew"})
    assert await engine.search("tide", ()) == [("t", "3"), ("t", "1")]
    assert (await engine.inspect())["problems"] == []
    await engine.aclose()


WHOLE = "SELECT session_id, seq, time, type, data FROM event ORDER BY seq"


async def test_people_see_packed_events_too(tmp_path: Path) -> None:
    await filled(tmp_path / "store")
    with closing(sqlite3.connect(tmp_path / "store")) as shell:
        shell.create_function("sqlar_uncompress", 2, lambda packed, size: zlib.decompress(packed))
        found = shell.execute(WHOLE).fetchall()
        tail = shell.execute("SELECT count(*) FROM event_tail").fetchone()
    assert found == [("ses_1", n, n, "noted", f'{{"n":{n}}}') for n in range(1, LENGTH + 2)]
    assert tail == (LENGTH + 1 - 3 * RUN,)


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the sqlite3 shell is not installed")
async def test_the_sqlite3_shell_reads_packed_events(tmp_path: Path) -> None:
    await filled(tmp_path / "store")
    said = subprocess.run(
        ["sqlite3", str(tmp_path / "store"), "SELECT count(*), sum(seq) FROM event"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.strip() == f"{LENGTH + 1}|{sum(range(LENGTH + 2))}"

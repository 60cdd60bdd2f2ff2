"""What the SQLite engine promises beyond the contract: shared commits, readable views, clear refusals, patience."""

import asyncio
import json
import os
import sqlite3
import stat
import threading
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path
from typing import Any

import anyio
import apsw
import pytest
from faulty_disk import faulty_disk

from turnkeeper.store.engine import Key, LogConflict, StoreUnavailable
from turnkeeper.store.engines.sqlite import Layout, SqliteEngine
from turnkeeper.store.engines.sqlite.schema import SCHEMA
from turnkeeper.store.engines.sqlite.tidy import TIDY_SHARE
from turnkeeper.store.engines.sqlite.words import QUEUE_MIN
from turnkeeper.store.engines.writer import GROUP_JOBS_MAX
from turnkeeper.store.sqlite_layout import open_sqlite


class Gate:
    """A crash hook that holds the writer inside its first transaction until it is opened, and counts what passes."""

    def __init__(self) -> None:
        self.passed: Counter[str] = Counter()
        self._is_reached, self._is_open = threading.Event(), threading.Event()

    def __call__(self, point: str) -> None:
        self.passed[point] += 1
        if point == "sqlite.begin":
            self._is_reached.set()
            assert self._is_open.wait(30)

    def open(self) -> None:
        self._is_open.set()

    async def wait_until_reached(self) -> None:
        assert await asyncio.to_thread(self._is_reached.wait, 30)


async def settle_down() -> None:
    """Let every task that can run reach its next wait."""
    for _ in range(10):
        await asyncio.sleep(0)


# Group commit


async def test_appends_that_wait_together_share_one_commit_and_one_sync(tmp_path: Path) -> None:
    gate = Gate()
    with faulty_disk("counting") as disk:
        engine = await open_sqlite(tmp_path / "store", vfs=disk.name, crash=gate)
        first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
        await gate.wait_until_reached()
        others = [asyncio.create_task(engine.append(f"ses_{number}", 0, [b"x"])) for number in range(100)]
        await settle_down()
        syncs_before = disk.calls["wal sync"]
        gate.open()
        await asyncio.gather(first, *others)
        # The first was on its way alone; all others came while it was, and went together. A new log has one more.
        assert gate.passed["sqlite.after-commit"] == 2
        assert disk.calls["wal sync"] - syncs_before <= 3
        await engine.aclose()


async def test_every_acknowledged_append_was_synced(tmp_path: Path) -> None:
    with faulty_disk("syncing") as disk:
        engine = await open_sqlite(tmp_path / "store", vfs=disk.name)
        for number in range(10):
            before = disk.calls["wal sync"]
            await engine.append("ses_1", number, [b"x"])
            assert disk.calls["wal sync"] > before
        await engine.aclose()


async def test_a_job_that_cannot_be_written_fails_alone_in_its_group(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
    await gate.wait_until_reached()
    values: list[tuple[str, Any]] = [("1", b"x"), ("not bytes", ["x"]), ("2", b"x")]
    puts = [asyncio.create_task(engine.put({("a", name): value})) for name, value in values]
    await settle_down()
    gate.open()
    answers = await asyncio.gather(first, *puts, return_exceptions=True)
    assert [type(answer) for answer in answers] == [type(None), type(None), TypeError, type(None)]
    assert [key for key, _ in await engine.scan(("a",))] == [("a", "1"), ("a", "2")]
    await engine.aclose()


async def test_a_log_that_is_written_and_removed_in_one_group_is_gone(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
    await gate.wait_until_reached()
    written = asyncio.create_task(engine.append("ses_1", 0, [b"x"], {("a",): b"x"}))
    removed = asyncio.create_task(engine.remove({"ses_1": 1}, [("a",)]))
    await settle_down()
    gate.open()
    await asyncio.gather(first, written, removed)
    assert (await engine.read("ses_1"), await engine.get([("a",)])) == ([], [None])
    assert gate.passed["sqlite.after-commit"] == 2  # Once for the first, and once for both: nothing was done twice.
    await engine.aclose()


async def test_documents_written_twice_in_one_group_have_their_last_value(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
    await gate.wait_until_reached()
    jobs = [
        engine.append("ses_1", 0, [b"1"], {("a",): b"1", ("b",): b"1", ("c",): None}, texts={("a",): "old"}),
        engine.append("ses_1", 1, [b"2"], {("a",): b"2", ("b",): None, ("c",): b"2"}, texts={("a",): "new"}),
        engine.remove({"ses_1": 2}, [("c",)]),
        engine.append("ses_1", 0, [b"3"], {("d",): b"3"}),
    ]
    tasks = [asyncio.create_task(job) for job in jobs]
    await settle_down()
    gate.open()
    await asyncio.gather(first, *tasks)
    assert gate.passed["sqlite.after-commit"] == 2
    assert await engine.scan(()) == [(("a",), b"2"), (("d",), b"3")]
    assert await engine.read("ses_1") == [b"3"]
    assert (await engine.search("old", ()), await engine.search("new", ())) == ([], [("a",)])
    await engine.aclose()


async def test_a_group_has_a_bound(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
    await gate.wait_until_reached()
    count = GROUP_JOBS_MAX * 2 + 1
    others = [asyncio.create_task(engine.put({("a", str(number)): b"x"})) for number in range(count)]
    await settle_down()
    gate.open()
    await asyncio.gather(first, *others)
    assert gate.passed["sqlite.after-commit"] == 4
    await engine.aclose()


async def test_closing_does_what_was_accepted_and_refuses_what_comes_later(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_first", 0, [b"x"]))
    await gate.wait_until_reached()
    count = GROUP_JOBS_MAX * 4
    accepted = [asyncio.create_task(engine.put({("a", str(n)): b"x"})) for n in range(count)]
    await settle_down()
    closing_down = asyncio.create_task(engine.aclose())
    await settle_down()
    late = [asyncio.create_task(engine.put({("b", str(n)): b"x"})) for n in range(10)]
    await settle_down()
    gate.open()
    answers = await asyncio.gather(first, *accepted, *late, closing_down, return_exceptions=True)
    assert Counter(map(type, answers)) == {type(None): count + 2, StoreUnavailable: 10}
    reopened = await open_sqlite(tmp_path / "store")
    assert len(await reopened.scan(("a",))) == count
    assert await reopened.scan(("b",)) == []
    await reopened.aclose()


async def test_an_append_cancelled_before_its_turn_writes_nothing(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_1", 0, [b"x"]))
    await gate.wait_until_reached()
    second = asyncio.create_task(engine.append("ses_2", 0, [b"x"]))
    await settle_down()
    second.cancel()
    await asyncio.wait([second])
    gate.open()
    await first
    await engine.append("ses_3", 0, [b"x"])
    assert await engine.logs() == ["ses_1", "ses_3"]
    await engine.aclose()


async def test_an_append_cancelled_on_its_way_is_whole(tmp_path: Path) -> None:
    gate = Gate()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    first = asyncio.create_task(engine.append("ses_1", 0, [b"x"], {("a",): b"x"}))
    await gate.wait_until_reached()
    first.cancel()
    await asyncio.wait([first])
    gate.open()
    await engine.append("ses_3", 0, [b"x"])
    assert await engine.logs() == ["ses_1", "ses_3"]
    assert await engine.get([("a",)]) == [b"x"]
    await engine.aclose()


async def test_appends_come_from_several_event_loops(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store")

    async def fill(log: str) -> None:
        for number in range(30):
            await engine.append(log, number, [b"%d" % number])

    await asyncio.gather(*[asyncio.to_thread(asyncio.run, fill(f"ses_{number}")) for number in range(3)], fill("ses_3"))
    assert [await engine.length(f"ses_{number}") for number in range(4)] == [30] * 4
    await engine.aclose()


async def test_readers_do_not_wait_for_the_writer(tmp_path: Path) -> None:
    gate = Gate()
    gate.open()
    engine = await open_sqlite(tmp_path / "store", crash=gate)
    await engine.append("ses_1", 0, [b"one"], {("a",): b"x"})
    with other_writer(tmp_path / "store"):
        assert await engine.read("ses_1") == [b"one"]
        assert await engine.get([("a",)]) == [b"x"]
        assert len(await engine.scan(())) == 1
    await engine.aclose()


# Views

SESSION = {
    "id": "ses_1",
    "projectID": "prj_1",
    "title": "Grüße",
    "directory": "/tmp/x",
    "time": {"created": 1000, "updated": 2000, "archived": 3000},
}
USER = {"id": "msg_1", "sessionID": "ses_1", "seq": 2, "role": "user", "time": {"created": 1100}}
ASSISTANT = {
    "id": "msg_2",
    "sessionID": "ses_1",
    "seq": 3,
    "role": "assistant",
    "providerID": "acme",
    "modelID": "large",
    "cost": 0.25,
    "tokens": {"input": 10, "output": 20},
    "time": {"created": 1200, "completed": 1300},
}
TEXT = {"id": "prt_1", "sessionID": "ses_1", "messageID": "msg_1", "seq": 2, "type": "text", "text": "hé 🌍"}
TOOL = {
    "id": "prt_2",
    "sessionID": "ses_1",
    "messageID": "msg_2",
    "seq": 3,
    "type": "tool",
    "tool": "bash",
    "callID": "call_1",
    "state": {"status": "completed"},
}
EVENT = {"seq": 1, "prev": "", "time": 1000, "type": "SessionCreated", "data": {"title": "Grüße"}}


def encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


async def fill_for_people(path: Path) -> None:
    engine = await open_sqlite(path)
    documents: dict[Key, bytes | None] = {
        ("session", "prj_1", "ses_1"): encode(SESSION),
        ("sessions", "not-a-session"): b"not JSON",
        ("message", "ses_1", "msg_1"): encode(USER),
        ("message", "ses_1", "msg_2"): encode(ASSISTANT),
        ("part", "msg_1", "prt_1"): encode(TEXT),
        ("part", "msg_2", "prt_2"): encode(TOOL),
    }
    await engine.append("ses_1", 0, [encode(EVENT)], documents)
    await engine.aclose()


async def test_people_read_a_store_with_plain_sql(tmp_path: Path) -> None:
    await fill_for_people(tmp_path / "store")
    with closing(sqlite3.connect(tmp_path / "store")) as shell:
        ask = shell.execute
        columns = "id, project_id, title, directory, time_created, time_updated, time_archived"
        assert ask(f"SELECT {columns} FROM session").fetchall() == [
            ("ses_1", "prj_1", "Grüße", "/tmp/x", 1000, 2000, 3000)
        ]
        columns = "id, session_id, seq, role, provider_id, model_id, cost, tokens_input, time_completed"
        assert ask(f"SELECT {columns} FROM message ORDER BY seq").fetchall() == [
            ("msg_1", "ses_1", 2, "user", None, None, None, None, None),
            ("msg_2", "ses_1", 3, "assistant", "acme", "large", 0.25, 10, 1300),
        ]
        columns = "id, message_id, seq, type, text, tool, call_id, status"
        assert ask(f"SELECT {columns} FROM part ORDER BY seq").fetchall() == [
            ("prt_1", "msg_1", 2, "text", "hé 🌍", None, None, None),
            ("prt_2", "msg_2", 3, "tool", None, "bash", "call_1", "completed"),
        ]
        assert ask("SELECT session_id, seq, time, type, data, prev FROM event_tail").fetchall() == [
            ("ses_1", 1, 1000, "SessionCreated", '{"title":"Grüße"}', "")
        ]
        assert ask("SELECT typeof(body) FROM entry UNION SELECT typeof(value) FROM document").fetchall() == [("text",)]


@pytest.mark.parametrize("view", ["session", "message", "part"])
async def test_a_view_walks_its_own_documents_only(tmp_path: Path, view: str) -> None:
    await fill_for_people(tmp_path / "store")
    with closing(sqlite3.connect(tmp_path / "store")) as shell:
        plan = shell.execute(f"EXPLAIN QUERY PLAN SELECT * FROM {view}").fetchall()
    assert [row[3].split(" USING ")[0] for row in plan] == ["SEARCH document"]


# Cost


@contextmanager
def counted_steps() -> Iterator[list[int]]:
    """The number of steps of SQLite's machine for each statement that connections opened from now on finish."""
    steps: list[int] = []

    def note(event: dict[str, Any]) -> None:
        # Each reader sets its connection up when it is first asked; that is not the question here.
        if event["sql"].startswith("SELECT"):
            steps.append(event["stmt_status"]["SQLITE_STMTSTATUS_VM_STEP"])

    def watch(connection: apsw.Connection) -> None:
        connection.trace_v2(apsw.SQLITE_TRACE_PROFILE, note)

    apsw.connection_hooks.append(watch)
    try:
        yield steps
    finally:
        apsw.connection_hooks.remove(watch)


async def steps_of_pages(path: Path, neighbours: int) -> list[int]:
    """What pages cost in a store with so many other documents and logs."""
    engine = await open_sqlite(path)
    kinds = ("a", "page", "z")
    documents: dict[Key, bytes | None] = {
        (kind, f"{number:05}"): b"x" for kind in kinds for number in range(neighbours)
    }
    documents |= {("pageful", f"{number:03}"): b"x" for number in range(100)}
    await engine.put(documents)
    for number in range(neighbours // 10):
        await engine.append(f"other_{number:05}", 0, [b"x"])
    await engine.append("ses_1", 0, [b"x"] * 100)
    await engine.aclose()
    with counted_steps() as steps:
        engine = await open_sqlite(path)
        steps.clear()
        await engine.scan(("pageful",), after=("pageful", "050"), limit=20)
        await engine.scan(("pageful",), before=("pageful", "050"), limit=20, reverse=True)
        await engine.scan(("page",), limit=20)
        await engine.get([("pageful", "001"), ("a", "00001")])
        await engine.read("ses_1", after=90)
        await engine.length("ses_1")
        await engine.logs(after="other_00005", limit=3)
        await engine.aclose()
    return steps


async def test_the_cost_of_a_page_does_not_depend_on_what_the_store_holds(tmp_path: Path) -> None:
    small, large = await steps_of_pages(tmp_path / "small", 100), await steps_of_pages(tmp_path / "large", 2000)
    assert len(small) == 7
    assert small == large


# The file


async def test_the_file_is_its_owners_only_and_its_directories_are_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "store.db"
    engine = await open_sqlite(path)
    await engine.append("ses_1", 0, [b"x"])
    modes = {name.name: stat.S_IMODE(name.stat().st_mode) for name in path.parent.iterdir()}
    assert modes == {"store.db": 0o600, "store.db-wal": 0o600, "store.db-shm": 0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    await engine.aclose()


async def test_migrations_run_only_once(tmp_path: Path) -> None:
    for _ in range(3):
        engine = await open_sqlite(tmp_path / "store")
        assert (await engine.inspect())["schema"] == SCHEMA
        await engine.aclose()
        with closing(apsw.Connection(str(tmp_path / "store"))) as reader:
            changes = reader.pragma("schema_version")
            assert reader.pragma("user_version") == SCHEMA
    engine = await open_sqlite(tmp_path / "store")
    await engine.aclose()
    with closing(apsw.Connection(str(tmp_path / "store"))) as reader:
        assert reader.pragma("schema_version") == changes


@pytest.mark.parametrize("later", [(), ("b",), ("ab", "a"), ("a", "b", "c")])
async def test_which_kinds_are_small_is_recorded_in_the_store_and_may_grow(
    tmp_path: Path, later: tuple[str, ...]
) -> None:
    documents: dict[Key, bytes | None] = {(kind, name): b"x" for kind in ("a", "ab", "b") for name in ("1", "2")}
    documents |= {("a",): b"x", ("b",): b"x"}
    engine = await SqliteEngine.open(tmp_path / "store", Layout(small_kinds=("a",)))
    await engine.put(documents)
    await engine.aclose()
    engine = await SqliteEngine.open(tmp_path / "store", Layout(small_kinds=later))
    assert dict(await engine.scan(())) == documents
    assert await engine.get(list(documents)) == list(documents.values())
    assert [len(group) for group in await engine.gather([("a",), ("ab",), ("b",), ()])] == [2, 2, 2, 8]
    await engine.put({("b", "1"): None, ("a", "1"): b"y"})
    await engine.remove({}, [("ab",), ("b", "2")], orphans={("b",): ("b",)})
    assert await engine.scan(()) == [(("a",), b"x"), (("a", "1"), b"y"), (("a", "2"), b"x")]
    await engine.aclose()
    with closing(apsw.Connection(str(tmp_path / "store"))) as reader:
        assert {name for (name,) in reader.execute("SELECT name FROM small_kind")} == {"a", *later}


# Refusals


@contextmanager
def other_writer(path: Path) -> Iterator[None]:
    """Another process, as far as SQLite can tell, in the middle of a long write."""
    with closing(apsw.Connection(str(path))) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


async def test_a_store_locked_for_too_long_is_unavailable_and_then_usable_again(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store", busy_timeout_s=0.01)
    with other_writer(tmp_path / "store"):
        attempts = [engine.append("ses_1", 0, [b"x"]), engine.put({("a",): b"x"})]
        answers = await asyncio.gather(*attempts, return_exceptions=True)
        assert [type(answer) for answer in answers] == [StoreUnavailable] * 2
        assert "another process holds it locked" in str(answers[0])
    await engine.append("ses_1", 0, [b"y"])
    assert await engine.read("ses_1") == [b"y"]
    await engine.aclose()


async def test_an_append_waits_for_another_process_to_finish(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store")
    with other_writer(tmp_path / "store"):
        appending = asyncio.create_task(engine.append("ses_1", 0, [b"x"]))
        await settle_down()
        assert not appending.done()
    await appending
    assert await engine.read("ses_1") == [b"x"]
    await engine.aclose()


def make_text(path: Path) -> None:
    path.write_bytes(b"this is a letter, not a database\n" * 100)


def make_foreign(path: Path) -> None:
    with closing(apsw.Connection(str(path))) as other:
        other.execute("CREATE TABLE theirs (x)")


def make_newer(path: Path) -> None:
    asyncio.run(make_store(path))
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("user_version", SCHEMA + 1)


def make_older(path: Path) -> None:
    """A store of ours whose schema was said to be another one."""
    asyncio.run(make_store(path))
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("user_version", 0)


def make_negative(path: Path) -> None:
    asyncio.run(make_store(path))
    with closing(apsw.Connection(str(path))) as other:
        other.pragma("user_version", -1)


async def make_store(path: Path) -> None:
    engine: SqliteEngine = await open_sqlite(path)
    await engine.aclose()


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (make_text, "not a SQLite database"),
        (make_foreign, "another program's database"),
        (make_newer, "upgrade it"),
        (make_older, "user_version says that it has schema 0, and it has another one"),
        (make_negative, "its user_version is -1, which no Turnkeeper writes"),
        (os.mkdir, "cannot be opened"),
    ],
)
async def test_a_file_that_is_no_store_of_ours_is_refused_and_left_alone(
    tmp_path: Path, make: Callable[[Path], None], reason: str
) -> None:
    path = tmp_path / "store"
    await asyncio.to_thread(make, path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(StoreUnavailable, match=reason) as refusal:
        await open_sqlite(path)
    assert repr(str(path)) in str(refusal.value)
    assert (path.read_bytes() if path.is_file() else None) == before


async def test_a_store_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreUnavailable):
        await open_sqlite(tmp_path / "file" / "store")


async def test_inspection_names_the_damage(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store")
    await engine.append("ses_1", 0, [b"x" * 3000] * 30)
    await engine.aclose()
    damaged = bytearray((tmp_path / "store").read_bytes())
    damaged[-8192:] = b"\xff" * 8192
    (tmp_path / "store").write_bytes(damaged)
    reopened = await open_sqlite(tmp_path / "store")
    assert (await reopened.inspect())["problems"] != []
    await reopened.aclose()


async def test_a_store_that_another_process_writes_to_is_inspected_as_sound(tmp_path: Path) -> None:
    path = tmp_path / "store"
    async with opened(path) as engine, opened(path, tidy_share=1) as other:
        for number in range(3):
            texts: dict[Key, str | None] = {
                ("t", str(number), str(n)): f"word{n} number{number}" for n in range(QUEUE_MIN)
            }
            await other.append("ses_1", number, [b"x"], texts=texts)
            await wait_for_texts(path, QUEUE_MIN * (number + 1))
        for number in range(3):
            # Several at a time, so that each thread that reads knows an older index when its turn comes again.
            found = await asyncio.gather(*(engine.inspect() for _ in range(4)))
            assert [one["problems"] for one in found] == [[]] * 4
            await other.remove({}, [("t", str(number))])
            await wait_for_texts(path, QUEUE_MIN * (2 - number))


async def wait_for_texts(path: Path, count: int) -> None:
    """Wait until so many texts are indexed, which is done in the background."""
    with anyio.fail_after(60):
        while rows_of_texts(path) != [(count, count)]:
            await asyncio.sleep(0)


async def test_a_removed_text_is_not_left_in_the_queue_before_the_index(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store", tidy_share=0)
    await engine.append("ses_1", 0, [b"x"], texts={("t", "1", str(n)): "secret words" for n in range(3)})
    await engine.append("ses_2", 0, [b"x"], texts={("t", "2"): "other words"})
    await engine.remove({"ses_1": 1}, [("t", "1")])
    with closing(apsw.Connection(str(tmp_path / "store"))) as reader:
        assert reader.execute("SELECT key, content FROM word_queue").fetchall() == [("t/2", "other words")]
    await engine.aclose()


async def test_what_a_removal_left_in_the_index_goes_when_the_store_is_next_closed(tmp_path: Path) -> None:
    path = tmp_path / "store"
    texts: dict[Key, str | None] = {("t", "1", str(n)): f"word{n}" for n in range(3 * QUEUE_MIN)}
    async with opened(path) as engine:
        await engine.append("ses_1", 0, [b"x"], texts=texts)
        await wait_for_texts(path, len(texts))
    copy = tmp_path / "copy"
    async with opened(path, tidy_share=0) as engine:
        await engine.remove({"ses_1": 1}, [("t", "1")])
        assert (await engine.inspect())["removedTextsIndexed"] == len(texts)
        with closing(apsw.Connection(str(path))) as reader:
            reader.execute("VACUUM INTO ?", (str(copy),))  # As a process leaves it that is killed now.
    assert rows_of_texts(path) == [(0, 0)]
    async with opened(copy, tidy_share=0) as engine:
        await engine.get([("any",)])
    assert rows_of_texts(copy) == [(0, 0)]


@asynccontextmanager
async def opened(path: Path, *, tidy_share: float = TIDY_SHARE) -> AsyncIterator[SqliteEngine]:
    engine = await open_sqlite(path, tidy_share=tidy_share)
    try:
        yield engine
    finally:
        await engine.aclose()


async def test_texts_that_are_gone_leave_nothing_behind(tmp_path: Path) -> None:
    engine = await open_sqlite(tmp_path / "store")
    await engine.append("ses_1", 0, [b"x"], texts={("t", str(n)): f"word{n}" for n in range(2 * QUEUE_MIN)})
    await engine.append("ses_1", 1, [b"x"], texts={("t", "0"): "other", ("t", "1"): None})
    await engine.remove({}, [("t",)])
    assert await engine.search("word", ()) == []
    with anyio.fail_after(60):
        while rows_of_texts(tmp_path / "store") != [(0, 0)]:  # Removed in the background.
            await asyncio.sleep(0)
    await engine.aclose()


def rows_of_texts(path: Path) -> list[tuple[Any, ...]]:
    """How many texts the store knows of, and of how many the words are kept."""
    with closing(apsw.Connection(str(path))) as reader:
        kept = "(SELECT count(*) FROM word_docsize) + (SELECT count(*) FROM word_queue)"
        sql = f"SELECT (SELECT count(*) FROM text), {kept}"
        return reader.execute(sql).fetchall()


class Broken(BaseException):
    """What no handler for errors expects."""


@pytest.mark.parametrize("point", ["sqlite.begin", "sqlite.after-commit", "sqlite.before-checkpoint"])
async def test_a_writer_that_dies_leaves_nobody_waiting(
    tmp_path: Path, point: str, caplog: pytest.LogCaptureFixture
) -> None:
    gate = Gate()

    def crash(reached: str) -> None:
        gate(reached)
        if reached == point:
            raise Broken

    engine = await open_sqlite(tmp_path / "store", crash=crash, checkpoint_pages=1)
    first = asyncio.create_task(engine.put({("a", "1"): b"x" * 100_000}))
    await gate.wait_until_reached()
    others = [asyncio.create_task(engine.put({("b", str(number)): b"x"})) for number in range(GROUP_JOBS_MAX * 4)]
    await settle_down()
    gate.open()
    async with asyncio.timeout(30):
        outcomes = await asyncio.gather(first, *others, return_exceptions=True)
    assert (outcomes[0] is None) == (point == "sqlite.before-checkpoint")
    assert all(isinstance(one, StoreUnavailable) for one in outcomes[1:])
    with pytest.raises(StoreUnavailable):
        await engine.put({("c",): b"x"})
    assert "ended" in caplog.text
    await engine.aclose()


async def test_a_write_of_another_process_right_behind_a_commit_is_a_conflict_for_the_next_append(
    tmp_path: Path,
) -> None:
    """The length of a log must not be remembered across a commit: what comes right behind it may be another's."""
    other = await open_sqlite(tmp_path / "store", crash=lambda _: None)
    loop = asyncio.get_running_loop()
    committed: list[str] = []

    def between(point: str) -> None:
        if point == "sqlite.after-commit" and not committed:
            committed.append(point)
            asyncio.run_coroutine_threadsafe(other.append("log", 1, [b"theirs"]), loop).result(30)

    ours = await open_sqlite(tmp_path / "store", crash=between)
    await ours.append("log", 0, [b"ours"])
    with pytest.raises(LogConflict):
        await ours.append("log", 1, [b"too late"])
    await ours.append("log", 2, [b"in time"])
    assert await other.read("log") == [b"ours", b"theirs", b"in time"]
    await ours.aclose()
    await other.aclose()

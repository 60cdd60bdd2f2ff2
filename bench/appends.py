"""Durable appends from 32 sessions at once, against raw group commit of the same rows through apsw."""

import time
from pathlib import Path

import anyio
import apsw

import turnkeeper
from bench.data import a_message
from bench.measure import Figure
from turnkeeper.app import Turnkeeper
from turnkeeper.core.entry import Recorded, digest, write
from turnkeeper.mint import Mint
from turnkeeper.model.event import MessageRecorded
from turnkeeper.model.value import encode

SESSIONS, EACH = 32, 60


async def measure(folder: Path) -> list[Figure]:
    """At least half of what raw group commit reaches."""
    ours = max([await _ours(folder / f"ours{n}.db") for n in range(3)])
    floor = max([await anyio.to_thread.run_sync(_raw, folder / f"raw{n}.db") for n in range(3)])
    ratio = ours / floor
    return [
        Figure(
            what=f"durable appends from {SESSIONS} sessions",
            ours=f"{ours:,.0f}/s",
            floor=f"raw apsw group commit {floor:,.0f}/s",
            ratio=ratio,
            aim=">= 0.50",
            good=ratio >= 0.5,
        )
    ]


async def _ours(path: Path) -> float:
    async with turnkeeper.open(f"sqlite:{path}") as tk:
        return await write_all(tk)


async def write_all(tk: Turnkeeper) -> float:
    """Appends a second, if each session waits for one before it makes the next."""
    sessions = [await tk.create() for _ in range(SESSIONS)]

    async def write_one(session_id: str, events: list[MessageRecorded]) -> None:
        for event in events:
            await tk.store.journal.append(session_id, event)

    events = {one.id: [a_message(tk.store.mint, one.id, parts=1) for _ in range(EACH)] for one in sessions}
    start = time.perf_counter()
    async with anyio.create_task_group() as group:
        for session in sessions:
            group.start_soon(write_one, session.id, events[session.id])
    return SESSIONS * EACH / (time.perf_counter() - start)


def _raw(path: Path) -> float:
    """One append of each session per commit, row by row, with nobody to wait for: the least that must be done."""
    connection = apsw.Connection(str(path))
    connection.execute("PRAGMA journal_mode=wal; PRAGMA synchronous=full")
    connection.execute("CREATE TABLE entry(log, seq, body, PRIMARY KEY(log, seq)) WITHOUT ROWID")
    connection.execute("CREATE TABLE document(key PRIMARY KEY, value) WITHOUT ROWID")
    groups = [[rows(number, seq) for number in range(SESSIONS)] for seq in range(1, EACH + 1)]
    start = time.perf_counter()
    for group in groups:
        with connection:
            for entry, documents in group:
                connection.execute("INSERT INTO entry VALUES(?,?,?)", entry)
                connection.executemany("INSERT OR REPLACE INTO document VALUES(?,?)", documents)
    elapsed = time.perf_counter() - start
    connection.close()
    return SESSIONS * EACH / elapsed


_BODY: list[bytes] = []


def rows(number: int, seq: int) -> tuple[tuple[int, int, str], list[tuple[str, str]]]:
    """The rows of one append. Their bytes are made once: the floor pays for keeping them, not for making them."""
    if not _BODY:
        event = a_message(Mint.fixed(), "ses_00000000000000000000000000", parts=1)
        body = encode(event)
        _BODY.extend([write(Recorded(1, 1, event), digest(b""), body), encode(event.message), encode(event.parts[0])])
    entry, message, part = (body.decode() for body in _BODY)
    return (number, seq, entry), [
        (f"message/{number}/{seq}", message),
        (f"order/{number}/{seq:012d}", '"msg_00000000000000000000000000"'),
        (f"part/{number}-{seq}/1", part),
        (f"state/{number}", '{"seq":1,"head":"00000000000000000000000000000000","projectID":"global"}'),
    ]

"""A fork of 1,000 messages with 3 parts each, against a raw copy of the same rows in one transaction."""

import time
from pathlib import Path

import apsw

import turnkeeper
from bench.data import a_session
from bench.measure import Figure, best_of, ms

MESSAGES, PARTS = 1000, 3


async def measure(folder: Path) -> list[Figure]:
    """No slower than twice a raw copy."""
    path = folder / "fork.db"
    async with turnkeeper.open(f"sqlite:{path}") as tk:
        session = await a_session(tk, messages=MESSAGES, parts=PARTS)
        forks: list[str] = []

        async def fork() -> None:
            forks.append((await tk.fork(session.id)).id)

        ours = await best_of(5, fork)
    floor = min(_raw(path, forks[0], folder / f"copy{n}.db") for n in range(5))
    ratio = ours / floor
    return [
        Figure(
            what=f"fork of {MESSAGES:,} messages x {PARTS} parts",
            ours=ms(ours),
            floor=f"raw copy {ms(floor)}",
            ratio=ratio,
            aim="<= 2.00",
            good=ratio <= 2.0,
        )
    ]


def _raw(source: Path, session_id: str, target: Path) -> float:
    """Read the fork's rows, then time reading and writing them row by row into a new file of the same shape."""
    connection = apsw.Connection(str(target))
    connection.execute("PRAGMA journal_mode=wal; PRAGMA synchronous=full")
    connection.execute("ATTACH ? AS source", (str(source),))
    for (sql,) in connection.execute(
        "SELECT sql FROM source.sqlite_schema WHERE sql NOT NULL AND type IN ('table','index')"
        " AND name IN ('log','entry','document','text','word')"
    ).fetchall():
        connection.execute(sql)
    start = time.perf_counter()
    with connection:
        connection.execute("INSERT INTO log SELECT * FROM source.log WHERE name = ?", (session_id,))
        rows = connection.execute(
            "SELECT * FROM source.entry WHERE log = (SELECT id FROM source.log WHERE name = ?)", (session_id,)
        ).fetchall()
        connection.executemany(f"INSERT INTO entry VALUES({','.join('?' * len(rows[0]))})", rows)
        messages = connection.execute(
            "SELECT key, value FROM source.document WHERE key > ? AND key < ?",
            (f"message/{session_id}/", f"message/{session_id}0"),
        ).fetchall()
        order = connection.execute(
            "SELECT key, value FROM source.document WHERE key > ? AND key < ?",
            (f"order/{session_id}/", f"order/{session_id}0"),
        ).fetchall()
        connection.executemany("INSERT INTO document(key, value) VALUES(?,?)", [*messages, *order])
        for key, _ in messages:
            name = str(key).split("/")[-1]
            parts = connection.execute(
                "SELECT key, value FROM source.document WHERE key > ? AND key < ?", (f"part/{name}/", f"part/{name}0")
            ).fetchall()
            connection.executemany("INSERT INTO document(key, value) VALUES(?,?)", parts)
        texts = connection.execute(
            "SELECT id, key FROM source.text WHERE key > ? AND key < ?", (f"text/{session_id}/", f"text/{session_id}0")
        ).fetchall()
        for identifier, key in texts:
            _, _, message, part = (*str(key).split("/"), "")[:4]
            body = connection.execute(
                "SELECT json_extract(value, '$.text') FROM source.document WHERE key = ?", (f"part/{message}/{part}",)
            ).fetchall()
            connection.execute("INSERT INTO text(id, key) VALUES(?,?)", (identifier, key))
            connection.execute("INSERT INTO word(rowid, words) VALUES(?,?)", (identifier, body[0][0] if body else ""))
    elapsed = time.perf_counter() - start
    connection.close()
    return elapsed

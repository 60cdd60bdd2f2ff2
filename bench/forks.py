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
        " AND name IN ('log','entry','packed','document','small_document','word_queue')"
    ).fetchall():
        connection.execute(sql)
    start = time.perf_counter()
    with connection:
        connection.execute("INSERT INTO log SELECT * FROM source.log WHERE name = ?", (session_id,))
        for table in ("entry", "packed"):
            rows = connection.execute(
                f"SELECT * FROM source.{table} WHERE id >> 32 = (SELECT id FROM source.log WHERE name = ?)",
                (session_id,),
            ).fetchall()
            if rows:
                connection.executemany(f"INSERT INTO {table} VALUES({','.join('?' * len(rows[0]))})", rows)
        messages = _below(connection, "document", f"message/{session_id}")
        connection.executemany("INSERT INTO document(key, value) VALUES(?,?)", messages)
        order = _below(connection, "small_document", f"order/{session_id}")
        connection.executemany("INSERT INTO small_document(key, value) VALUES(?,?)", order)
        for key, _ in messages:
            name = key.split("/")[-1]
            parts = _below(connection, "document", f"part/{name}")
            connection.executemany("INSERT INTO document(key, value) VALUES(?,?)", parts)
            connection.executemany(
                "INSERT INTO word_queue(key, content) VALUES(?, json_extract(?, '$.text'))",
                [(f"text/{session_id}/{place.removeprefix('part/')}", value) for place, value in parts],
            )
    elapsed = time.perf_counter() - start
    connection.close()
    return elapsed


def _below(connection: apsw.Connection, table: str, place: str) -> list[tuple[str, str]]:
    rows = connection.execute(
        f"SELECT key, value FROM source.{table} WHERE key > ? AND key < ?", (f"{place}/", f"{place}0")
    ).fetchall()
    return [(str(key), str(value)) for key, value in rows]

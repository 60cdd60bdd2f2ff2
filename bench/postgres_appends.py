"""Durable appends from 32 sessions at once to Postgres, against raw group commit of the same rows through psycopg."""

import time
from pathlib import Path

import anyio
import psycopg

import turnkeeper
from bench.appends import EACH, SESSIONS, rows, write_all
from bench.hosts import database_cpu_s
from bench.measure import Figure, ms
from turnkeeper.store.engines.postgres.address import parse
from turnkeeper.testing.postgres import own_cluster

RUNS = 4


async def measure(folder: Path) -> list[Figure]:
    """At least half of what raw group commit reaches. The server is one from the tests, with its disk synced."""
    with own_cluster(fsync=True) as cluster:
        await _ours(cluster.url())
        ours = floor = here = there = 0.0
        for number in range(RUNS):  # In turn, so that what else the machine does falls on both.
            used, before = time.process_time(), database_cpu_s(cluster.directory)
            ours = max(ours, await _ours(cluster.url()))
            here += time.process_time() - used
            there += database_cpu_s(cluster.directory) - before
            floor = max(floor, await anyio.to_thread.run_sync(_raw, cluster.url(), number))
    ratio, appends = ours / floor, RUNS * SESSIONS * EACH
    return [
        Figure(
            what=f"durable appends from {SESSIONS} sessions to Postgres",
            ours=f"{ours:,.0f}/s",
            floor=f"raw psycopg group commit {floor:,.0f}/s",
            ratio=ratio,
            aim=">= 0.50",
            good=ratio >= 0.5,
        ),
        Figure(
            what="CPU of an append to Postgres",
            ours=ms(here / appends),
            floor=f"in the server {ms(there / appends)}",
            ratio=here / max(there, 0.01),
            aim="told",
            good=True,
        ),
    ]


async def _ours(url: str) -> float:
    async with turnkeeper.open(url) as tk:
        return await write_all(tk)


def _raw(url: str, number: int) -> float:
    """One append of each session per commit, one statement for each table, with nobody to wait for."""
    with psycopg.connect(**parse(url).parameters) as connection:  # type: ignore[arg-type]
        connection.execute(f"CREATE TABLE entry{number}(log int, seq int, body bytea, PRIMARY KEY(log, seq))".encode())
        connection.execute(f'CREATE TABLE document{number}(key text COLLATE "C" PRIMARY KEY, value bytea)'.encode())
        connection.commit()
        entries = f"INSERT INTO entry{number} SELECT * FROM unnest(%s::int[], %s::int[], %s::bytea[])".encode()
        documents = (
            f"INSERT INTO document{number} SELECT * FROM unnest(%s::text[], %s::bytea[])"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value"
        ).encode()
        groups = [[rows(session, seq) for session in range(SESSIONS)] for seq in range(1, EACH + 1)]
        start = time.perf_counter()
        for group in groups:
            logs, seqs, bodies = zip(*(entry for entry, _ in group), strict=True)
            pairs = [pair for _, one in group for pair in one]
            with connection.pipeline():
                connection.execute(entries, (list(logs), list(seqs), [body.encode() for body in bodies]))
                connection.execute(documents, ([key for key, _ in pairs], [value.encode() for _, value in pairs]))
                connection.commit()
        return SESSIONS * EACH / (time.perf_counter() - start)

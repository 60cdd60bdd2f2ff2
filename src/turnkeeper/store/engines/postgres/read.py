"""Reads from a Postgres store: on a few threads, each with a connection of its own, and tried again if that is lost."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

import psycopg

from turnkeeper.store.engines.postgres.connection import Connection, Database, disconnect, is_lost

READ_THREADS: Final = 4
"""Reads under way at once; each thread has one connection to the server."""

T = TypeVar("T")


class PostgresReader:
    """Runs reads for any event loop, several at a time."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._pool = ThreadPoolExecutor(READ_THREADS, "postgres-reader")
        self._idle: list[Connection] = []

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Run a read function on a thread. It may run twice: if the connection was lost the first time."""
        try:
            reading = asyncio.get_running_loop().run_in_executor(self._pool, self._read_here, work)
        except RuntimeError as error:  # The pool was shut down.
            raise self._database.closed() from error
        return await reading

    def offer(self, connection: Connection) -> None:
        """Use a connection for reads that was made for something else."""
        self._idle.append(connection)

    def close(self) -> None:
        """Refuse new reads; accepted reads are finished."""
        self._pool.shutdown(wait=False)

    def join(self) -> None:
        """Block until the last read is finished, and close all connections."""
        self._pool.shutdown()
        self._drop_idle()

    def _read_here(self, work: Callable[[Connection], T]) -> T:
        patience = self._database.patience(self._database.reconnect_s)
        while True:
            connection: Connection | None = None
            try:
                connection = self._take() or self._database.connect()
                return work(connection)
            except psycopg.Error as error:
                if connection is not None and is_lost(error):
                    disconnect(connection)
                    # The others were made before this one was lost, so they probably are too.
                    self._drop_idle()
                if not is_lost(error) or not patience.pause():
                    raise self._database.unavailable(error) from error
            finally:
                if connection is not None and not connection.closed:
                    self._idle.append(connection)

    def _take(self) -> Connection | None:
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _drop_idle(self) -> None:
        while (connection := self._take()) is not None:
            disconnect(connection)

"""News of other processes: after a commit a writer tells the names of its logs (NOTIFY), and listeners hear them.

News may be lost, with a connection or because a process ends between its commit and its NOTIFY. So they only save
time: whoever follows a log also looks now and then. They are sent after the commit and not with it, because Postgres
lets only one transaction with a NOTIFY commit at a time.
"""

import asyncio
import select
import socket
import threading
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import suppress
from hashlib import sha256
from typing import Final

import psycopg

from turnkeeper.store.engines.postgres.connection import PAUSE_MAX_S, Connection, Database, disconnect

PAYLOAD_BYTES_MAX: Final = 7900
"""Postgres takes payloads below 8,000 bytes."""
NAMES_MAX: Final = 2000
"""If more logs were written at once, listeners are told to look at all."""
PROBE_S: Final = 20.0
"""Seconds of silence after which a listener asks whether its connection still works."""
ALL: Final = "*"

Heard = Callable[[Collection[str] | None], None]
"""Is called with the logs that other processes have written; None if it may be any."""


def channel(database: Database) -> str:
    """The channel of this store. Channels belong to the database, which may hold more stores."""
    return f"turnkeeper_{sha256(database.address.schema.encode()).hexdigest()[:16]}"


def tell(connection: Connection, database: Database, writer: bytes, names: Iterable[str]) -> None:
    """Tell all listeners that these logs were written."""
    connection.execute(
        "SELECT pg_notify(%s, news) FROM unnest(%s::text[]) AS news",
        (channel(database), list(_payloads(writer.hex(), list(dict.fromkeys(names))))),
    )


def _payloads(writer: str, names: list[str]) -> Iterator[str]:
    if len(names) > NAMES_MAX:
        names = [ALL]
    payload = writer
    for name in names:
        if len(payload.encode()) + 1 + len(name.encode()) > PAYLOAD_BYTES_MAX:
            yield payload
            payload = writer
        payload += f"\n{name}"
    yield payload


class Listener:
    """A thread that waits for news and hands them to event loops. It starts with the first who wants to hear."""

    def __init__(self, database: Database, writer: bytes) -> None:
        self._database, self._own = database, writer.hex()
        self._lock = threading.Lock()
        self._hearing: dict[object, tuple[asyncio.AbstractEventLoop, Heard]] = {}
        self._thread: threading.Thread | None = None
        self._end: socket.socket | None = None
        """Something is sent here to wake the thread when it is to end."""

    def watch(self, heard: Heard) -> Callable[[], None]:
        """Call ``heard`` on this event loop until the returned function is called."""
        mark = object()
        with self._lock:
            self._hearing[mark] = asyncio.get_running_loop(), heard
            if self._thread is None and not self._database.closing.is_set():
                ended, self._end = socket.socketpair()
                self._thread = threading.Thread(target=self._run, args=(ended,), name="postgres-listener", daemon=True)
                self._thread.start()

        def end() -> None:
            with self._lock:
                self._hearing.pop(mark, None)

        return end

    def close(self) -> None:
        """End the thread. Call it after ``database.closing`` is set."""
        with suppress(OSError):
            if self._end is not None:
                self._end.send(b".")

    def join(self) -> None:
        """Block until the thread has ended."""
        if self._thread is not None:
            self._thread.join()
        if self._end is not None:
            self._end.close()

    # What follows runs on the listener's thread.

    def _run(self, ended: socket.socket) -> None:
        with ended:
            while not self._database.closing.is_set():
                try:
                    connection = self._database.connect()
                except psycopg.Error:
                    self._database.closing.wait(PAUSE_MAX_S)
                    continue
                try:
                    self._listen(connection, ended)
                except (psycopg.Error, OSError):
                    pass  # Connect again, and tell everybody to look.
                finally:
                    disconnect(connection)

    def _listen(self, connection: Connection, ended: socket.socket) -> None:
        connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel(self._database))))
        self._spread(None)  # What was written before LISTEN was not heard.
        while not self._database.closing.is_set():
            ready, _, _ = select.select([connection.fileno(), ended.fileno()], [], [], PROBE_S)
            if not ready:
                connection.execute("SELECT 1")
            connection.pgconn.consume_input()
            names: dict[str, None] = {}
            while (news := connection.pgconn.notifies()) is not None:
                writer, *told = news.extra.decode().split("\n")
                if writer != self._own:
                    names.update(dict.fromkeys(told))
            if names:
                self._spread(None if ALL in names else list(names))

    def _spread(self, names: Collection[str] | None) -> None:
        with self._lock:
            hearing = list(self._hearing.values())
        for loop, heard in hearing:
            with suppress(RuntimeError):  # The event loop has ended.
                loop.call_soon_threadsafe(heard, names)

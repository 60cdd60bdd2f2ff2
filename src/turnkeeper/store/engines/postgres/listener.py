"""The listener of a Postgres store: a thread with a connection on which processes hear each other.

It hears news of writes (``news.py``) and of jobs (``job_queue.py``), and hears and sends passing messages
(``live.py``). All of them may be lost with the connection; it is made again, and followers of logs are told to
look at all of them.
"""

import asyncio
import logging
import selectors
import socket
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

import psycopg
from psycopg import sql

from turnkeeper.store.engines.postgres import live, news
from turnkeeper.store.engines.postgres.connection import PAUSE_FIRST_S, PAUSE_MAX_S, Connection, Database, disconnect
from turnkeeper.store.engines.postgres.notify import notify, packed, unpacked

PROBE_S: Final = 20.0
"""Seconds of silence after which the listener asks whether its connection still works."""
INBOX_MAX: Final = 4096
"""Messages that wait for an event loop which is busy; what comes on top is dropped."""

T = TypeVar("T")

log = logging.getLogger(__name__)


class _Inbox(Generic[T]):
    """The notifications for one receiver, queued for its event loop. Bounded, unlike the loop's own queue."""

    def __init__(self, receive: Callable[[list[T]], None]) -> None:
        self._loop, self._receive = asyncio.get_running_loop(), receive
        self._lock = threading.Lock()
        self._waiting: list[T] = []

    def put(self, heard: Sequence[T]) -> None:
        """Called on the listener's thread."""
        with self._lock:
            is_first = not self._waiting
            self._waiting += heard[: INBOX_MAX - len(self._waiting)]
        if is_first:
            with suppress(RuntimeError):  # The event loop has ended.
                self._loop.call_soon_threadsafe(self._deliver)

    def _deliver(self) -> None:
        with self._lock:
            waiting, self._waiting = self._waiting, []
        self._receive(waiting)


class Listener:
    """Starts its thread with the first who wants to hear or send."""

    def __init__(self, database: Database, writer: bytes) -> None:
        self.database, self.own = database, writer.hex()
        self.lock = threading.Lock()
        """Held while one of the following three is changed or copied."""
        self.watching: dict[object, tuple[asyncio.AbstractEventLoop, news.Heard]] = {}
        self.hearing: dict[object, _Inbox[str]] = {}
        self.noticing: dict[object, tuple[frozenset[str], asyncio.AbstractEventLoop, Callable[[], None]]] = {}
        self.outbox = live.Outbox()
        self._thread: threading.Thread | None = None
        self._bell: socket.socket | None = None
        """Something is sent here to wake the thread."""

    def watch(self, heard: news.Heard) -> Callable[[], None]:
        """Call ``heard`` on this event loop with news, until the returned function is called."""
        return self._add(self.watching, (asyncio.get_running_loop(), heard))

    def hear(self, heard: Callable[[Sequence[str]], None]) -> Callable[[], None]:
        """Call ``heard`` on this event loop with messages, until the returned function is called."""
        return self._add(self.hearing, _Inbox(heard))

    def notice(self, channels: Iterable[str], heard: Callable[[], None]) -> Callable[[], None]:
        """Call ``heard`` on this event loop after a NOTIFY on one of these channels, until the returned one is called.

        It is also called when the connection was made again, because something may have been missed.
        """
        return self._add(self.noticing, (frozenset(channels), asyncio.get_running_loop(), heard))

    def is_heard(self) -> bool:
        """See Messenger.is_heard."""
        if not self.outbox.is_used:
            self.outbox.is_used = True
            self._wake()
        return self.outbox.is_heard()

    def send(self, messages: Sequence[str]) -> int:
        """See Messenger.send."""
        dropped = self.outbox.add(messages)
        self._wake()
        return dropped

    def close(self) -> None:
        """End the thread. Call it after ``database.closing`` is set."""
        self._ring()

    def join(self) -> None:
        """Block until the thread has ended."""
        if self._thread is not None:
            self._thread.join()
        if self._bell is not None:
            self._bell.close()

    def _add(self, listed: dict[object, T], one: T) -> Callable[[], None]:
        mark = object()
        with self.lock:
            listed[mark] = one
        self._wake()

        def end() -> None:
            with self.lock:
                listed.pop(mark, None)
            self._ring()

        return end

    def _wake(self) -> None:
        """Wake the thread, or start it."""
        with self.lock:
            if self._thread is None and not self.database.closing.is_set():
                woken, self._bell = socket.socketpair()
                woken.setblocking(False)
                self._bell.setblocking(False)
                self._thread = threading.Thread(target=self._run, args=(woken,), name="postgres-listener", daemon=True)
                self._thread.start()
        self._ring()

    def _ring(self) -> None:
        with suppress(OSError):  # The thread has ended, or enough rings wait for it.
            if self._bell is not None:
                self._bell.send(b".")

    # What follows runs on the listener's thread.

    def _run(self, woken: socket.socket) -> None:
        with woken:
            while not self.database.closing.is_set():
                try:
                    connection = self.database.connect()
                except psycopg.Error:
                    self.database.closing.wait(PAUSE_MAX_S)
                    continue
                try:
                    _Line(self, connection, woken).work()
                except (psycopg.Error, OSError) as error:
                    # Connect again, and tell everybody to look.
                    log.debug(
                        "the listener's connection is lost: %s", self.database.address.without_password(str(error))
                    )
                    self.database.closing.wait(PAUSE_FIRST_S)
                finally:
                    disconnect(connection)


class _Line:
    """One connection of a listener."""

    def __init__(self, listener: Listener, connection: Connection, woken: socket.socket) -> None:
        self._listener, self._connection, self._woken = listener, connection, woken
        self._database = listener.database
        self._news = news.channel(self._database)
        self._channels: live.Channels | None = None
        self._listened: set[str] = set()
        self._heard: defaultdict[str, list[str]] = defaultdict(list)
        self._greets_at = 0.0
        # They also arrive with the answers to statements.
        connection.add_notify_handler(lambda one: self._heard[one.channel].append(one.payload))

    def work(self) -> None:
        """Hear and send until the store is closed or the connection is lost."""
        # Nothing that is sent here has to survive a power cut.
        self._connection.execute("SET synchronous_commit = off")
        while not self._database.closing.is_set():
            self._subscribe()
            self._greet()
            self._send()
            self._deliver()
            if not self._heard:
                self._wait()

    def _wait(self) -> None:
        pgconn = self._connection.pgconn
        seconds = PROBE_S
        if self._listener.hearing:
            seconds = min(seconds, max(self._greets_at - time.monotonic(), 0.0))
        with selectors.DefaultSelector() as waiting:
            waiting.register(pgconn.socket, selectors.EVENT_READ)
            waiting.register(self._woken, selectors.EVENT_READ)
            ready = [key.fileobj for key, _ in waiting.select(seconds)]
        if self._woken in ready:
            self._woken.recv(4096)
        if not ready and seconds == PROBE_S:
            self._connection.execute("SELECT 1")
        pgconn.consume_input()
        while (one := pgconn.notifies()) is not None:
            self._heard[one.relname.decode()].append(one.extra.decode())

    def _subscribe(self) -> None:
        """Listen on the channels that are of use now, and on no others."""
        wanted: set[str] = {self._news} if self._listener.watching else set()
        with self._listener.lock:
            wanted.update(*(channels for channels, _, _ in self._listener.noticing.values()))
        if self._listener.hearing or self._listener.outbox.is_used:
            self._channels = self._channels or live.Channels(self._connection)
            wanted.add(self._channels.presence)
            if self._listener.hearing:
                wanted.add(self._channels.messages)
        for command, channels in ((b"LISTEN ", wanted - self._listened), (b"UNLISTEN ", self._listened - wanted)):
            for channel in channels:
                name = sql.Identifier(channel).as_bytes(self._connection)
                self._connection.execute(command + name)
        begun, self._listened = wanted - self._listened, wanted
        self._notice(begun)
        if self._news in begun:
            self._spread(None)  # What was written before LISTEN was not heard.
        if self._channels is None:
            return
        if self._channels.messages in begun:
            self._greets_at = 0.0
        if self._channels.presence in begun:
            self._say(live.ASK)
            self._listener.outbox.asked()

    def _greet(self) -> None:
        if self._listener.hearing and time.monotonic() >= self._greets_at:
            self._say(live.HELLO)
            self._greets_at = time.monotonic() + live.HELLO_S

    def _say(self, word: str) -> None:
        assert self._channels is not None, "there is a subscriber or a sender"
        notify(self._connection, self._channels.presence, packed(self._listener.own, [word]))

    def _send(self) -> None:
        while self._channels is not None and (messages := self._listener.outbox.take()):
            notify(self._connection, self._channels.messages, packed(self._listener.own, messages))

    def _deliver(self) -> None:
        heard, self._heard = self._heard, defaultdict(list)
        self._notice(heard)
        own = self._listener.own
        if (told := heard.pop(self._news, None)) is not None:
            names = news.read(told, own)
            if names is None or names:
                self._spread(names)
        if self._channels is None:
            return
        for word in unpacked(heard.pop(self._channels.presence, ()), own):
            if word == live.HELLO:
                self._listener.outbox.greeted()
            elif word == live.ASK:
                self._greets_at = 0.0
        messages = unpacked(heard.pop(self._channels.messages, ()), own)
        if messages:
            with self._listener.lock:
                inboxes = list(self._listener.hearing.values())
            for inbox in inboxes:
                inbox.put(messages)

    def _notice(self, channels: Collection[str]) -> None:
        with self._listener.lock:
            noticing = list(self._listener.noticing.values())
        for wanted, loop, heard in noticing:
            if not wanted.isdisjoint(channels):
                with suppress(RuntimeError):  # The event loop has ended.
                    loop.call_soon_threadsafe(heard)

    def _spread(self, names: news.Names) -> None:
        with self._listener.lock:
            watching = list(self._listener.watching.values())
        for loop, heard in watching:
            with suppress(RuntimeError):  # The event loop has ended.
                loop.call_soon_threadsafe(heard, names)

"""Passing messages between processes, by NOTIFY: in batches below its limit, and only while there are subscribers.

Subscribers announce themselves every few seconds, on a channel of their own; a sender asks there first. So a process
without subscribers sends nothing. The names of the channels have a random number in them that is in the store: in
Postgres every client of a database may listen and send on a channel whose name it knows.
"""

import threading
import time
from collections import deque
from collections.abc import Sequence
from secrets import token_hex
from typing import Final

from turnkeeper.store.engines.postgres.connection import Connection
from turnkeeper.store.engines.postgres.notify import PAYLOAD_BYTES_MAX

MESSAGE_BYTES_MAX: Final = PAYLOAD_BYTES_MAX - 33
"""A payload begins with the name of the writer, in 32 digits, and a line break."""
WAITING_BYTES_MAX: Final = 1024 * 1024
"""Bytes of messages that wait to be sent; what comes on top is dropped."""
STATEMENT_BYTES_MAX: Final = 256 * 1024
"""Bytes that are sent in one statement, unless one message has more."""
HELLO_S: Final = 5.0
"""Seconds between two signs that a process hears."""
UNSURE_S: Final = 2.0
"""Seconds for which a process sends after it has asked for subscribers, also without an answer."""

ASK, HELLO = "?", "!"


class Outbox:
    """Messages that wait to be sent, and whether anybody hears them. Used by several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: deque[str] = deque()
        self._bytes = 0
        self.is_used = False
        """Whether this process has something to send."""
        self._heard_until: float | None = None

    def is_heard(self) -> bool:
        """Whether another process may hear messages."""
        return self._heard_until is None or time.monotonic() < self._heard_until

    def asked(self) -> None:
        """Others were asked whether they hear."""
        self._heard_until = max(self._heard_until or 0.0, time.monotonic() + UNSURE_S)

    def greeted(self) -> None:
        """Another process has said that it hears."""
        self._heard_until = max(self._heard_until or 0.0, time.monotonic() + 3 * HELLO_S)

    def add(self, messages: Sequence[str]) -> int:
        """Let messages wait; the number of those that were dropped."""
        dropped = 0
        with self._lock:
            for message in messages:
                size = len(message.encode())
                if size > MESSAGE_BYTES_MAX or self._bytes + size > WAITING_BYTES_MAX:
                    dropped += 1
                    continue
                self._waiting.append(message)
                self._bytes += size
        return dropped

    def take(self) -> list[str]:
        """The messages for one statement, in order; none if none wait."""
        taken: list[str] = []
        size = 0
        with self._lock:
            while self._waiting and size < STATEMENT_BYTES_MAX:
                taken.append(self._waiting.popleft())
                size += len(taken[-1].encode())
            self._bytes -= size
        return taken


class Channels:
    """The names of the channels of a store."""

    def __init__(self, connection: Connection) -> None:
        connection.execute("INSERT INTO meta VALUES ('channel', %s) ON CONFLICT DO NOTHING", (token_hex(16),))
        row = connection.execute("SELECT value FROM meta WHERE name = 'channel'").fetchone()
        number = str(row[0]) if row is not None else ""
        self.messages = f"turnkeeper_live_{number}"
        self.presence = f"turnkeeper_here_{number}"

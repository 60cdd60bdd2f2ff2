"""The Mint: the only source of time, random ids and slugs. It is passed to the code that needs one."""

import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Final
from weakref import WeakSet

from turnkeeper.core import slug
from turnkeeper.model.identifier import (
    ALPHABET,
    COUNTER_BITS,
    DESCENDING,
    TAIL_LENGTH,
    MessageID,
    PartID,
    SessionID,
    pack,
)

FIXED_START_MS: Final = 1_794_767_525_690
FIXED_SEED: Final = 0

# The highest bytes are deleted, because they would favour the first eight symbols. Four others map to each symbol.
_REJECTED: Final = bytes(range(len(ALPHABET) * 4, 256))
_SYMBOLS: Final = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_DRAW: Final = 1024
"""Random bytes that one system call gets: enough for about seventy ids."""

SECRET_LENGTH: Final = 43
"""Symbols of a secret: of 62 kinds, 43 hold 256 bits."""

_mints: "WeakSet[Mint]" = WeakSet()


def wall_clock() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


class Mint:
    """Makes ids and gives the time. It can be shared between threads.

    The numbers in the ids of a mint strictly rise (or fall, if descending), even if the clock stops or steps back: then
    the counter continues from the last id, after 4095 in the next millisecond. The numbers wrap after 795 days; see
    ``turnkeeper.model.identifier``.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], int] = wall_clock,
        random: Callable[[int], bytes] = os.urandom,
    ) -> None:
        self._clock = clock
        self._random = random
        self._last = 0
        self._symbols, self._used = "", 0
        self._lock = Lock()
        _mints.add(self)

    @staticmethod
    def fixed(start_ms: int = FIXED_START_MS, seed: int = FIXED_SEED, *, step_ms: int = 0) -> "FixedMint":
        """A mint with a fixed clock and a seeded random generator, for tests."""
        return FixedMint(start_ms, seed, step_ms)

    def now(self) -> int:
        """Milliseconds since the Unix epoch. The clock may step back."""
        return self._clock()

    def session_id(self) -> SessionID:
        """A new session id (descending)."""
        return SessionID(self.descending("ses"))

    def message_id(self) -> MessageID:
        """A new message id."""
        return MessageID(self._mint("msg", False))

    def part_id(self) -> PartID:
        """A new part id."""
        return PartID(self._mint("prt", False))

    def event_id(self) -> str:
        """A new event id."""
        return self._mint("evt", False)

    def ascending(self, prefix: str) -> str:
        """A new id with a higher number than every earlier id."""
        assert prefix not in DESCENDING, f"ids that begin with {prefix!r} are descending"
        return self._mint(prefix, False)

    def descending(self, prefix: str) -> str:
        """A new id that sorts before every earlier id with this prefix, until the numbers wrap."""
        assert prefix in DESCENDING, f"ids that begin with {prefix!r} are ascending"
        return self._mint(prefix, True)

    def several(self, prefix: str, count: int) -> list[str]:
        """``count`` ascending ids, faster than one by one."""
        assert prefix not in DESCENDING, f"ids that begin with {prefix!r} are descending"
        with self._lock:
            first = max((self._clock() << COUNTER_BITS) + 1, self._last + 1)
            self._last = first + count - 1
            symbols = self._drawn(count * TAIL_LENGTH)
        tails = range(0, count * TAIL_LENGTH, TAIL_LENGTH)
        return [
            f"{prefix}_{pack(0, first + nth, False)}{symbols[tail : tail + TAIL_LENGTH]}"
            for nth, tail in enumerate(tails)
        ]

    def secret(self) -> str:
        """A new secret of 256 random bits."""
        with self._lock:
            return self._drawn(SECRET_LENGTH)[:SECRET_LENGTH]

    def slug(self) -> str:
        """A random slug of two words."""
        return slug.slug(self._random(slug.ENTROPY_BYTES))

    def _mint(self, prefix: str, descending: bool) -> str:
        with self._lock:
            value = (self._clock() << COUNTER_BITS) + 1
            if value <= self._last:
                value = self._last + 1
            self._last = value
            start, self._used = self._used, self._used + TAIL_LENGTH
            if self._used > len(self._symbols):
                self._symbols = self._drawn(TAIL_LENGTH)
                start, self._used = 0, TAIL_LENGTH
            tail = self._symbols[start : self._used]
        # The value is passed as the counter, because it includes the milliseconds.
        return f"{prefix}_{pack(0, value, descending)}{tail}"

    def _drawn(self, length: int) -> str:
        """At least ``length`` random symbols."""
        symbols = ""
        while len(symbols) < length:
            symbols += self._random(max(_DRAW, length - len(symbols))).translate(_SYMBOLS, _REJECTED).decode("ascii")
        return symbols


class FixedMint(Mint):
    """A mint with a seeded random generator and a manual clock, which also advances by ``step_ms`` at each reading."""

    def __init__(self, start_ms: int, seed: int, step_ms: int = 0) -> None:
        # Imported here, because the import takes milliseconds and is only needed in tests.
        from random import Random

        super().__init__(clock=self._read, random=Random(seed).randbytes)
        self._ms = start_ms
        self.step_ms = step_ms

    def set(self, ms: int) -> None:
        """Set the clock, also to an earlier time."""
        self._ms = ms

    def advance(self, ms: int) -> None:
        """Advance the clock."""
        self._ms += ms

    def _read(self) -> int:
        now = self._ms
        self._ms += self.step_ms
        return now


def _drop_random_symbols() -> None:
    for mint in _mints:
        mint._symbols = ""


if hasattr(os, "register_at_fork"):
    # A forked child has the counter of its parent, so it must not have the buffered random symbols of its parent too.
    os.register_at_fork(after_in_child=_drop_random_symbols)

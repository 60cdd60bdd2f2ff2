"""The Mint: the only clock and the only randomness. Whoever needs the time, an id or a slug is given one."""

import os
import time
from collections.abc import Callable
from threading import Lock
from typing import Final

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

# Bytes that would favour the first eight symbols are deleted, the others map four to one onto the alphabet.
_REJECTED: Final = bytes(range(len(ALPHABET) * 4, 256))
_SYMBOLS: Final = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
# Four spare bytes: one draw in two hundred thousand has to be repeated.
_DRAW: Final = TAIL_LENGTH + 4
_COUNTER_MASK: Final = (1 << COUNTER_BITS) - 1


def wall_clock() -> int:
    """Milliseconds since the Unix epoch."""
    return time.time_ns() // 1_000_000


class Mint:
    """Makes ids and tells the time. Safe to share between threads.

    Ids of one mint carry strictly rising numbers (falling ones, if descending), even when the clock stands
    still or steps back: the counter then goes on from the last id, and past 4095 into the next millisecond.
    Only the 795-day wrap of the format breaks that order; see ``turnkeeper.model.identifier``.
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
        self._lock = Lock()

    @staticmethod
    def fixed(start_ms: int = FIXED_START_MS, seed: int = FIXED_SEED, *, step_ms: int = 0) -> "FixedMint":
        """A mint whose answers are the same in every run: for tests and simulations."""
        return FixedMint(start_ms, seed, step_ms)

    def now(self) -> int:
        """Milliseconds since the Unix epoch, as the clock says; it may step back."""
        return self._clock()

    def session_id(self) -> SessionID:
        """A new session's id (descending)."""
        return SessionID(self.descending("ses"))

    def message_id(self) -> MessageID:
        """A new message's id."""
        return MessageID(self.ascending("msg"))

    def part_id(self) -> PartID:
        """A new part's id."""
        return PartID(self.ascending("prt"))

    def event_id(self) -> str:
        """A new event's id."""
        return self.ascending("evt")

    def ascending(self, prefix: str) -> str:
        """A new id whose number is greater than that of every id before it."""
        assert prefix not in DESCENDING, f"ids that begin with {prefix!r} are descending"
        return self._mint(prefix, False)

    def descending(self, prefix: str) -> str:
        """A new id that sorts before every id minted earlier under this prefix, within one window."""
        assert prefix in DESCENDING, f"ids that begin with {prefix!r} are ascending"
        return self._mint(prefix, True)

    def slug(self) -> str:
        """Two friendly words."""
        return slug.slug(self._random(slug.ENTROPY_BYTES))

    def _mint(self, prefix: str, descending: bool) -> str:
        with self._lock:
            value = self._last = max((self._clock() << COUNTER_BITS) + 1, self._last + 1)
        return f"{prefix}_{pack(value >> COUNTER_BITS, value & _COUNTER_MASK, descending)}{self._tail()}"

    def _tail(self) -> str:
        tail = b""
        while len(tail) < TAIL_LENGTH:
            tail = self._random(_DRAW).translate(_SYMBOLS, _REJECTED)
        return tail[:TAIL_LENGTH].decode("ascii")


class FixedMint(Mint):
    """A mint with seeded randomness and a clock that moves when told, and by ``step_ms`` at each reading."""

    def __init__(self, start_ms: int, seed: int, step_ms: int = 0) -> None:
        # Imported here: the module costs milliseconds that a real mint must not pay at start.
        from random import Random

        super().__init__(clock=self._read, random=Random(seed).randbytes)
        self._ms = start_ms
        self.step_ms = step_ms

    def set(self, ms: int) -> None:
        """Let the clock show this time, be it earlier or later."""
        self._ms = ms

    def advance(self, ms: int) -> None:
        """Let this much time pass."""
        self._ms += ms

    def _read(self) -> int:
        now = self._ms
        self._ms += self.step_ms
        return now

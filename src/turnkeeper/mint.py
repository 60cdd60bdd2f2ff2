"""The Mint: the only clock and the only randomness. Whoever needs the time, an id or a slug is given one."""

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

# Bytes that would favour the first eight symbols are deleted, the others map four to one onto the alphabet.
_REJECTED: Final = bytes(range(len(ALPHABET) * 4, 256))
_SYMBOLS: Final = bytes(ord(ALPHABET[byte % len(ALPHABET)]) for byte in range(256))
_DRAW: Final = 1024
"""Random bytes asked for at once, enough for some seventy ids: the system call costs more than the id."""

_mints: "WeakSet[Mint]" = WeakSet()


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
        self._symbols, self._used = "", 0
        self._lock = Lock()
        _mints.add(self)

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
        return MessageID(self._mint("msg", False))

    def part_id(self) -> PartID:
        """A new part's id."""
        return PartID(self._mint("prt", False))

    def event_id(self) -> str:
        """A new event's id."""
        return self._mint("evt", False)

    def ascending(self, prefix: str) -> str:
        """A new id whose number is greater than that of every id before it."""
        assert prefix not in DESCENDING, f"ids that begin with {prefix!r} are descending"
        return self._mint(prefix, False)

    def descending(self, prefix: str) -> str:
        """A new id that sorts before every id minted earlier under this prefix, within one window."""
        assert prefix in DESCENDING, f"ids that begin with {prefix!r} are ascending"
        return self._mint(prefix, True)

    def several(self, prefix: str, count: int) -> list[str]:
        """As many ids as ``ascending`` would make one by one, at a fraction of the price."""
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

    def slug(self) -> str:
        """Two friendly words."""
        return slug.slug(self._random(slug.ENTROPY_BYTES))

    def _mint(self, prefix: str, descending: bool) -> str:
        with self._lock:
            value = (self._clock() << COUNTER_BITS) + 1
            if value <= self._last:
                value = self._last + 1
            self._last = value
            start, self._used = self._used, self._used + TAIL_LENGTH
            if self._used > len(self._symbols):
                self._draw()
                start, self._used = 0, TAIL_LENGTH
            tail = self._symbols[start : self._used]
        # The whole value as the counter: it runs on into the milliseconds, which is just what is meant.
        return f"{prefix}_{pack(0, value, descending)}{tail}"

    def _draw(self) -> None:
        self._symbols = self._drawn(TAIL_LENGTH)

    def _drawn(self, length: int) -> str:
        """At least so many random symbols."""
        symbols = ""
        while len(symbols) < length:
            symbols += self._random(max(_DRAW, length - len(symbols))).translate(_SYMBOLS, _REJECTED).decode("ascii")
        return symbols

    def _forget_symbols(self) -> None:
        self._symbols = ""


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


def _part_ways() -> None:
    for mint in _mints:
        mint._forget_symbols()


if hasattr(os, "register_at_fork"):
    # A forked child stands at the same number as its parent; only other random symbols keep their ids apart.
    os.register_at_fork(after_in_child=_part_ways)

"""Folders: which of a few names stand in them, at the price of one look at each as long as nothing comes or goes."""

import os
import time
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Final, NamedTuple, TypeAlias

SETTLED_NS: Final = 100_000_000
"""A folder that changed less than this ago may change again without its times telling: they move in small steps."""
SETTLED_COARSE_NS: Final = 2_500_000_000
"""The same where times are whole seconds, as some file systems write them."""
KEPT_NS: Final = 1_000_000_000
"""No answer is kept for longer: on some file systems, most of them far away, the times of a folder never change."""
KNOWN_MAX: Final = 4096

_SECOND_NS: Final = 1_000_000_000


Stamp: TypeAlias = tuple[int, int, int, int, int]
"""What of a file or a folder changes when it does: when it was modified and changed, its size, number and device."""

_stamp: Final[Callable[[os.stat_result], Stamp]] = attrgetter(
    "st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev"
)


class Standing(NamedTuple):
    """A folder that is there: which one it is, and what stands in it."""

    inode: int
    device: int
    names: tuple[str, ...]
    """Those of the names asked for, links that lead nowhere included."""


class Folders:
    """Remembers what stands in folders, and looks again where their times say that something came or went.

    It is never wrong about what came or went before the call, where a folder's times can be relied on.
    """

    def __init__(
        self,
        names: tuple[str, ...],
        clock: Callable[[], int] = time.time_ns,
        stat: Callable[[str], os.stat_result] = os.stat,
    ) -> None:
        self._names, self._clock, self._stat = names, clock, stat
        self._known: dict[str, tuple[Stamp | None, Standing | None]] = {}
        self._since = 0

    def present(self, folder: str) -> tuple[str, ...]:
        """Those of the names that stand in a folder now, links that lead nowhere included."""
        standing = self.at(folder)
        return standing.names if standing is not None else ()

    def at(self, folder: str) -> Standing | None:
        """A folder as it is now; None if there is none."""
        now = self._now()
        stamp, known = self.stamp(folder), self._known.get(folder)
        if known is not None and known[0] == stamp:
            return known[1]
        standing = None
        if stamp is not None:
            standing = Standing(*stamp[3:], tuple(name for name in self._names if os.path.lexists(f"{folder}/{name}")))
        if stamp is None or _is_settled(stamp, now):
            self._known[folder] = stamp, standing
        return standing

    def same(self, before: Mapping[str, Standing | None]) -> bool:
        """Whether all these folders are now as they were."""
        self._now()
        known, stat = self._known, self._stat
        # Every prompt asks this, so nothing is called here but what must be.
        for folder, standing in before.items():
            try:
                stamp = _stamp(stat(folder))
            except (OSError, ValueError):
                stamp = None
            if known.get(folder) != (stamp, standing) and self.at(folder) != standing:
                return False
        return True

    def stamp(self, path: str) -> Stamp | None:
        """The stamp of a file or a folder now; None while there is none."""
        try:
            return _stamp(self._stat(path))
        except (OSError, ValueError):
            return None

    def _now(self) -> int:
        """The time; what is known for too long at that time is forgotten."""
        now = self._clock()
        if not 0 <= now - self._since < KEPT_NS or len(self._known) >= KNOWN_MAX:
            self._known.clear()
            self._since = now
        return now


def _is_settled(stamp: Stamp, now: int) -> bool:
    # The later of the two: programs that unpack or copy set the first one back.
    modified, changed, *_ = stamp
    return now - max(modified, changed) > (SETTLED_NS if changed % _SECOND_NS else SETTLED_COARSE_NS)

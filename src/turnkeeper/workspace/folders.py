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
"""What of a file or a folder changes when it does."""

_stamp: Final[Callable[[os.stat_result], Stamp]] = attrgetter(
    "st_mtime_ns", "st_ctime_ns", "st_size", "st_ino", "st_dev"
)


class Standing(NamedTuple):
    """A folder that is there: which one it is, and what stands in it."""

    device: int
    inode: int
    names: tuple[str, ...]
    """Those of the names asked for, links that lead nowhere included."""


class _Known(NamedTuple):
    stamp: Stamp
    since: int
    standing: Standing


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
        self._known: dict[str, _Known] = {}

    def present(self, folder: str) -> tuple[str, ...]:
        """Those of the names that stand in a folder now, links that lead nowhere included."""
        standing = self.at(folder)
        return standing.names if standing is not None else ()

    def at(self, folder: str) -> Standing | None:
        """A folder as it is now; None if there is none."""
        return self._at(folder, self._clock())

    def same(self, before: Mapping[str, Standing | None]) -> bool:
        """Whether all these folders are now as they were."""
        now = self._clock()
        return [self._at(folder, now) for folder in before] == [*before.values()]

    def _at(self, folder: str, now: int) -> Standing | None:
        try:
            found = self._stat(folder)
        except (OSError, ValueError):
            return None
        stamp = _stamp(found)
        known = self._known.get(folder)
        if known is not None and known.stamp == stamp and 0 <= now - known.since < KEPT_NS:
            return known.standing
        names = tuple(name for name in self._names if os.path.lexists(f"{folder}/{name}"))
        standing = Standing(found.st_dev, found.st_ino, names)
        if _is_settled(found, now):
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[folder] = _Known(stamp, now, standing)
        return standing


def stamp_of(file: str) -> Stamp | None:
    """The stamp of a file as it is now; None while there is none."""
    try:
        return _stamp(os.stat(file))
    except (OSError, ValueError):
        return None


def _is_settled(found: os.stat_result, now: int) -> bool:
    # The later of the two: programs that unpack or copy set the first one back.
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    return now - changed > (SETTLED_NS if found.st_ctime_ns % _SECOND_NS else SETTLED_COARSE_NS)

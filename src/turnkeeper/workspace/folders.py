"""Folders: which of a few names stand in them, at the price of one look at each as long as nothing comes or goes."""

import os
import time
from collections.abc import Callable
from typing import Final, NamedTuple

SETTLED_NS: Final = 100_000_000
"""A folder that changed less than this ago may change again without its times telling: they move in small steps."""
SETTLED_COARSE_NS: Final = 2_500_000_000
"""The same where times are whole seconds, as some file systems write them."""
KEPT_NS: Final = 1_000_000_000
"""No answer is kept for longer: on some file systems, most of them far away, the times of a folder never change."""
KNOWN_MAX: Final = 4096

_SECOND_NS: Final = 1_000_000_000


class _Known(NamedTuple):
    stamp: tuple[int, int, int, int]
    since: int
    names: tuple[str, ...]


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
        try:
            found = self._stat(folder)
        except OSError:
            return ()
        stamp = (found.st_mtime_ns, found.st_ctime_ns, found.st_ino, found.st_dev)
        known = self._known.get(folder)
        now = self._clock()
        if known is not None and known.stamp == stamp and 0 <= now - known.since < KEPT_NS:
            return known.names
        names = tuple(name for name in self._names if os.path.lexists(f"{folder}/{name}"))
        if _is_settled(found, now):
            if len(self._known) >= KNOWN_MAX:
                self._known.clear()
            self._known[folder] = _Known(stamp, now, names)
        return names


def _is_settled(found: os.stat_result, now: int) -> bool:
    # The later of the two: programs that unpack or copy set the first one back.
    changed = max(found.st_mtime_ns, found.st_ctime_ns)
    return now - changed > (SETTLED_NS if found.st_ctime_ns % _SECOND_NS else SETTLED_COARSE_NS)

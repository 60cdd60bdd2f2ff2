"""Retention: which snapshots are no longer kept.

First those of idle sessions go, then the oldest of all while they take too much.
"""

from collections.abc import Collection, Sequence
from math import ceil
from typing import Final

from turnkeeper.core.limits import SNAPSHOT_FILE_BYTES_MAX, SNAPSHOT_QUOTA_BYTES, SNAPSHOT_RETENTION_DAYS
from turnkeeper.model.config import Config, SnapshotConfig
from turnkeeper.model.value import Value

_DAY_MS: Final = 24 * 3600 * 1000


class SnapshotLimits(Value):
    """How much the snapshots of a project may take, and how long they stay."""

    quota_bytes: int = SNAPSHOT_QUOTA_BYTES
    retention_days: float = SNAPSHOT_RETENTION_DAYS
    file_bytes: int = SNAPSHOT_FILE_BYTES_MAX


def limits(config: Config) -> SnapshotLimits | None:
    """The limits of a project's snapshots; None if they are switched off."""
    if config.snapshot is False:
        return None
    given = config.snapshot if isinstance(config.snapshot, SnapshotConfig) else SnapshotConfig()
    said = {
        "quota_bytes": given.quota_bytes,
        "retention_days": given.retention_days,
        "file_bytes": given.max_file_bytes,
    }
    return SnapshotLimits().but(**{name: value for name, value in said.items() if value is not None})


class KeptTree(Value):
    """A tree that is kept for a session."""

    session: str
    tree: str
    captured: int
    """When the session last captured it, in milliseconds."""


def idle(
    kept: Sequence[KeptTree], now: int, retention_days: float, *, protected: Collection[str] = ()
) -> tuple[KeptTree, ...]:
    """The trees of the sessions that have captured nothing for so many days, protected sessions excepted."""
    newest: dict[str, int] = {}
    for one in kept:
        newest[one.session] = max(one.captured, newest.get(one.session, one.captured))
    oldest_ms = now - retention_days * _DAY_MS
    gone = {session for session, captured in newest.items() if captured < oldest_ms} - set(protected)
    return tuple(one for one in kept if one.session in gone)


def surplus(
    kept: Sequence[KeptTree], used_bytes: int, quota_bytes: int, *, until: float, protected: Collection[str] = ()
) -> tuple[KeptTree, ...]:
    """The oldest trees, as large a share of all as the bytes are over the quota; none of protected sessions.

    Trees that were captured after ``until`` stay, too: their bytes cannot be freed yet. The size of a single tree is
    not known, because trees share files: the caller removes these trees, measures again, and asks again.
    """
    if used_bytes <= quota_bytes:
        return ()
    free = [one for one in kept if one.session not in protected and one.captured <= until]
    count = ceil(len(free) * (used_bytes - quota_bytes) / used_bytes)
    return tuple(sorted(free, key=lambda one: one.captured)[:count])

"""Gaps: files of a project that a snapshot does not contain."""

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.workspace import files

Stamp: TypeAlias = tuple[int, ...] | None
"""A value that changes when a file does."""

_ENTRIES_MAX: Final = 20_000
"""Maximum number of files and folders that are looked at in a nested repository."""


ANYTHING: Final = frozenset({b""})
"""Set of ignored files where they are not known: it covers every file."""


class Gaps(NamedTuple):
    """Files that a capture left out. Names are relative to the top; those of folders end with a slash."""

    files: Mapping[bytes, Stamp] = {}
    """Files that are too large, or cannot be read."""
    stale: Mapping[bytes, Stamp] = {}
    """Files that were captured before and not now: the snapshot has their old content."""
    closed: frozenset[bytes] = frozenset()
    """Folders that cannot be entered: the snapshot has their files as they were before."""
    nested: frozenset[bytes] = frozenset()
    """The folders of nested repositories."""
    ignored: frozenset[bytes] = ANYTHING
    """Files and folders that are ignored."""

    def covers(self, name: bytes) -> bool:
        """Whether a file that the snapshot does not have may have been there."""
        return (
            name in self.files
            or name in self.ignored
            or any(folder in self.nested or folder in self.ignored for folder in folders(name))
        )

    def is_stale(self, name: bytes) -> bool:
        """Whether the snapshot has a file as it was before, or may have."""
        return name in self.stale or any(folder in self.closed for folder in folders(name))


class Captured(NamedTuple):
    """A snapshot with its gaps. ``moment`` is the time at which it was complete, by the clock of file systems."""

    tree: str
    gaps: Gaps
    moment: int
    gone: frozenset[tuple[int, int]] = frozenset()
    """The devices and inodes, as git keeps them, of files that the capture before had and that are no longer there."""


def stamps(root: bytes, names: Iterable[bytes]) -> dict[bytes, Stamp]:
    """The stamps of files."""
    return {name: files.stamp(os.fsdecode(os.path.join(root, name))) for name in names}


def has_changed(root: bytes, folder: bytes, since_ns: int) -> bool:
    """Whether a file in a nested repository changed since a moment. Git's own files in it do not count."""
    waiting, looked_at = [os.path.join(root, folder)], 0
    with suppress(OSError):
        if os.lstat(waiting[0]).st_ctime_ns >= since_ns:  # A file at its top was deleted.
            return True
    while waiting:
        try:
            with os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    looked_at += 1
                    if entry.name == b".git":
                        continue
                    if looked_at > _ENTRIES_MAX:
                        return False
                    if entry.stat(follow_symlinks=False).st_ctime_ns >= since_ns:
                        return True
                    if entry.is_dir(follow_symlinks=False):
                        waiting.append(entry.path)
        except OSError:
            continue
    return False


def folders(name: bytes) -> Iterable[bytes]:
    """Every folder above a name, and the empty name."""
    yield b""
    at = name.find(b"/")
    while at >= 0:
        yield name[: at + 1]
        at = name.find(b"/", at + 1)

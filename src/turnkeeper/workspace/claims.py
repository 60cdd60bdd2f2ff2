"""Claims: the files that each session wrote, with times, so that no other session records these changes as its own.

Claims are stored beside the snapshots of the project, where every process reads them. Without a claim it is not known
which session wrote a file while commands of several sessions ran. A session whose call waits for a Child Session has
the changes of both.
"""

import json
import os
from collections.abc import Collection, Iterable
from contextlib import suppress
from typing import Final

from turnkeeper.workspace import file_times, files
from turnkeeper.workspace.shadow import ShadowPlace, session_name

_DIRECTORY: Final = "claims"
_BYTES_MAX: Final = 256 * 1024
"""Maximum size of the claims of one session; above it the older half is removed."""


def add(place: ShadowPlace, session_id: str, names: Iterable[str], callers: Collection[str] = ()) -> None:
    """Record that a session writes, or just wrote, these files; ``callers`` are the sessions whose calls wait for it.

    An error of the disk is ignored.
    """
    also = [session_name(one) for one in callers]
    lines = "".join(f"{json.dumps([file_times.moment(), name, *also])}\n" for name in names).encode("ascii")
    if not lines:
        return
    with suppress(OSError):
        file = place.git_dir / _DIRECTORY / session_name(session_id)
        file.parent.mkdir(exist_ok=True)
        with file.open("ab") as log:
            log.write(lines)
            size = log.tell()
        if size > _BYTES_MAX:
            kept = file.read_bytes()[size // 2 :]
            with files.replacing(file) as new:
                new.write(kept.partition(b"\n")[2])


def of_others(place: ShadowPlace, session_id: str, since_ns: int) -> set[str]:
    """The files that other sessions wrote since a moment, except those written for a call of this session."""
    found: set[str] = set()
    own = session_name(session_id)
    with suppress(OSError):
        for file in (place.git_dir / _DIRECTORY).iterdir():
            if file.name != own and file.stat().st_mtime_ns >= since_ns:
                found |= _since(file.read_bytes(), since_ns, own)
    return found


def forget(place: ShadowPlace, session_id: str) -> None:
    """Remove the claims of a session."""
    with suppress(OSError):
        (place.git_dir / _DIRECTORY / session_name(session_id)).unlink()


def forget_old(place: ShadowPlace, until_ns: int) -> None:
    """Remove the claims of sessions that wrote nothing since a moment."""
    with suppress(OSError):
        for file in (place.git_dir / _DIRECTORY).iterdir():
            if os.lstat(file).st_mtime_ns < until_ns:
                file.unlink(missing_ok=True)


def _since(lines: bytes, since_ns: int, own: str) -> set[str]:
    found: set[str] = set()
    for line in lines.splitlines():
        with suppress(ValueError, TypeError):  # A kill may have cut one short.
            at, name, *callers = json.loads(line)
            if at >= since_ns and own not in callers:
                found.add(name)
    return found

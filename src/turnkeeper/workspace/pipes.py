"""Named pipes that git would read, and wait for without a limit."""

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from turnkeeper.workspace.git_work import GitStopped

_READ_BY_GIT: Final = (b".gitignore", b".gitattributes")
_FOLDERS_MAX: Final = 50_000


class BlockedByPipe(GitStopped):
    """Git waits for a named pipe. ``folder`` is its folder relative to the top; empty for the top itself."""

    def __init__(self, folder: bytes, name: bytes) -> None:
        path = os.path.join(folder, name).decode("utf-8", "backslashreplace")
        super().__init__(f"git waits for the named pipe {path!r}; remove it")
        self.folder = folder


def refuse(root: Path) -> None:
    """Raise BlockedByPipe if there is such a pipe. All folders are searched, so this is called only if git is slow."""
    top = os.fsencode(root)
    for folder in _folders(top):
        for name in _READ_BY_GIT:
            with suppress(OSError):
                if stat.S_ISFIFO(os.lstat(os.path.join(top, folder, name)).st_mode):
                    raise BlockedByPipe(folder, name)


def _folders(top: bytes) -> Iterator[bytes]:
    waiting, seen = [b""], 0
    while waiting and seen < _FOLDERS_MAX:
        folder = waiting.pop()
        seen += 1
        yield folder
        with suppress(OSError), os.scandir(os.path.join(top, folder)) as entries:
            waiting += [
                os.path.join(folder, entry.name)
                for entry in entries
                if entry.is_dir(follow_symlinks=False) and entry.name != b".git"
            ]

"""Secret files: keys, trusted directories and approvals, which no tool may open, also if a rule allows it.

With one of them a model could spend the user's money, or give itself every permission.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.workspace import approvals, auth, files, paths, trust

NAMES: Final = (auth.NAME, trust.NAME, approvals.NAME)


class SecretFiles:
    """The secret files of the user of this process, in the directories of this program and of opencode."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        environ = {**environ, "HOME": environ.get("HOME") or str(Path.home())}
        places = [
            kind(environ, program)
            for program in (paths.PROGRAM, paths.OPENCODE)
            for kind in (paths.data, paths.config, paths.state)
        ]
        self._names = [place / name for place in places for name in NAMES]
        self._places = frozenset(map(files.real, self._names))

    def __contains__(self, path: object) -> bool:
        """Whether a path leads to a secret file, also by a link of any kind."""
        if not isinstance(path, Path):
            return False
        place = files.real(path)
        file = _identity(place)
        return place in self._places or (file is not None and any(_identity(name) == file for name in self._names))


def _identity(path: Path) -> tuple[int, int] | None:
    """The device and inode of a file, equal for all its names; None if there is no file."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino

"""Paths as the file system takes them: the links on the way, and the spelling of names."""

import os
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

LINKS_MAX: Final = 4096
"""Maximum number of steps along links in a path."""


def steps(path: str) -> Iterator[str]:
    """Every path that the resolution of a path visits, including links and their targets."""
    waiting, at = [part for part in reversed(path.split("/")) if part], "/"
    for _ in range(LINKS_MAX):
        if not waiting:
            return
        part = waiting.pop()
        below = os.path.join(at, part)
        yield f"{below}/"
        try:
            target = os.readlink(below)
        except (OSError, ValueError):
            at = os.path.dirname(at) if part == ".." else at if part == "." else below
            continue
        waiting += [one for one in reversed(target.split("/")) if one]
        at = "/" if target.startswith("/") else at


@lru_cache(maxsize=64)
def folds_case(directory: str) -> bool:
    """Whether the file system ignores case (``A`` is ``a``), tested with the directory's own name."""
    other = os.path.join(os.path.dirname(directory), os.path.basename(directory).swapcase())
    try:
        return other != directory and os.path.samefile(directory, other)
    except OSError:
        return False


def spelled(path: str, directory: str) -> str:
    """A path below a directory with its names as they are on the disk; missing names stay as given."""
    parts: list[str] = []
    for part in path.split("/"):
        try:
            names = os.listdir(os.path.join(directory, *parts))
        except OSError:
            names = []
        same = [name for name in names if _folded(name) == _folded(part)]
        parts.append(part if part in names or not same else same[0])
    return "/".join(parts)


def _folded(name: str) -> str:
    return unicodedata.normalize("NFC", name).casefold()

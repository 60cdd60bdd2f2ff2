"""The instruction service: which files and addresses a session must follow, and what they say now.

It owns discovery, identity and loading. A source is known by its path (symlinks resolved) or its address. Project
files count only inside the project's root: a link that leads out of it is not followed. What a person configures
may lie anywhere.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Literal

from turnkeeper.core.limits import INSTRUCTION_BYTES_MAX
from turnkeeper.core.whole import clean
from turnkeeper.model.value import Value
from turnkeeper.workspace import paths
from turnkeeper.workspace.folders import Folders
from turnkeeper.workspace.project import PLACES_MAX, ProjectPlace

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""The first name that is found anywhere counts, and with it every file of that name."""

NO_CLAUDE = "OPENCODE_DISABLE_CLAUDE_CODE"
NO_PROJECT = "OPENCODE_DISABLE_PROJECT_CONFIG"

_PLACING = ("HOME", "USERPROFILE", "XDG_CONFIG_HOME")
_standing = Folders(NAMES)


class Source(Value):
    """Where instructions come from: the path of a file, or an address."""

    name: str
    kind: Literal["file", "url"] = "file"


def discover(
    place: ProjectPlace,
    configured: Iterable[str],
    nested: Iterable[str],
    environ: Mapping[str, str],
    home: Path,
) -> list[Source]:
    """Every source in force, each once: global, project nearest first, configured, addresses, then nested."""
    urls = [one for one in configured if _is_url(one)]
    files = [*_global(environ, home), *_project(place, environ), *_configured(place, configured, home)]
    found = [Source(name=str(path)) for path in files]
    found.extend(Source(name=url, kind="url") for url in urls)
    # A nested file may have become a link since it was met.
    found.extend(Source(name=path) for path in nested if _inside(Path(path), _root(place)))
    return list({source.name: source for source in found}.values())


def nearby(read: Path, place: ProjectPlace, environ: Mapping[str, str]) -> list[str]:
    """Instruction files between a file that was read and the folders whose files hold anyway, nearest first."""
    if environ.get(NO_PROJECT):
        return []
    root, file = _root(place), os.path.realpath(read)
    found = []
    folder = os.path.dirname(file)
    # As strings: it is asked after every read, and most often nothing stands there.
    while folder not in _ambient(place) and folder.startswith(f"{str(root).rstrip('/')}/"):
        path = _first(folder, environ)
        if path is not None and str(path) != file and _inside(path, root):
            found.append(str(_resolved(path)))
        folder = os.path.dirname(folder)
    return [path for path in found if _can_be_written(path)]


def _first(folder: str, environ: Mapping[str, str]) -> Path | None:
    """The instruction file of a folder: the first name that stands there."""
    standing = _standing.present(folder)
    if not standing:
        return None
    paths = (Path(folder, name) for name in _names(environ) if name in standing)
    return next((path for path in paths if _is_file(path)), None)


def read(source: Source) -> str | None:
    """What a file says; None if it is gone. Raises OSError if it is there and cannot be read."""
    try:
        with open(source.name, "rb", opener=_without_waiting) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return None
            body = file.read(INSTRUCTION_BYTES_MAX + 1)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
        return None
    text = body[:INSTRUCTION_BYTES_MAX].decode("utf-8", "replace").strip()
    if len(body) > INSTRUCTION_BYTES_MAX:
        text += f"\n[the file is larger than {INSTRUCTION_BYTES_MAX} bytes and was cut here]"
    return text


def _without_waiting(path: str, flags: int) -> int:
    """Open a file, but not wait for the writer of a pipe that took its place."""
    return os.open(path, flags | os.O_NONBLOCK)


def _global(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """One file of the user's own: the first that exists."""
    ours, theirs, claude = _user_folders(tuple(environ.get(name) for name in _PLACING), home)
    candidates = [(ours, "AGENTS.md"), (theirs, "AGENTS.md")]
    if not environ.get(NO_CLAUDE):
        candidates.append((claude, "CLAUDE.md"))
    yield from [(folder / name).resolve() for folder, name in candidates if _has(folder, name)][:1]


@lru_cache(maxsize=64)
def _user_folders(placing: tuple[str | None, ...], home: Path) -> tuple[Path, Path, Path]:
    """Where a user's own instructions may stand: ours, opencode's, Claude's."""
    environ = {name: value for name, value in zip(_PLACING, placing, strict=True) if value is not None}
    return paths.config(environ), paths.config(environ, paths.OPENCODE), home / ".claude"


def _project(place: ProjectPlace, environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get(NO_PROJECT):
        return
    root = _root(place)
    standing = [(folder, names) for folder in _upward(place) if (names := _standing.present(str(folder)))]
    if not standing:
        return
    for name in _names(environ):
        found = [folder / name for folder, names in standing if name in names and _is_file(folder / name)]
        inside = [path.resolve() for path in found if _inside(path, root)]
        if inside:
            yield from inside
            return


def _configured(place: ProjectPlace, configured: Iterable[str], home: Path) -> Iterator[Path]:
    for pattern in configured:
        if _is_url(pattern):
            continue
        if pattern.startswith("~/"):
            yield from _matches(home, pattern[2:])
        elif Path(pattern).is_absolute():
            yield from _matches(Path(pattern).parent, Path(pattern).name)
        else:
            for folder in _upward(place):
                yield from (path for path in _matches(folder, pattern) if _inside(path, _root(place)))


def _matches(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path.resolve() for path in folder.glob(pattern) if _is_file(path))
    except (ValueError, NotImplementedError, OSError):
        return []  # A pattern that no file system understands finds nothing.


@lru_cache(maxsize=PLACES_MAX)
def _upward(place: ProjectPlace) -> list[Path]:
    """From the session's directory up to the project's root."""
    directory, root = place.directory.resolve(), _root(place)
    folders = [directory, *directory.parents]
    return folders[: folders.index(root) + 1] if root in folders else [directory]


@lru_cache(maxsize=PLACES_MAX)
def _ambient(place: ProjectPlace) -> frozenset[str]:
    return frozenset(map(str, _upward(place)))


@lru_cache(maxsize=PLACES_MAX)
def _root(place: ProjectPlace) -> Path:
    """The project's root; without version control that is the directory itself, not the whole file system."""
    return place.worktree.resolve() if place.vcs is not None else place.directory.resolve()


def _names(environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name != "CLAUDE.md" or not environ.get(NO_CLAUDE))


def _inside(path: Path, root: Path) -> bool:
    resolved = _resolved(path)
    return resolved is not None and root in resolved.parents


def _resolved(path: Path) -> Path | None:
    """The path without links; None if they lead in a circle."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):
        return None


def _has(folder: Path, name: str) -> bool:
    """Whether a file of this name stands in a folder; most often the folder itself tells that none does."""
    return name in _standing.present(str(folder)) and _is_file(folder / name)


def _is_file(path: Path) -> bool:
    """Whether there is a file. One that may not be looked at is there: its loader will say that it is unavailable."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ELOOP


def _can_be_written(path: str) -> bool:
    """Whether a log can hold the path: a name that is not UTF-8 it cannot."""
    return clean(path) == path


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))

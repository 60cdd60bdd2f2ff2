"""The instruction service: which files and addresses a session must follow, and what they say now.

It owns discovery, identity and loading. A source is known by its path (symlinks resolved) or its address. Project
files count only inside the project's root: a link that leads out of it is not followed. What a person configures
may lie anywhere.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from turnkeeper.core.limits import INSTRUCTION_BYTES_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.surrogates import clean
from turnkeeper.workspace import paths
from turnkeeper.workspace.project import ProjectPlace

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""The first name that is found anywhere counts, and with it every file of that name."""

NO_CLAUDE = "OPENCODE_DISABLE_CLAUDE_CODE"
NO_PROJECT = "OPENCODE_DISABLE_PROJECT_CONFIG"


class InstructionSource(Value):
    """Where instructions come from: the path of a file, or an address."""

    name: str
    kind: Literal["file", "url"] = "file"


def discover(
    place: ProjectPlace,
    configured: Iterable[str],
    nested: Iterable[str],
    environ: Mapping[str, str],
    home: Path,
) -> list[InstructionSource]:
    """Every source in force, each once: global, project nearest first, configured, addresses, then nested."""
    urls = [one for one in configured if _is_url(one)]
    files = [*_global(environ, home), *_project(place, environ), *_configured(place, configured, home)]
    found = [InstructionSource(name=str(path)) for path in files]
    found.extend(InstructionSource(name=url, kind="url") for url in urls)
    # A nested file may have become a link since it was met.
    found.extend(InstructionSource(name=path) for path in nested if _inside(Path(path), _root(place)))
    return list({source.name: source for source in found}.values())


def nearby(read: Path, place: ProjectPlace, environ: Mapping[str, str]) -> list[str]:
    """Instruction files between a file that was read and the folders whose files hold anyway, nearest first."""
    if environ.get(NO_PROJECT):
        return []
    root, file, ambient = _root(place), os.path.realpath(read), _ambient(place)
    found = []
    folder = os.path.dirname(file)
    while folder not in ambient and folder.startswith(f"{str(root).rstrip('/')}/"):
        path = _first(folder, environ)
        if path is not None and str(path) != file and _inside(path, root):
            found.append(str(_resolved(path)))
        folder = os.path.dirname(folder)
    return [path for path in found if _can_be_written(path)]


def _first(folder: str, environ: Mapping[str, str]) -> Path | None:
    """The instruction file of a folder: the first name that stands there."""
    paths = (Path(folder, name) for name in _names(environ))
    return next((path for path in paths if _is_file(path)), None)


def read(source: InstructionSource) -> str | None:
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
    candidates = [paths.config(environ) / "AGENTS.md", paths.config(environ, paths.OPENCODE) / "AGENTS.md"]
    if not environ.get(NO_CLAUDE):
        candidates.append(home / ".claude" / "CLAUDE.md")
    yield from [path.resolve() for path in candidates if _is_file(path)][:1]


def _project(place: ProjectPlace, environ: Mapping[str, str]) -> Iterator[Path]:
    if environ.get(NO_PROJECT):
        return
    root, folders = _root(place), _upward(place)
    for name in _names(environ):
        found = [folder / name for folder in folders if _is_file(folder / name)]
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


def _upward(place: ProjectPlace) -> list[Path]:
    """From the session's directory up to the project's root."""
    directory, root = place.directory.resolve(), _root(place)
    folders = [directory, *directory.parents]
    return folders[: folders.index(root) + 1] if root in folders else [directory]


def _ambient(place: ProjectPlace) -> frozenset[str]:
    return frozenset(map(str, _upward(place)))


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

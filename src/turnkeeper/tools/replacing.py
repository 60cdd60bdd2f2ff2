"""Replacing: one or more texts replaced by others in a file's content, in memory. All of them, or ToolFailure."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, assert_never

from turnkeeper.text import edit_match
from turnkeeper.text.edit_match import Ambiguous, Edited, NoMatch, Oversized
from turnkeeper.text.file_text import FileText, Unencodable
from turnkeeper.tools.tool import ToolFailure


class Replacement(NamedTuple):
    """A replacement of one text by another; ``every``: of each occurrence."""

    old: str
    new: str
    every: bool = False


class Replaced(NamedTuple):
    """The new content of a file, and the number of replaced places."""

    content: bytes
    places: int


def replaced(path: Path, before: FileText, replacements: Sequence[Replacement]) -> Replaced:
    """The file's content after all replacements, each made in the result of the one before."""
    text, count = before.text, 0
    for number, one in enumerate(replacements, 1):
        which = f"Edit {number} of {len(replacements)}: " if len(replacements) > 1 else ""
        edited = _edited(path, text, one, which)
        text, count = edited.content, count + edited.count
    return Replaced(encoded(path, before, text), count)


def encoded(path: Path, form: FileText, text: str) -> bytes:
    """A text in the form that a file has."""
    try:
        return form.encode(text)
    except Unencodable as error:
        raise ToolFailure(
            f"{str(path)!r} is encoded in {form.encoding_name}, and {error}. Use characters that it has."
        ) from error


def require_different(replacement: Replacement, which: str = "") -> None:
    """Raise ToolFailure for a text that is to be replaced by itself."""
    if replacement.old == replacement.new:
        raise ToolFailure(f"{which}oldString and newString are the same, so there is nothing to change.")


def _edited(path: Path, text: str, one: Replacement, which: str) -> Edited:
    outcome = edit_match.edit(text, one.old, one.new, every=one.every)
    match outcome:
        case Edited():
            return outcome
        case NoMatch():
            raise ToolFailure(
                f"{which}oldString was not found in {str(path)!r}. Read the file and copy the text exactly, blanks "
                "included."
            )
        case Ambiguous(count=count):
            raise ToolFailure(
                f"{which}oldString was found {count} times in {str(path)!r}. Add lines around it until it is the only "
                "one, or set replaceAll."
            )
        case Oversized(lines=lines):
            raise ToolFailure(
                f"{which}The nearest text to oldString in {str(path)!r} has {lines} lines, far more than you gave. "
                "Read the file and copy the text exactly."
            )
        case _:
            assert_never(outcome)

"""Edits of the user's own configuration files, which keep comments, order and layout, or are not made at all."""

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

from turnkeeper.model.refusal import Conflict, Invalid


def edited(file: Path, edit: Callable[[str], str | None], advice: str) -> str:
    """The text of a file after an edit. Raises Conflict with advice if it would cost the layout."""
    found = edit(text_of(file))
    if found is None:
        raise Conflict(f"{str(file)!r} cannot be changed without losing its layout, so it was left alone; {advice}")
    return found


def edit_all(files: list[Path], edit: Callable[[Path, str], str | None], advice: str) -> list[Path]:
    """Edit all files, or none if one of them cannot be edited; those that changed."""
    found = [(file, edited(file, partial(edit, file), advice)) for file in files]
    changed = [(file, text) for file, text in found if text != text_of(file)]
    for file, text in changed:
        write(file, text)
    return [file for file, _ in changed]


def text_of(file: Path) -> str:
    """The text of a file; empty if there is none. Raises Invalid."""
    from turnkeeper.workspace import settings_source

    if not os.path.lexists(file):
        return ""
    try:
        return settings_source.content_of(file).decode("utf-8")
    except UnicodeDecodeError as error:
        raise Invalid(f"{str(file)!r} is no text: {error}") from error


def write(file: Path, text: str) -> None:
    """Write a file as a whole."""
    from turnkeeper.workspace import files

    files.write_whole(file, text.encode())

"""References in settings: ``{env:NAME}`` and ``{file:path}``, and their values."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from turnkeeper.core import trust
from turnkeeper.core.setting_checks import Problem, dotted
from turnkeeper.model.refusal import Invalid
from turnkeeper.text.marks import Mark, Marks
from turnkeeper.workspace import files

FILE_BYTES_MAX: Final = 1024 * 1024
"""Maximum size of a configuration file, and of a file in ``{file:...}``."""
FILLED_CHARS_MAX: Final = 16 * 1024 * 1024
"""Maximum length of a text of settings with everything that it refers to."""


class BadReference(Invalid):
    """A file that settings refer to cannot be read. ``written`` is the reference."""

    def __init__(self, message: str, written: str) -> None:
        super().__init__(message)
        self.written = written

    def place(self, text: str) -> tuple[int, int]:
        """The line and column of the reference in a text without comments; zeros if it is not there."""
        at = text.find(self.written)
        return (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)) if at >= 0 else (0, 0)


def values_of(text: str, folder: Path, environ: Mapping[str, str]) -> dict[str, str]:
    """The value of each reference of a text. Raises BadReference."""
    return {one[0]: _value(one, folder, environ) for one in trust.REFERENCE.finditer(text)}


def unset_variables(text: str, environ: Mapping[str, str], found: Marks) -> tuple[Problem, ...]:
    """The references of a text without comments to variables that are not set, each with the value it is in."""
    problems = []
    for one in trust.REFERENCE.finditer(text):
        kind, name = one.groups()
        if kind == "env" and name not in environ:
            place = Mark(text.count("\n", 0, one.start()) + 1, one.start() - text.rfind("\n", 0, one.start()))
            path = max((path for path in found if found[path] <= place), key=lambda path: found[path], default=())
            problems.append(Problem(path, f"{dotted(path)}: the variable {name} is not set, so {one[0]} is empty"))
    return tuple(problems)


def filled(text: str, values: Mapping[str, str]) -> str:
    """The text with its references replaced by their values."""
    return trust.REFERENCE.sub(lambda reference: values.get(reference[0], reference[0]), text)


def check_filled(chars: int) -> None:
    """Refuse settings that become too large: a file of a few lines can name another one many times."""
    if chars > FILLED_CHARS_MAX:
        raise Invalid(f"with the files and variables that it names it has more than {FILLED_CHARS_MAX:,} characters")


def path_from(name: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """The path for a name: below the home directory if it begins with ``~/``, else relative to a folder."""
    home = environ.get("HOME", "")
    return Path(home) / name[2:] if name.startswith("~/") and home else folder / name


def _value(reference: re.Match[str], folder: Path, environ: Mapping[str, str]) -> str:
    kind, name = reference.groups()
    if kind == "env":
        return environ.get(name, "")
    try:
        return files.read_bytes(path_from(name, folder, environ), FILE_BYTES_MAX).decode("utf-8").strip()
    except (OSError, ValueError, Invalid) as error:
        raise BadReference(f"{{file:{name}}} cannot be read: {error}", reference[0]) from error

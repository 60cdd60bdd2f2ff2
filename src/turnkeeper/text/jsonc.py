"""JSONC: JSON with comments and trailing commas."""

import json
import re
from typing import Final, NoReturn

from turnkeeper.model.value import Json

# A string, a comment, or a comma followed by a closing bracket after only white space and comments.
_TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\\n])*"'
    r"|//[^\n]*"
    r"|/\*.*?(?:\*/|\Z)"
    r"|,(?=(?:\s|//[^\n]*(?:\n|\Z)|/\*.*?\*/)*[\]}])",
    re.DOTALL,
)


class JsoncError(ValueError):
    """The text is not JSONC. ``line`` and ``column`` count from 1."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"{reason} at line {line}, column {column}")
        self.line = line
        self.column = column


def parse(text: str) -> Json:
    """Parse JSONC. Raises JsoncError."""
    return parse_plain(plain(text))


def parse_plain(text: str) -> Json:
    """Parse what ``plain`` made of a text. Raises JsoncError."""
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsoncError("nested too deeply", 1, 1) from error


def plain(text: str) -> str:
    """The text as JSON: comments and trailing commas become spaces, so that positions do not change."""
    return _TOKEN.sub(_blanked, text)


def _blanked(token: re.Match[str]) -> str:
    found = token[0]
    if found.startswith('"'):
        return found
    if found.startswith("/*") and not (found.endswith("*/") and len(found) >= 4):
        # Unchanged: the parser then reports the position of the unclosed comment.
        return found
    return re.sub(r"[^\n]", " ", found)


def _refuse(name: str) -> NoReturn:
    raise JsoncError(f"{name} is not JSON", 1, 1)

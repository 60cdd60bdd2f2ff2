"""JSONC: JSON as people write it, with comments and trailing commas."""

import json
import re
from typing import Final, NoReturn

from turnkeeper.model.value import Json

# A string, a comment, or a comma that only space and comments part from the bracket that closes its list.
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
    """What the text means. Raises JsoncError."""
    try:
        return json.loads(plain(text).removeprefix("\ufeff"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsoncError("nested too deeply", 1, 1) from error


def plain(text: str) -> str:
    """The same text as JSON: comments and trailing commas are blanked, so that every place stays where it was."""
    return _TOKEN.sub(_blanked, text)


def _blanked(token: re.Match[str]) -> str:
    found = token[0]
    if found.startswith('"'):
        return found
    if found.startswith("/*") and not (found.endswith("*/") and len(found) >= 4):
        # Left as it is: the parser then names the place where the comment was opened.
        return found
    return re.sub(r"[^\n]", " ", found)


def _refuse(name: str) -> NoReturn:
    raise JsoncError(f"{name} is not JSON", 1, 1)

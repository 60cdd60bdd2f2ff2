"""JSONC: JSON with comments and trailing commas."""

import json
import re
from typing import Final, NoReturn

from turnkeeper.model.value import Json

# A string (also one that is not closed, which ends with its line), a comment, a comma, a closing bracket, other text.
# Each token is looked at once: the text may come from anybody, and must not take longer than its length.
_TOKEN: Final = re.compile(
    r'"(?:\\.|[^"\\\n])*+"?'
    r"|//[^\n]*+"
    r"|/\*.*?(?:\*/|\Z)"
    r"|[,\]}]"
    r'|[^\s"/,\]}]++'
    r"|/",
    re.DOTALL,
)

_NO_SPACE: Final = re.compile(r"[^\n]")


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
    """Parse the output of ``plain``. Raises JsoncError."""
    try:
        return json.loads(text.removeprefix("\ufeff"), parse_constant=_refuse)
    except json.JSONDecodeError as error:
        raise JsoncError(error.msg, error.lineno, error.colno) from error
    except RecursionError as error:
        raise JsoncError("nested too deeply", 1, 1) from error
    except JsoncError:
        raise
    except ValueError as error:  # A number of more digits than Python reads.
        raise JsoncError("a number is too long", 1, 1) from error


def plain(text: str) -> str:
    """The text as JSON: comments and trailing commas become spaces, so that positions do not change."""
    pieces: list[str] = []
    at, comma = 0, -1  # What is copied, and the index of the last comma if only space and comments came since.
    for token in _TOKEN.finditer(text):
        found = token[0]
        if found.startswith(("//", "/*")):
            if not found.startswith("/*") or (found.endswith("*/") and len(found) >= 4):
                pieces += [text[at : token.start()], _NO_SPACE.sub(" ", found)]
                at = token.end()
            # Else unchanged: the parser then reports the position of the unclosed comment.
        elif found == ",":
            pieces += [text[at : token.start()], found]
            at, comma = token.end(), len(pieces) - 1
        else:
            if found in "]}" and comma >= 0:
                pieces[comma] = " "
            comma = -1
    return "".join([*pieces, text[at:]])


def _refuse(name: str) -> NoReturn:
    raise JsoncError(f"{name} is not JSON", 1, 1)

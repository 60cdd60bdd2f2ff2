"""Wildcards of permission rules: ``*`` matches any characters, ``?`` matches one; nothing else is special.

A pattern that ends in a space and a star also matches without them: ``ls *`` matches ``ls`` and ``ls -la``, not
``lsof``. Backslashes equal slashes in patterns and texts, so that a rule applies to paths of any system.
"""

import re
from functools import lru_cache


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern matches a whole text, including line breaks."""
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


def literal(text: str) -> str:
    """A pattern for one text. A star, which cannot be escaped, becomes ``?``."""
    return text.replace("*", "?")


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = pattern.replace("\\", "/")
    forms = [plain, plain[:-2]] if plain.endswith(" *") else [plain]
    return re.compile("|".join(_expression(form) for form in forms), re.DOTALL)


def _expression(pattern: str) -> str:
    """The pattern as a regular expression without backtracking.

    The first match of a piece is as good as a later one, so each piece is an atomic group and matching takes linear
    time. A plain ``.*`` for each star could take minutes for a long command.
    """
    first, *pieces = (_piece(piece) for piece in re.split(r"\*+", pattern))
    if not pieces:
        return first
    return first + "".join(f"(?>.*?{piece})" for piece in pieces[:-1] if piece) + ".*" + pieces[-1]


def _piece(text: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in text)

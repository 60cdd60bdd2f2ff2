"""Wildcards of permission rules: ``*`` is any run of characters, ``?`` is one; nothing else is special.

A pattern that ends in a space and a star also matches without them: ``ls *`` covers ``ls`` and ``ls -la``, not
``lsof``. Backslashes count as slashes on both sides, so one rule serves paths of any system.
"""

import re
from functools import lru_cache


def matches(text: str, pattern: str) -> bool:
    """Whether a pattern covers the whole of a text, line breaks included."""
    return _compiled(pattern).fullmatch(text.replace("\\", "/")) is not None


def literal(text: str) -> str:
    """A pattern for this text, and nothing longer. There is no escape, so a star becomes any one character."""
    return text.replace("*", "?")


@lru_cache(maxsize=4096)
def _compiled(pattern: str) -> re.Pattern[str]:
    plain = pattern.replace("\\", "/")
    forms = [plain, plain[:-2]] if plain.endswith(" *") else [plain]
    return re.compile("|".join(_expression(form) for form in forms), re.DOTALL)


def _expression(pattern: str) -> str:
    """The pattern as a regular expression that never tries a piece twice.

    The first place where a piece fits is as good as any later one, so each is atomic and matching takes time
    proportional to the text. A plain ``.*`` for each star would let a long command stall us.
    """
    first, *pieces = (_piece(piece) for piece in re.split(r"\*+", pattern))
    if not pieces:
        return first
    return first + "".join(f"(?>.*?{piece})" for piece in pieces[:-1] if piece) + ".*" + pieces[-1]


def _piece(text: str) -> str:
    return "".join("." if character == "?" else re.escape(character) for character in text)

"""Splits a shell command that is not understood into pieces: all of its commands, and pieces that are none."""

import re
from typing import Final

from turnkeeper.text.shell_braces import EXPANSIONS_MAX, braced

_FRAGMENT_ENDS: Final = re.compile(r"[;&|\n(){}`]+|\b(?:then|do|else|elif|if|while|until|in|time|coproc)\b|!")

_BRACED: Final = re.compile(r"[^\s;&|()<>{]*\{[^\s;&|()<>]*")
"""An approximation of a word with braces, in a text that is not understood."""


def fragments(text: str) -> tuple[str, ...]:
    """Every piece of a text that might be a command, quoted or not. All commands of the text are among them."""
    joined = text.replace("\\\n", "")
    opened = (
        _BRACED.sub(lambda word: " ".join(braced(word[0])), joined) if text.count("{") <= EXPANSIONS_MAX else joined
    )
    readings = dict.fromkeys([text, joined, opened])
    pieces = (piece.strip() for reading in readings for piece in _FRAGMENT_ENDS.split(reading))
    return tuple(dict.fromkeys(piece for piece in pieces if piece))

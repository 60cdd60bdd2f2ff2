"""What a word is, the same for every engine: a run of letters and digits, compared without case."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")


def words(text: str) -> list[str]:
    """The words of a text in their comparable form, in order, with repeats."""
    if text.isascii():
        return _WORD.findall(text.lower())  # The same, and several times as fast.
    # Composed first, so that "é" typed as one character finds "é" stored as two.
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())

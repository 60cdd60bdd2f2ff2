"""Words of the text index, for all engines: runs of letters and digits, compared without case."""

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_ASCII = bytes(ord(chr(code).lower()) if chr(code).isalnum() and code < 128 else 32 for code in range(256))


def words(text: str) -> list[str]:
    """The words of a text in their comparable form, in order, with repeats."""
    if text.isascii():  # Ten times as fast, with an equal result: a fork indexes thousands of texts.
        return text.encode().translate(_ASCII).decode().split()
    # Composed first, so that "é" typed as one character finds "é" stored as two.
    return _WORD.findall(unicodedata.normalize("NFC", text).casefold())

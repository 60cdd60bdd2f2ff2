"""Mentions: the names that a text calls with ``@``, such as ``@src/app.py`` or ``@explore``."""

import re
from typing import Final

# Not in the middle of a word, so that addresses of people stay alone, and not in code. A dot ends a sentence more
# often than a name: it belongs to the name if it begins it or if more of the name follows.
_MENTION: Final = re.compile(r"(?<![\w`])@(\.?[^\s`,.]*(?:\.[^\s`,.]+)*)")


def mentions(text: str) -> tuple[str, ...]:
    """The names in the order they are first called, each once."""
    return tuple(dict.fromkeys(name for name in _MENTION.findall(text) if name.strip(".")))

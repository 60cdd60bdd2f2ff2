"""Mentions: names after ``@`` in a text, such as ``@src/app.py`` or ``@explore``."""

import re
from typing import Final

# Not inside a word (an e-mail address) and not in code. A dot belongs to the name only at its beginning or before more
# of the name: otherwise it ends a sentence.
_MENTION: Final = re.compile(r"(?<![\w`])@(\.?[^\s`,.]*(?:\.[^\s`,.]+)*)")


def mentions(text: str) -> tuple[str, ...]:
    """The mentioned names, each once, in order."""
    return tuple(dict.fromkeys(name for name in _MENTION.findall(text) if name.strip(".")))

"""Masks: settings as clients see them, with references to variables and files in the place of their contents."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from turnkeeper.model.value import Json

CHOICES: Final = frozenset({"agent", "default_agent", "mode", "model", "share", "small_model", "variant"})
"""Settings that clients act on: the name of a model or an agent, or one of a few words. They are shown as they are."""
ACTIONS: Final = frozenset({"allow", "ask", "deny"})

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")


class Mask(msgspec.Struct, frozen=True):
    """Hides what a configuration took from variables and files. ``filled`` has each text as it was written."""

    filled: Mapping[str, str]

    def text(self, text: str) -> str:
        """A text as it was written, and without credentials in an address."""
        written = self.filled.get(text, text) if text and text not in ACTIONS else text
        return _CREDENTIALS.sub("***@", written)

    def json(self, value: Json, *, has_patterns: bool = False) -> Json:
        """A JSON value with all its texts masked, but for choices. Names are shown as they are, unless patterns."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {
                    self.text(name) if has_patterns else name: item
                    if name in CHOICES and isinstance(item, str)
                    else self.json(item, has_patterns=has_patterns or name == "permission")
                    for name, item in value.items()
                }
            case list() | tuple():
                return [self.json(item) for item in value]
            case _:
                return value

"""Masks: settings as clients see them, with references to variables and files in the place of their contents."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from turnkeeper.model.value import Json

CHOICES: Final = frozenset({"agent", "default_agent", "mode", "model", "share", "small_model", "variant"})
"""Settings that clients act on: the name of a model or an agent, or one of a few words."""
ACTIONS: Final = frozenset({"all", "allow", "ask", "auto", "deny", "disabled", "manual", "primary", "subagent"})
"""Words that are no secret, wherever they came from."""
NAMING: Final = frozenset({"agent", "command", "models", "provider"})
"""Settings whose names are given by the user, and may be filled in like any text."""

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY: Final = re.compile(r"(?<=\?)[^#]+")
_ADDRESS: Final = re.compile(r"https?://\S+")


class Mask(msgspec.Struct, frozen=True):
    """Hides what a configuration took from variables and files. ``filled`` has each text as it was written."""

    filled: Mapping[str, str]
    is_model: Callable[[str], bool] = lambda name: False
    """Whether this is the name of a model that the catalogue has. Such a name is no secret."""

    def text(self, text: str) -> str:
        """A text as it was written, and without credentials or a query in an address."""
        written = self.filled.get(text, text) if text and text not in ACTIONS else text
        shown = _CREDENTIALS.sub("***@", written)
        return _QUERY.sub("***", shown) if _ADDRESS.fullmatch(shown) else shown

    def choice(self, name: str) -> str:
        """The name of a model or an agent, or a word: filled in if it is known to be none of the secrets."""
        return name if name not in self.filled or self.is_model(name) else self.text(name)

    def json(self, value: Json, *, has_patterns: bool = False, has_names: bool = False) -> Json:
        """A JSON value with all its texts masked. Names are shown as they are, unless they are the user's own."""
        match value:
            case str():
                return self.text(value)
            case dict():
                return {
                    self.text(name) if has_patterns or has_names else name: self.choice(item)
                    if name in CHOICES and isinstance(item, str)
                    else self.json(item, has_patterns=has_patterns or name == "permission", has_names=name in NAMING)
                    for name, item in value.items()
                }
            case list() | tuple():
                return [self.json(item) for item in value]
            case _:
                return value

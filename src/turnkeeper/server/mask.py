"""Mask: replaces values that settings took from variables and files by the references to them."""

import re
from collections.abc import Callable, Mapping
from typing import Final

import msgspec

from turnkeeper.model.value import Json

CHOICES: Final = frozenset({"agent", "default_agent", "mode", "model", "share", "small_model", "variant"})
"""Settings that clients act on: the name of a model or an agent, or one of a few keywords."""
ACTIONS: Final = frozenset({"all", "allow", "ask", "auto", "deny", "disabled", "manual", "primary", "subagent"})
"""Keywords that are never secret, even if a variable or a file holds one."""
NAMING: Final = frozenset({"agent", "command", "models", "provider"})
"""Settings whose keys are chosen by the user, and may therefore come from a variable or a file."""
SECRET_CHARS: Final = 6
"""Minimum length of a value that is masked within other texts."""

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")
_QUERY: Final = re.compile(r"(?<=\?)[^#]+")
_ADDRESS: Final = re.compile(r"https?://\S+")


class Mask(msgspec.Struct, frozen=True):
    """Hides the values that a configuration took from variables and files. ``filled`` maps a value to its reference."""

    filled: Mapping[str, str]
    is_model: Callable[[str], bool] = lambda name: False
    """Whether the catalogue has a model of this name; the name is then not secret."""

    def text(self, text: str) -> str:
        """The text as it was written in the settings, without credentials and query if it is a URL."""
        written = self.filled.get(text, text) if text and text not in ACTIONS else text
        shown = _CREDENTIALS.sub("***@", written)
        return _QUERY.sub("***", shown) if _ADDRESS.fullmatch(shown) else shown

    def within(self, text: str) -> str:
        """A text that may contain values anywhere, masked. Short values stay, because they occur in many words."""
        for value in sorted(self.filled, key=len, reverse=True):
            if len(value) >= SECRET_CHARS and value not in ACTIONS:
                text = text.replace(value, self.filled[value])
        return _CREDENTIALS.sub("***@", text)

    def choice(self, name: str) -> str:
        """The name of a model or an agent, or a keyword; masked unless it is known not to be secret."""
        return name if name not in self.filled or self.is_model(name) else self.text(name)

    def json(self, value: Json, *, has_patterns: bool = False, has_names: bool = False) -> Json:
        """A JSON value with all its texts masked. Keys are shown, unless the user chose them."""
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

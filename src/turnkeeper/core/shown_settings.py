"""Settings as people are shown them: without keys, tokens and passwords."""

import re
from collections.abc import Mapping
from typing import Final

from turnkeeper.model.value import Json

HIDDEN: Final = "***"

_SECRET: Final = re.compile(
    r"(?:api|access|private|secret|auth)[-_]?key|token(?!s|_)|secret|passw|passphrase|credential|authorization", re.I
)
_ALL_SECRET: Final = frozenset({"headers", "environment"})
"""Objects whose values may all be secrets, under any name."""
_CREDENTIALS: Final = re.compile(r"(?<=://)[^/@\s]+@")


def shown(value: Json, filled: Mapping[str, str], name: str = "") -> Json:
    """A value without secrets. ``filled`` maps texts that came from a variable or a file to what is written."""
    match value:
        case str():
            if value in filled:
                return filled[value]
            return HIDDEN if value and _SECRET.search(name) else _CREDENTIALS.sub(f"{HIDDEN}@", value)
        case dict():
            if name in _ALL_SECRET:
                return {key: filled.get(str(one), HIDDEN) for key, one in value.items()}
            return {filled.get(key, key): shown(one, filled, key) for key, one in value.items()}
        case list() | tuple():
            return [shown(one, filled, name) for one in value]
        case _:
            return value

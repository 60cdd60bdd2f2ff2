"""Durations as people write them: ``30d``, ``12h``, ``90m``."""

import re
from typing import Final

SHOWN: Final = 40
"""How many characters of a wrong duration the error message has."""

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


def parse_duration(text: str) -> int:
    """The seconds of a duration of seconds, minutes, hours, days or weeks. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        shown = text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
        raise ValueError(f"{shown!r} is not a duration; write a number and s, m, h, d or w, as 30d or 12h")
    return int(found[1]) * _UNITS[found[2]]

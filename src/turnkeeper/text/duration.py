"""Durations as people write them: ``30d``, ``12h``, ``90m``."""

import re
from typing import Final

_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"(\d{1,9})([smhdw])", re.ASCII)


def parse_duration(text: str) -> int:
    """The seconds of a duration of seconds, minutes, hours, days or weeks. Raises ValueError."""
    found = _DURATION.fullmatch(text.strip().lower())
    if found is None or not int(found[1]):
        raise ValueError(f"{text!r:.40} is not a duration; write a number and s, m, h, d or w, as 30d or 12h")
    return int(found[1]) * _UNITS[found[2]]

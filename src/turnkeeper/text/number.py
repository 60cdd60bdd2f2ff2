"""Whole numbers that a person or a client writes."""

import re
from typing import Final

_NUMBER: Final = re.compile(r"\d{1,18}")


def number_in(text: str) -> int | None:
    """The number that a text holds; None if it holds something else, or more digits than any number of ours."""
    return int(text) if _NUMBER.fullmatch(text) else None

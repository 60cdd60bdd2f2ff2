"""Partial arguments: a call's input that Gemini sends value by value, each with the path of its place."""

import re
from itertools import pairwise
from typing import Final

from turnkeeper.providers.answer import MalformedStream
from turnkeeper.providers.codec import Wire, text_of

ITEMS_MAX: Final = 10_000
"""How long a list may become."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


def add(given: Wire, piece: Wire) -> None:
    """Put a value at its place in the input; a string that is there already grows."""
    path = [int(index) if index else name for name, index in _STEP.findall(text_of(piece.get("jsonPath")))]
    if not path:
        raise MalformedStream("a piece of an input has no place")
    value = next((piece[key] for key in _VALUES if key in piece), None)
    holder: object = given
    for step, following in pairwise(path):
        holder = _child(holder, step, [] if isinstance(following, int) else {})
    if isinstance(value, str):
        value = text_of(_child(holder, path[-1], "")) + value
    _put(holder, path[-1], value)


def _child(holder: object, step: str | int, empty: object) -> object:
    """The value at a step of a path; ``empty`` is put there if there is none."""
    if isinstance(holder, dict) and isinstance(step, str):
        return holder.setdefault(step, empty)
    if isinstance(holder, list) and isinstance(step, int) and step < ITEMS_MAX:
        holder.extend(None for _ in range(step + 1 - len(holder)))
        holder[step] = empty if holder[step] is None else holder[step]
        return holder[step]
    raise MalformedStream(f"a piece of an input has no place at {step!r}")


def _put(holder: object, step: str | int, value: object) -> None:
    _child(holder, step, None)
    match holder, step:
        case dict(), str():
            holder[step] = value
        case list(), int():
            holder[step] = value

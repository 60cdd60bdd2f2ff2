"""Partial arguments: assembles a tool call's input, which Gemini sends as values with JSON paths."""

import re
from itertools import pairwise
from typing import Final

from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.providers.answer import MalformedStream
from turnkeeper.providers.codec import Wire, text_of

ITEMS_MAX: Final = 10_000
"""Maximum length of a list."""

_STEP = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")


def add(given: Wire, piece: Wire) -> None:
    """Set a value at its path in the input, or append it to the string there."""
    path = [int(index) if index else name for name, index in _STEP.findall(text_of(piece.get("jsonPath")))]
    if not path:
        raise MalformedStream("a piece of an input has no place")
    if len(path) > JSON_DEPTH_MAX:
        raise MalformedStream(f"a piece of an input is nested more than {JSON_DEPTH_MAX} deep")
    value = next((piece[key] for key in _VALUES if key in piece), None)
    holder: object = given
    for step, following in pairwise(path):
        holder = _child(holder, step, [] if isinstance(following, int) else {})
    if isinstance(value, str):
        value = text_of(_child(holder, path[-1], "")) + value
    _put(holder, path[-1], value)


def _child(holder: object, step: str | int, empty: object) -> object:
    """The value at a step of a path, which is set to ``empty`` if there is none."""
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

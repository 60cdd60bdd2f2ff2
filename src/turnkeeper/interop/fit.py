"""Fit JSON from outside into one of our values, keeping what does not fit beside it.

A field that is unknown, or known and of a wrong shape but not needed, goes to the value's ``$extra`` and comes back on
export. Only where a needed field is missing or makes no sense is the whole refused.
"""

import math
import re
from typing import TypeVar, cast

import msgspec

from turnkeeper.core.extra import unknown
from turnkeeper.interop.raw import RawObject, Unreadable, plain
from turnkeeper.model.message import BaseMessage
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.session import Session

INTERNAL = frozenset({"seq", "nth", "origin", "$extra"})
"""Fields that are ours alone: never taken from outside, never written there."""

T = TypeVar("T")

_ERROR = re.compile(r"(?P<reason>.*) - at `(?P<path>\$.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def fit(raw: RawObject, kind: object) -> Session | BaseMessage | BasePart:
    """The value, with an overlay for what it cannot hold. Raises Unreadable."""
    try:
        # msgspec accepts unions, which the checker cannot express as a type argument.
        value = cast("Session | BaseMessage | BasePart", trimmed(public(raw), kind))
        overlay = unknown(raw, public(cast(RawObject, plain(value))))
    except RecursionError as error:
        raise Unreadable("is nested too deeply") from error
    return value if overlay is None else value.but(extra=overlay)


def public(json: RawObject) -> RawObject:
    """The object without what is ours alone."""
    return {key: item for key, item in json.items() if key not in INTERNAL}


def trimmed(raw: object, kind: object) -> object:
    """Convert, leaving out fields of a wrong shape as long as they are not needed. Raises Unreadable."""
    while True:
        try:
            return msgspec.convert(raw, cast("type[object]", kind))
        except msgspec.ValidationError as error:
            found = _ERROR.fullmatch(str(error))
            steps = _steps(found["path"]) if found else []
            if not steps:
                raise Unreadable(str(error)) from error
            raw = _without(raw, steps)


def _steps(path: str) -> list[str | int]:
    return [key if key else int(index) for key, index in _STEP.findall(path.partition("[...]")[0])]


def _without(json: object, steps: list[str | int]) -> object:
    """A copy without what stands at the end of the path; a fraction there is cut to a whole number instead."""
    step, *rest = steps
    if isinstance(json, dict) and isinstance(step, str):
        inner = json[step] if rest or _is_fraction(json[step]) else None
        if rest and not _is_item(rest):
            return {**json, step: _without(inner, rest)}
        if not rest and _is_fraction(inner):
            return {**json, step: math.trunc(cast(float, inner))}
        # An item cannot leave a list without moving its neighbours, so the whole list goes.
        return {key: item for key, item in json.items() if key != step}
    assert isinstance(json, list), "the path was made for this value"
    return [_without(item, rest) if index == step else item for index, item in enumerate(json)]


def _is_item(steps: list[str | int]) -> bool:
    return len(steps) == 1 and isinstance(steps[0], int)


def _is_fraction(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value)

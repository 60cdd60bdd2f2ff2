"""Convert JSON of a source to a value of the model, keeping fields that do not fit.

A field that is unknown, or optional and of a wrong type, is kept in the ``$extra`` of the value and exported again. The
JSON is refused only if a required field is missing or of a wrong type.
"""

import math
import re
from typing import TypeGuard, TypeVar

import msgspec

from turnkeeper.core.extra import unknown
from turnkeeper.interop.raw import RawObject, Unreadable, plain
from turnkeeper.interop.shapes import as_object
from turnkeeper.model.value import Value

INTERNAL = frozenset({"seq", "nth", "origin", "$extra"})
"""Fields that are neither imported nor exported."""

T = TypeVar("T")
V = TypeVar("V", bound=Value)

_ERROR = re.compile(r"(?P<reason>.*) - at `(?P<path>\$.*)`", re.DOTALL)
_STEP = re.compile(r"\.([^.\[]+)|\[(\d+)\]")


def converted(raw: RawObject, kind: type[V]) -> V:
    """The value, with the fields that do not fit in its ``$extra``. Raises Unreadable."""
    try:
        value = trimmed(public(raw), kind)
        overlay = unknown(raw, public(as_object(plain(value))))
    except RecursionError as error:
        raise Unreadable("is nested too deeply") from error
    return value if overlay is None else value.but(extra=overlay)


def public(json: RawObject) -> RawObject:
    """The object without internal fields."""
    return {key: item for key, item in json.items() if key not in INTERNAL}


def trimmed(raw: object, kind: type[T]) -> T:
    """Convert JSON, leaving out optional fields of a wrong type. Raises Unreadable."""
    while True:
        try:
            return msgspec.convert(raw, kind)
        except msgspec.ValidationError as error:
            found = _ERROR.fullmatch(str(error))
            steps = _steps(found["path"]) if found else []
            if not steps:
                raise Unreadable(str(error)) from error
            raw = _without(raw, steps)


def _steps(path: str) -> list[str | int]:
    return [key if key else int(index) for key, index in _STEP.findall(path.partition("[...]")[0])]


def _without(json: object, steps: list[str | int]) -> object:
    """A copy without the value at a path. A fraction is truncated to an integer instead of left out."""
    step, *rest = steps
    if isinstance(json, dict) and isinstance(step, str):
        inner = json[step] if rest or _is_fraction(json[step]) else None
        is_list_item = len(rest) == 1 and isinstance(rest[0], int)
        if rest and not is_list_item:
            return {**json, step: _without(inner, rest)}
        if not rest and _is_fraction(inner):
            return {**json, step: math.trunc(inner)}
        # Leaving out one item of a list would change the indexes of the others, so the list is left out.
        return {key: item for key, item in json.items() if key != step}
    assert isinstance(json, list), "the path was made for this value"
    return [_without(item, rest) if index == step else item for index, item in enumerate(json)]


def _is_fraction(value: object) -> TypeGuard[float]:
    return isinstance(value, float) and math.isfinite(value)

"""Values as clients receive them: without the fields that ``model`` marks as private."""

from functools import cache
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin

import msgspec

from turnkeeper.model.value import Value

T = TypeVar("T")


def public(value: T) -> T:
    """The value without private fields, at any depth; of a tuple, each item."""
    if isinstance(value, tuple):
        return cast("T", tuple(map(public, value)))
    if not isinstance(value, Value):
        return value
    private, nested = _fields(type(value))
    changes = dict(private)
    for name in nested:
        changes[name] = public(getattr(value, name))
    return value.but(**changes) if changes else value


@cache
def _fields(kind: type[Value]) -> tuple[dict[str, object], tuple[str, ...]]:
    """The private fields of a type with their defaults, and the fields whose values may hold private fields."""
    fields = msgspec.structs.fields(kind)
    private = {one.name: one.default for one in fields if _is_private(one.type)}
    nested = [one.name for one in fields if one.name not in private and any(map(_holds_private, _types(one.type)))]
    return private, tuple(nested)


def _is_private(given: Any) -> bool:  # A type of any form.
    metas = given.__metadata__ if get_origin(given) is Annotated else ()
    return any(isinstance(one, msgspec.Meta) and (one.extra or {}).get("private") for one in metas)


def _holds_private(kind: type[Value]) -> bool:
    return any(_fields(kind))


def _types(given: Any) -> list[type[Value]]:  # A type of any form.
    """The value types that occur in a type annotation."""
    if isinstance(given, type) and issubclass(given, Value):
        return [given]
    return [one for inner in get_args(given) for one in _types(inner)]

"""Argument checks: a public method refuses an argument of the wrong type. Python itself checks no types."""

from functools import wraps
from types import FunctionType, UnionType
from typing import Final, TypeVar, get_args

from turnkeeper.model.refusal import Invalid

C = TypeVar("C")

NAMES: Final = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "True or False",
    "Path": "a path",
    "NoneType": "None",
}
"""The checked types, and their names in an error message. Other types are checked where they are used."""


def checked(kind: type[C]) -> type[C]:
    """Class decorator: public methods raise Invalid for an argument of the wrong type."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            wanted = {one: types for one, hint in method.__annotations__.items() if (types := _types(hint))}
            wanted.pop("return", None)
            if wanted:
                setattr(kind, name, _guarded(method, wanted))
    return kind


def check(name: str, given: object, types: tuple[type, ...]) -> None:
    """Raise Invalid unless an argument has one of these types and can be stored."""
    allowed = (*types, int) if float in types else types
    names = [one.__name__ for one in types]
    if not isinstance(given, allowed) or (isinstance(given, bool) and bool not in types):
        raise Invalid(f"{name} is {' or '.join(NAMES[one] for one in names)}, not {given!r:.80}")
    if isinstance(given, str) and "Path" not in names:  # A path may hold bytes that are no text.
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise Invalid(f"{name} holds half a character ({error.reason}); send whole ones") from error


def _types(hint: object) -> tuple[type, ...]:
    """The types of an annotation; empty if one of them is not in NAMES."""
    found = get_args(hint) if isinstance(hint, UnionType) else (hint,)
    return found if all(isinstance(one, type) and one.__name__ in NAMES for one in found) else ()


def _guarded(method: FunctionType, wanted: dict[str, tuple[type, ...]]) -> object:
    names = method.__code__.co_varnames[: method.__code__.co_argcount]

    @wraps(method)
    def guarded(*args: object, **given: object) -> object:
        for name, value in (*zip(names, args, strict=False), *given.items()):
            if name in wanted:
                check(name, value, wanted[name])
        return method(*args, **given)

    return guarded

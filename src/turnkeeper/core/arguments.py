"""Argument checks: a public function refuses an argument of the wrong type. Python itself checks no types.

The types are read from the annotations, as text: a class that an annotation names may not be imported yet, because
programs that only read should start fast. So classes are recognised by their names.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from functools import wraps
from types import FunctionType
from typing import Final, NamedTuple, ParamSpec, TypeVar

from turnkeeper.model.refusal import Invalid

C = TypeVar("C")
P = ParamSpec("P")
R = TypeVar("R")


class Kind(NamedTuple):
    """A kind of values: its name in an error message, and whether a value is one."""

    words: str
    has: Callable[[object], bool]


def _of(words: str, *types: type) -> Kind:
    return Kind(words, lambda given: isinstance(given, types) and (bool in types or not isinstance(given, bool)))


def _class(name: str) -> Kind:
    return Kind(f"a {name}", lambda given: any(one.__name__ == name for one in type(given).__mro__))


def _with(words: str, method: str) -> Kind:
    return Kind(words, lambda given: not isinstance(given, type) and callable(getattr(given, method, None)))


def _many(kind: type) -> Kind:
    return Kind("a list", lambda given: isinstance(given, kind) and not isinstance(given, str | bytes | Mapping))


def _is_mapping(given: object) -> bool:
    return isinstance(given, Mapping) and all(isinstance(key, str) for key in given)


FUNCTION: Final = Kind("a function", callable)
WORD: Final = _of("text", str)
"""One of some words. Which ones is checked where it is used."""

KINDS: Final[Mapping[str, Kind]] = {
    "str": WORD,
    "int": _of("a whole number", int),
    "float": _of("a number", int, float),
    "bool": _of("True or False", bool),
    "Path": _class("Path")._replace(words="a path"),
    "None": _of("None", type(None)),
    "Absence": WORD,
    "ExportLayout": WORD,
    "PermissionAnswer": WORD,
    "ProgramName": WORD,
    "Recovery": WORD,
    "Callable": FUNCTION,
    "ProgressReport": FUNCTION,
    "Sequence": _many(Sequence),
    "tuple": _many(Sequence),
    "Iterable": _many(Iterable),
    "DamagedNames": _of("a list", list),
    "Mapping": Kind("a dictionary whose keys are text", _is_mapping),
    "Failed": _of("a dictionary", MutableMapping),
    "Engine": _with("an Engine", "scan"),
    "Provider": _with("a Provider", "stream"),
    **{name: _class(name) for name in ("FileInput", "Left", "Mint", "Notification", "Prompt", "Session", "Settings")},
    "Agent": _class("Agent")._replace(words="an Agent"),
}
"""The names in annotations that are checked. An argument with another one is checked where it is used."""


class Wanted(NamedTuple):
    """One alternative of an annotation. ``inner``: the types of a list's items, if these are checked."""

    kind: Kind
    inner: "tuple[Wanted, ...]" = ()

    @property
    def words(self) -> str:
        """The name of the alternative in an error message."""
        return f"{self.kind.words} of {_words(self.inner).removeprefix('a ')}" if self.inner else self.kind.words

    def has(self, given: object) -> bool:
        """Whether a value is of this type. Items are checked in lists and tuples only: reading could use up others."""
        if not self.kind.has(given) or not self.inner or not isinstance(given, list | tuple):
            return self.kind.has(given)
        return all(any(wanted.has(one) for wanted in self.inner) for one in given)


def checked(kind: type[C]) -> type[C]:
    """Class decorator: public methods raise Invalid for an argument of the wrong type."""
    for name, method in list(vars(kind).items()):
        if isinstance(method, FunctionType) and not name.startswith("_"):
            setattr(kind, name, checked_function(method))
    return kind


def checked_function(function: Callable[P, R]) -> Callable[P, R]:
    """Decorator: a function raises Invalid for an argument of the wrong type, before anything is done."""
    inspected: object = function
    assert isinstance(inspected, FunctionType), "a function is decorated"
    names = inspected.__code__.co_varnames[: inspected.__code__.co_argcount]
    found = {name: _alternatives(hint) for name, hint in inspected.__annotations__.items() if name != "return"}
    wanted = {name: types for name, types in found.items() if types}
    if not wanted:
        return function

    @wraps(function)
    def guarded(*args: P.args, **given: P.kwargs) -> R:
        for name, value in (*zip(names, args, strict=False), *given.items()):
            if name in wanted:
                _check(name, value, wanted[name])
        return function(*args, **given)

    return guarded


def check(name: str, given: object, annotation: str) -> None:
    """Raise Invalid unless an argument has an annotated type and can be stored."""
    _check(name, given, _alternatives(annotation))


def _check(name: str, given: object, wanted: tuple[Wanted, ...]) -> None:
    if not any(one.has(given) for one in wanted):
        raise Invalid(f"{name} is {_words(wanted)}, not {given!r:.80}")
    is_path = KINDS["Path"] in (one.kind for one in wanted)
    if is_path and "\0" in str(given):
        raise Invalid(f"{name} holds a NUL, which no path can")
    if isinstance(given, str) or is_path:
        try:
            str(given).encode(errors="surrogateescape" if is_path else "strict")  # A path may hold other bytes.
        except UnicodeEncodeError as error:
            raise Invalid(f"{name} holds half a character ({error.reason}); send whole ones") from error


def _words(wanted: Iterable[Wanted]) -> str:
    return " or ".join(one.words for one in wanted)


def _alternatives(hint: object) -> tuple[Wanted, ...]:
    """The types of an annotation; empty if one of them is not checked here."""
    text = hint if isinstance(hint, str) else hint.__name__ if isinstance(hint, type) else repr(hint)
    found = []
    for one in _split(text):
        name, _, inside = one.strip().partition("[")
        kind = KINDS.get(name.rpartition(".")[2])
        if kind is None:
            return ()
        is_list = kind in (KINDS["Sequence"], KINDS["Iterable"])
        found.append(Wanted(kind, _alternatives(inside.removesuffix("]")) if is_list else ()))
    return tuple(found)


def _split(text: str) -> Iterator[str]:
    """The alternatives of a union as text."""
    depth, begin = 0, 0
    for at, character in enumerate(text):
        depth += (character == "[") - (character == "]")
        if character == "|" and not depth:
            yield text[begin:at]
            begin = at + 1
    yield text[begin:]

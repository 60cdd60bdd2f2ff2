"""Provenance: the merge of settings, and which layer set each value of it.

| Value | Merge |
|---|---|
| objects | key by key, at every depth; the order of the keys stays |
| an entry of `command` | the stronger layer replaces it as a whole: a template never runs with another one's agent |
| `instructions`, `skills.paths`, `skills.urls` | joined, each once, the first place counts |
| `plugin` | joined, each package once, the last place counts |
| everything else | the stronger layer replaces it |
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.model.value import Json, JsonObject

Path: TypeAlias = tuple[str, ...]
"""The keys that lead to a value."""

MISSING: Final = object()
"""Equal to no value of a setting."""

JOINED: Final = frozenset({("instructions",), ("plugin",), ("skills", "paths"), ("skills", "urls")})
"""The lists that add up."""

Rule: TypeAlias = Literal["merged", "joined", "replaced"]


class Origin(NamedTuple):
    """A value of merged settings: the layer that set it, and the weaker ones whose values it took the place of."""

    path: Path
    value: Json
    layer: int
    overrode: tuple[int, ...]
    entry: int | None = None
    """The place of the value, if it is an entry of a joined list."""


def merged(layers: Iterable[JsonObject]) -> JsonObject:
    """The settings of all layers, weakest first."""
    result: JsonObject = {}
    for layer in layers:
        result = _merged(result, layer, ())
    return result


def rule(path: Path, before: Json, after: Json) -> Rule:
    """The rule by which the values of a weaker and a stronger layer are merged at this path."""
    if isinstance(before, dict) and isinstance(after, dict):
        return "replaced" if path[:1] == ("command",) and len(path) == 2 else "merged"
    if path in JOINED and isinstance(before, list) and isinstance(after, list):
        return "joined"
    return "replaced"


def setters(layers: Sequence[JsonObject], path: Path) -> tuple[int, ...]:
    """The layers that have a value at a path, weakest first.

    If the merged settings have the path, the last of these layers set it: a stronger layer that replaced an object
    above the path would have removed it.
    """
    return tuple(number for number, layer in enumerate(layers) if at(layer, path) is not MISSING)


def at(settings: JsonObject, path: Path) -> object:
    """The value at a path; MISSING if there is none."""
    value: object = settings
    for name in path:
        if not isinstance(value, dict) or name not in value:
            return MISSING
        value = value[name]
    return value


def origins(layers: Sequence[JsonObject], settings: JsonObject) -> tuple[Origin, ...]:
    """Every value of merged settings that is not an object with members, in order, with the layers that set it."""
    return tuple(_origins(layers, settings, ()))


def changes(before: JsonObject, after: JsonObject) -> JsonObject:
    """The values of ``after`` that differ from ``before``, as a layer. A removed value is None in it."""
    return _changes(before, after, ())


def path_of(settings: JsonObject, key: str) -> Path | None:
    """The path that a dotted key means, where names may have dots themselves; None if it leads nowhere.

    The number of an entry, as in ``instructions.1``, means its list.
    """
    if not key:
        return ()
    for name in sorted(settings, key=len, reverse=True):
        if key == name:
            return (name,)
        if not key.startswith(f"{name}."):
            continue
        inner, below = settings[name], key[len(name) + 1 :]
        if isinstance(inner, list) and below in map(str, range(len(inner))):
            return (name,)
        if isinstance(inner, dict) and (rest := path_of(inner, below)) is not None:
            return (name, *rest)
    return None


def _origins(layers: Sequence[JsonObject], settings: JsonObject, above: Path) -> Iterator[Origin]:
    for key, value in settings.items():
        path = (*above, key)
        if isinstance(value, dict) and value:
            yield from _origins(layers, value, path)
            continue
        found = setters(layers, path)
        given = [at(layers[number], path) for number in found]
        if rule(path, value, value) == "joined" and all(isinstance(one, list) for one in given):
            yield from _entries(path, value, found, given)
        else:
            yield Origin(path, value, found[-1], found[:-1])


def _changes(before: JsonObject, after: JsonObject, above: Path) -> JsonObject:
    found: dict[str, Json] = {key: None for key in before if key not in after}
    for key, value in after.items():
        path, known = (*above, key), before.get(key)
        if rule(path, known, value) == "merged":
            assert isinstance(known, dict)
            assert isinstance(value, dict)
            if inner := _changes(known, value, path):
                found[key] = inner
        elif key not in before or known != value:
            found[key] = value
    return found


def _entries(path: Path, value: Json, found: Sequence[int], given: Sequence[object]) -> Iterator[Origin]:
    assert isinstance(value, list)
    for index, entry in enumerate(value):
        having = [
            number
            for number, entries in zip(found, given, strict=True)
            if isinstance(entries, list) and any(_identity(path, one) == _identity(path, entry) for one in entries)
        ]
        holding = having[-1] if path == ("plugin",) else having[0]
        yield Origin(path, entry, holding, tuple(one for one in having if one < holding), index)


def _merged(one: JsonObject, other: JsonObject, above: Path) -> JsonObject:
    result = dict(one)
    for key, value in other.items():
        path, before = (*above, key), result.get(key)
        match rule(path, before, value):
            case "merged":
                assert isinstance(before, dict)
                assert isinstance(value, dict)
                result[key] = _merged(before, value, path)
            case "joined":
                assert isinstance(before, list)
                assert isinstance(value, list)
                result[key] = _joined(path, [*before, *value])
            case _:
                result[key] = value
    return result


def _joined(path: Path, entries: list[Json]) -> list[Json]:
    if path == ("plugin",):
        last = {_identity(path, entry): number for number, entry in enumerate(entries)}
        return [entry for number, entry in enumerate(entries) if last[_identity(path, entry)] == number]
    first: dict[str, Json] = {}
    for entry in entries:
        first.setdefault(_identity(path, entry), entry)
    return list(first.values())


def _identity(path: Path, entry: object) -> str:
    """The identity of an entry of a joined list: of a plugin its package without the version, else the whole entry."""
    if path != ("plugin",):
        return repr(entry)
    name = entry[0] if isinstance(entry, list) and entry else entry
    if not isinstance(name, str):
        return repr(entry)
    package, sign, version = name.rpartition("@")
    return package if sign and package and not name.startswith("file:") and "/" not in version else name

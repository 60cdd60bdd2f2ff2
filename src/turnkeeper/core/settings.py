"""Settings: checks and merges the JSON of configuration files, and converts it to a Config."""

import re
from collections.abc import Iterable, Iterator
from difflib import get_close_matches
from functools import cache
from typing import Final

import msgspec
from msgspec import inspect

from turnkeeper.core import agent_settings
from turnkeeper.model.config import Config, ProviderOptions
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject

_PLACE: Final = re.compile(r"(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_TOGETHER: Final = frozenset({"instructions"})
_NARROWING: Final[JsonObject] = {"mode": "read-only", "network": False}
"""The values of the ``sandbox`` settings that allow commands less than any other value."""
_NEVER: Final = object()
"""Equal to no value of a setting."""


def checked(raw: Json, where: str) -> JsonObject:
    """The settings of one file, if their types are right. Raises Invalid with the file and the key."""
    if not isinstance(raw, dict):
        raise Invalid(f"{where}: expected an object of settings")
    raw = agent_settings.spelt_out(raw)
    try:
        msgspec.convert(raw, Config)
    except msgspec.ValidationError as error:
        key, reason = _culprit(raw, str(error))
        choices = _choices(key.split(".")) if reason.startswith("Invalid enum value") else ()
        advice = f"; use one of {', '.join(map(repr, choices))}" if choices else ""
        raise Invalid(f"{where}: {key or 'the file'}: {reason}{advice}") from error
    return _spelt_out(raw)


def with_strict_sandbox(settings: JsonObject) -> JsonObject:
    """The settings of a file that a model's commands can write: they may tighten the sandbox, and never widen it."""
    given = settings.get("sandbox")
    if not isinstance(given, dict):
        return settings
    kept = {key: value for key, value in given.items() if _NARROWING.get(key, _NEVER) == value}
    return {**settings, "sandbox": kept}


def near_misses(raw: JsonObject) -> tuple[tuple[str, str], ...]:
    """The dotted keys that are no settings, each with the setting that it probably stands for."""
    return tuple(_near_misses(raw, [_config_type()], ""))


def merged(files: Iterable[JsonObject]) -> JsonObject:
    """All settings; later files win. Objects are merged, instructions are joined, other values are replaced."""
    result: JsonObject = {}
    for settings in files:
        result = _merged(result, settings, depth=0)
    return result


def typed(raw: JsonObject) -> Config:
    """The checked settings as a Config."""
    config = msgspec.convert(raw, Config)
    known = {field.encode_name for field in msgspec.structs.fields(ProviderOptions)}
    providers = {
        name: provider.but(own_options={key: value for key, value in _options(raw, name).items() if key not in known})
        for name, provider in config.provider.items()
    }
    return config.but(provider=providers)


def _options(raw: JsonObject, provider_id: str) -> JsonObject:
    found: Json = raw
    for key in ("provider", provider_id, "options"):
        found = found.get(key) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}


def _merged(one: JsonObject, other: JsonObject, *, depth: int) -> JsonObject:
    result = dict(one)
    for key, value in other.items():
        before = result.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            result[key] = _merged(before, value, depth=depth + 1)
        elif depth == 0 and key in _TOGETHER and isinstance(before, list) and isinstance(value, list):
            result[key] = list(dict.fromkeys([*before, *value]))
        else:
            result[key] = value
    return result


def _spelt_out(raw: JsonObject) -> JsonObject:
    """What is said in one word becomes an object, so that a later file adds to it and does not wipe it out."""
    result = dict(raw)
    if isinstance(result.get("sandbox"), str):
        result["sandbox"] = {"mode": result["sandbox"]}
    if isinstance(result.get("permission"), str):
        result["permission"] = {"*": result["permission"]}
    return result


def _culprit(raw: JsonObject, message: str) -> tuple[str, str]:
    """The dotted key that is wrong, and why. The decoder omits the names of dict entries; each is tried."""
    found = _PLACE.fullmatch(message)
    assert found is not None
    steps = re.findall(r"\.([^.\[]+)|\[(\.\.\.|\d+)\]", found["path"] or "")
    key: list[str] = []
    for name, index in steps:
        if index == "...":
            name = next((entry for entry in _entries(raw, key) if _still_wrong(raw, [*key, entry], message)), "?")
        key.append(name or index)
    return ".".join(key), found["reason"]


@cache
def _config_type() -> inspect.Type:
    return inspect.type_info(Config)


def _near_misses(raw: JsonObject, kinds: list[inspect.Type], prefix: str) -> Iterator[tuple[str, str]]:
    structs = [kind for kind in _alternatives(kinds) if isinstance(kind, inspect.StructType)]
    # Names with a dollar sign are ours, and are set by no file.
    known = [name for kind in structs for field in kind.fields if not (name := field.encode_name).startswith("$")]
    for key, value in raw.items():
        if known and key not in known:
            for meant in get_close_matches(key, known, n=1, cutoff=0.8):
                yield f"{prefix}{key}", f"{prefix}{meant}"
        elif isinstance(value, dict):
            inner = [one for kind in kinds for one in _inside(kind, key)]
            yield from _near_misses(value, inner, f"{prefix}{key}.")


def _choices(key: list[str]) -> tuple[object, ...]:
    """The values of a key that takes one of several literals."""
    kinds = [_config_type()]
    for name in key:
        kinds = [inner for kind in kinds for inner in _inside(kind, name)]
    literals = (kind for kind in _alternatives(kinds) if isinstance(kind, inspect.LiteralType))
    return tuple(dict.fromkeys(word for literal in literals for word in literal.values))


def _inside(kind: inspect.Type, name: str) -> list[inspect.Type]:
    found: list[inspect.Type] = []
    for one in _alternatives([kind]):
        match one:
            case inspect.StructType(fields=fields):
                found += [field.type for field in fields if field.encode_name == name]
            case inspect.DictType(value_type=value):
                found.append(value)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                found.append(item)
    return found


def _alternatives(kinds: list[inspect.Type]) -> list[inspect.Type]:
    return [one for kind in kinds for one in (kind.types if isinstance(kind, inspect.UnionType) else (kind,))]


def _entries(raw: Json, key: list[str]) -> list[str]:
    for name in key:
        raw = raw[int(name)] if isinstance(raw, list) else raw.get(name, {}) if isinstance(raw, dict) else {}
    return list(raw) if isinstance(raw, dict) else []


def _still_wrong(raw: JsonObject, key: list[str], message: str) -> bool:
    """Whether decoding fails with the same message when all sibling entries are left out."""
    try:
        msgspec.convert(_only(raw, key), Config)
    except msgspec.ValidationError as error:
        return str(error) == message
    return False


def _only(raw: Json, key: list[str]) -> Json:
    if not key or not isinstance(raw, dict):
        return raw
    return {key[0]: _only(raw.get(key[0]), key[1:])}

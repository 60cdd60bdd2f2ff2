"""Checks of settings: values of the wrong type, unknown keys, and rules that match nothing.

A value of the wrong type is left out, and the rest of the file holds. What would narrow what may happen is never passed
over: a wrong permission or sandbox is an error. So is a wrong snapshot: by the default quota, snapshots would be
removed that the user wanted to keep.
"""

import posixpath
import re
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from typing import Final, NamedTuple, TypeAlias

import msgspec
from msgspec import inspect

from turnkeeper.core import agent_settings
from turnkeeper.core.mcp import sanitised
from turnkeeper.model.config import Config
from turnkeeper.model.setting_names import OPEN, UNUSED
from turnkeeper.model.value import Json, JsonObject

KeyPath: TypeAlias = tuple[str | int, ...]
"""The keys and indexes that lead to a value of a file."""

PERMISSIONS: Final = frozenset(
    {
        *("*", "apply_patch", "bash", "batch", "codesearch", "doom_loop", "edit", "external_directory", "glob", "grep"),
        *("invalid", "jobs", "list", "lsp", "multiedit", "patch", "plan_enter", "plan_exit", "question", "read"),
        *("recall", "sandbox", "skill", "task", "todoread", "todowrite", "webfetch"),
        *("websearch", "write"),
    }
)
"""The permissions of built-in tools, of those of opencode, and of what is asked about besides."""

PROBLEMS_MAX: Final = 100
"""Values of the wrong type that are reported for one file."""

_PATHS: Final = ("/", "~", "$HOME", "./", "../")
"""The beginnings of patterns that name files or directories, and not the words of a command."""
_PLACE: Final = re.compile(r"(?P<reason>.*?)(?: - at `(?:key in )?\$(?P<path>.*)`)?", re.DOTALL)
_SEPARATORS: Final = re.compile(r"[-_]")
_GUARDS: Final = frozenset({"permission", "tools", "sandbox", "snapshot"})


class Problem(NamedTuple):
    """A problem of one value. An error makes the file unusable; for other problems the value is left out."""

    path: KeyPath
    message: str
    is_error: bool = False


class Sifted(NamedTuple):
    """The settings of a file that have the right type, and the problems of the others."""

    settings: JsonObject
    problems: tuple[Problem, ...]


def sifted(raw: JsonObject) -> Sifted:
    """The settings that have the right types, with agents in one form, and the problems of all settings."""
    settings, problems = agent_settings.spelt_out(raw), list[Problem]()
    while len(problems) < PROBLEMS_MAX and (found := type_problem(settings)) is not None:
        # A list without one of its entries could mean something else, so the whole list is left out.
        path = tuple(found.path[: next((n for n, step in enumerate(found.path) if isinstance(step, int)), None)])
        left_out = "" if found.is_error else "; it is left out"
        problems.append(found._replace(message=f"{found.message}{left_out}"))
        settings = _without(settings, path)
    return Sifted(settings, (*problems, *unknown_keys(raw), *unmatched_directories(settings)))


def type_problem(settings: JsonObject) -> Problem | None:
    """The first value of the wrong type; None if there is none."""
    try:
        msgspec.convert(settings, Config)
    except msgspec.ValidationError as error:
        path, reason = _culprit(settings, str(error))
        choices = _choices(path) if reason.startswith("Invalid enum value") else ()
        advice = f"; use one of {', '.join(map(repr, choices))}" if choices else ""
        return Problem(path, f"{dotted(path) or 'the file'}: {reason}{advice}", _is_guard(path))
    return None


def dotted(path: KeyPath) -> str:
    """A path as people write it."""
    return ".".join(map(str, path))


def unknown_keys(raw: JsonObject) -> tuple[Problem, ...]:
    """The keys that are no settings, each with the setting that it probably stands for."""
    return tuple(_unknown(raw, [_config_type()], ()))


def rules_about(settings: JsonObject) -> Iterator[KeyPath]:
    """The paths of the rules of a file about single tools; the last key of a path is the tool or permission."""
    for place in _rule_places(settings):
        yield from ((*place, name) for name in _object(settings, place))


def unknown_permissions(settings: JsonObject, known: Collection[str], servers: Collection[str]) -> list[Problem]:
    """The rules that name no tool. ``servers`` are MCP servers, whose tools begin with their names."""
    prefixes = tuple(f"{sanitised(name)}_" for name in servers)
    found = []
    for path in rules_about(settings):
        name = str(path[-1])
        if name in known or "*" in name or "?" in name or (prefixes and name.startswith(prefixes)):
            continue
        near = get_close_matches(name, sorted(known), n=1, cutoff=0.6)
        advice = f"did you mean {near[0]!r}?" if near else "name a tool, or use a pattern as 'name*'"
        found.append(Problem(path, f"{dotted(path)}: there is no tool or permission {name!r}; {advice}", True))
    return found


def unmatched_directories(settings: JsonObject) -> Iterator[Problem]:
    """The rules about directories outside the project that name a file or a directory itself, and match nothing."""
    for path in rules_about(settings):
        if path[-1] != "external_directory":
            continue
        for pattern in _object(settings, path):
            if not pattern.startswith(_PATHS) or pattern.endswith(("*", "?")):
                continue
            name = pattern.rstrip("/")
            above = f"{posixpath.dirname(name)}/*"
            message = (
                f"{dotted(path)}: the pattern {pattern!r} matches nothing, because these rules are asked about"
                f" 'DIRECTORY/*'; write {f'{name}/*'!r} for a directory, or {above!r} if it is a"
                " file, and the file itself under 'read' or 'edit'"
            )
            yield Problem((*path, pattern), message)


def unknown_agents(settings: JsonObject, known: Collection[str]) -> Iterator[Problem]:
    """The rules about tasks for agents that do not exist."""
    for path in rules_about(settings):
        if path[-1] != "task":
            continue
        for pattern in _object(settings, path):
            if pattern in known or "*" in pattern or "?" in pattern:
                continue
            near = get_close_matches(pattern, sorted(known), n=1, cutoff=0.6)
            advice = f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known)}"
            yield Problem((*path, pattern), f"{dotted(path)}: there is no agent {pattern!r}; {advice}")


def _rule_places(settings: JsonObject) -> Iterator[KeyPath]:
    yield from (("permission",), ("tools",))
    for agent in _object(settings, ("agent",)):
        yield from (("agent", agent, "permission"), ("agent", agent, "tools"))


def _object(settings: Json, path: KeyPath) -> Mapping[str, Json]:
    for step in path:
        settings = settings.get(str(step)) if isinstance(settings, dict) else None
    return settings if isinstance(settings, dict) else {}


def _is_guard(path: KeyPath) -> bool:
    """Whether a wrong value is an error: without the value, more would be allowed or removed than was meant."""
    at = 2 if path[:1] == ("agent",) else 0
    return not path or (len(path) > at and path[at] in _GUARDS)


def _without(settings: JsonObject, path: KeyPath) -> JsonObject:
    if not path:
        return {}
    name, *rest = path
    inner = settings.get(str(name))
    if rest and isinstance(inner, dict):
        return {**settings, str(name): _without(inner, tuple(rest))}
    return {key: value for key, value in settings.items() if key != name}


def _culprit(raw: JsonObject, message: str) -> tuple[KeyPath, str]:
    """The path of the wrong value, and the reason. The decoder omits the names of dict entries; each is tried."""
    found = _PLACE.fullmatch(message)
    assert found is not None
    steps = re.findall(r"\.([^.\[]+)|\[(\.\.\.|\d+)\]", found["path"] or "")
    key: list[str | int] = []
    for name, index in steps:
        if index == "...":
            name = next((entry for entry in _entries(raw, key) if _still_wrong(raw, [*key, entry], message)), "?")
        key.append(name or int(index))
    return tuple(key), found["reason"]


@cache
def _config_type() -> inspect.Type:
    return inspect.type_info(Config)


def _unknown(raw: JsonObject, kinds: list[inspect.Type], path: KeyPath) -> Iterator[Problem]:
    structs = [kind for kind in alternatives(kinds) if isinstance(kind, inspect.StructType)]
    # Names with a dollar sign are ours, and are set by no file.
    known = [name for kind in structs for field in kind.fields if not (name := field.encode_name).startswith("$")]
    is_open = any(kind.cls in OPEN for kind in structs)
    for key, value in raw.items():
        here = (*path, key)
        if known and key not in known:
            if is_unused(here):
                continue
            prefix = f"{dotted(path)}." if path else ""
            cutoff = 0.8 if is_open else 0.6
            parted = (name.rpartition(".") for name in UNUSED)
            unused = [name for place, _, name in parted if place == dotted(path)]
            near = _nearest(key, known, cutoff) or _nearest(key, unused, cutoff)
            advice = f"; did you mean {prefix + near!r}?" if near else "; it is ignored"
            if near or not is_open:
                yield Problem(here, f"there is no setting {prefix + key!r}{advice}")
        else:
            yield from _unknown_inside(value, [one for kind in kinds for one in inside(kind, key)], here)


def _unknown_inside(value: Json, kinds: list[inspect.Type], path: KeyPath) -> Iterator[Problem]:
    match value:
        case dict():
            yield from _unknown(value, kinds, path)
        case list():
            entries = [one for kind in kinds for one in inside(kind, "")]
            for number, entry in enumerate(value):
                yield from _unknown_inside(entry, entries, (*path, number))


def _nearest(key: str, names: list[str], cutoff: float) -> str | None:
    """The name that a key probably stands for. Other letter cases and separators are the same name: ``base_url``."""
    folded = {_SEPARATORS.sub("", name).casefold(): name for name in names}
    near = get_close_matches(_SEPARATORS.sub("", key).casefold(), folded, 1, cutoff)
    return folded[near[0]] if near else None


def is_unused(path: KeyPath) -> bool:
    """Whether this is a setting of opencode that has no meaning here."""
    names = [pattern.split(".") for pattern in UNUSED]
    return any(len(one) == len(path) and all(a in ("*", b) for a, b in zip(one, path, strict=True)) for one in names)


def _choices(key: KeyPath) -> tuple[object, ...]:
    """The values of a key that takes one of several literals."""
    kinds = [_config_type()]
    for name in key:
        kinds = [inner for kind in kinds for inner in inside(kind, str(name))]
    literals = (kind for kind in alternatives(kinds) if isinstance(kind, inspect.LiteralType))
    return tuple(dict.fromkeys(word for literal in literals for word in literal.values))


def inside(kind: inspect.Type, name: str) -> list[inspect.Type]:
    """The types that a member of this name, or an entry, can have."""
    found: list[inspect.Type] = []
    for one in alternatives([kind]):
        match one:
            case inspect.StructType(fields=fields):
                found += [field.type for field in fields if field.encode_name == name]
            case inspect.DictType(value_type=value):
                found.append(value)
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                found.append(item)
    return found


def alternatives(kinds: list[inspect.Type]) -> list[inspect.Type]:
    """The members of unions."""
    return [one for kind in kinds for one in (kind.types if isinstance(kind, inspect.UnionType) else (kind,))]


def _entries(raw: Json, key: list[str | int]) -> list[str]:
    for name in key:
        raw = raw[int(name)] if isinstance(raw, list) else raw.get(str(name), {}) if isinstance(raw, dict) else {}
    return list(raw) if isinstance(raw, dict) else []


def _still_wrong(raw: JsonObject, key: list[str | int], message: str) -> bool:
    """Whether decoding fails with the same message when all sibling entries are left out."""
    try:
        msgspec.convert(_only(raw, key), Config)
    except msgspec.ValidationError as error:
        return str(error) == message
    return False


def _only(raw: Json, key: list[str | int]) -> Json:
    if not key or not isinstance(raw, dict):
        return raw
    return {key[0]: _only(raw.get(str(key[0])), key[1:])}

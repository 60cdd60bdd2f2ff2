"""Trust of a directory: which settings of a project hold before the user has trusted it.

A cloned repository brings its own configuration. Settings that only narrow what may happen hold at once. Settings that
widen it, or spend the user's money or keys, are left out until the user trusts the directory.

| Setting of an untrusted project | Holds |
|---|---|
| `permission`, `tools`, also of agents | what is denied; what is asked, unless the user's own settings say otherwise |
| `instructions` | paths inside the project |
| `skills` | paths inside the project |
| `agent`, and agent files | prompt, colour, steps, ..., what is denied and asked; of new ones the mode |
| `compaction`, `tool_output`, `attachment`, `timezone`, `disabled_providers` | yes |
| `default_agent`, and `disable` of agents | no: another agent may have wider rules than that of the user |
| `recovery`, `share` | what does nothing by itself: `rest`, `disabled` |
| `command`, and command files | no |
| everything else: providers, models, the shell, plugins, servers, ... | no |
| any text with `{env:...}` or `{file:...}` | no |
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from turnkeeper.core.permission import PROTECTED, about, evaluate, parse_switches
from turnkeeper.model.config import ProjectAsks
from turnkeeper.model.permission import Action, Rule, Ruleset
from turnkeeper.model.value import Json, JsonObject

REFERENCE: Final = re.compile(r"\{(env|file):([^{}\n]+)\}")
"""A reference in a text of a configuration file: to a variable, or to the content of a file."""

_HARMLESS: Final = frozenset({"$schema", "compaction", "tool_output", "attachment", "timezone", "disabled_providers"})
_AGENT: Final = frozenset(
    {"description", "prompt", "mode", "hidden", "color", "steps", "maxSteps", "temperature", "top_p"}
)
_OF_NEW_AGENTS: Final = frozenset({"mode", "hidden"})
"""The keys that decide who may call an agent. A project sets them only for agents of its own."""
_WORDS: Final[Mapping[str, frozenset[str]]] = {"recovery": frozenset({"rest"}), "share": frozenset({"disabled"})}


class Narrowed(NamedTuple):
    """The settings of an untrusted project that hold, and the dotted keys of those that do not.

    What it denies and asks is apart: merged with the user's own permissions it could take the place of a stricter rule.
    """

    settings: JsonObject
    denied: JsonObject
    denied_to: Mapping[str, JsonObject]
    """The permissions that it denies to agents, by their names."""
    asked: ProjectAsks
    left_out: tuple[str, ...]


def narrowed(settings: JsonObject) -> Narrowed:
    """The part of a project's settings that holds without trust. The settings have the right types."""
    left_out: list[str] = []
    kept = _kept(settings, "", _FILTERS, _HARMLESS, left_out)
    permission, tools, agents = kept.pop("permission", {}), kept.pop("tools", {}), kept.get("agent", {})
    assert isinstance(tools, dict)
    assert isinstance(agents, dict)
    switches = {rule.permission: "deny" for rule in parse_switches({str(name): False for name in tools})}
    of_agents: dict[str, JsonObject] = {}
    denied_to: dict[str, JsonObject] = {}
    for name, given in agents.items():
        assert isinstance(given, dict)
        of_agent = given.pop("permission", {})
        if asked := _only("ask", of_agent):
            of_agents[name] = asked
        if denied := _only("deny", of_agent):
            denied_to[name] = denied
    asks = ProjectAsks(permission=_only("ask", permission), agent=of_agents)
    return Narrowed(kept, {**switches, **_only("deny", permission)}, denied_to, asks, tuple(left_out))


def agents_kept(settings: JsonObject, known: Collection[str]) -> tuple[JsonObject, tuple[str, ...]]:
    """Narrowed settings without the keys that decide who calls the ``known`` agents, and these keys with dots.

    If such an agent could be hidden, or made a helper of others, then one with wider rules would answer in its place.
    """
    agents = settings.get("agent")
    if not isinstance(agents, dict):
        return settings, ()
    kept: dict[str, Json] = {}
    left_out: list[str] = []
    for name, given in agents.items():
        wrong = _OF_NEW_AGENTS & given.keys() if name in known and isinstance(given, dict) else frozenset()
        kept[name] = {key: one for key, one in given.items() if key not in wrong} if wrong else given
        left_out += [f"agent.{name}.{key}" for key in sorted(wrong)]
    return {**settings, "agent": kept}, tuple(left_out)


def protected(rules: Ruleset, places: Iterable[str] = ()) -> Ruleset:
    """Rules under which a change of configuration or of git's own files is asked about, unless it is denied.

    ``places`` are patterns of further files that decide what may happen.
    """
    patterns = (*(place for name in PROTECTED for place in (name, f"*/{name}")), *places)
    edits = about(rules, "edit")
    guards = (
        Rule(permission="edit", pattern=place, action="ask")
        for place in patterns
        if evaluate(edits, "edit", place) != "deny"
    )
    return (*rules, *guards)


_Filter = Callable[[Json, str, list[str]], Json]


def _kept(
    settings: JsonObject, prefix: str, filters: Mapping[str, _Filter], harmless: frozenset[str], left_out: list[str]
) -> dict[str, Json]:
    result: dict[str, Json] = {}
    for key, value in settings.items():
        name = f"{prefix}{key}"
        if key in filters:
            value = filters[key](value, name, left_out)
        elif key not in harmless or _refers(value):
            left_out.append(name)
            continue
        if value not in ({}, [], None):
            result[key] = value
    return result


def _not_allowed(value: Json, name: str, left_out: list[str]) -> Json:
    """The rules that deny or ask; the value has actions by permission, or by permission and pattern."""
    if isinstance(value, dict):
        kept = {key: _not_allowed(action, f"{name}.{key}", left_out) for key, action in value.items()}
        return {key: action for key, action in kept.items() if action not in ({}, None)}
    if value in ("deny", "ask"):
        return value
    left_out.append(name)
    return None


def _only(action: Action, permission: Json) -> JsonObject:
    """The rules with this action."""
    if not isinstance(permission, dict):
        return {"*": action} if permission == action else {}
    kept = {key: _only(action, one) if isinstance(one, dict) else one for key, one in permission.items()}
    return {key: one for key, one in kept.items() if one == action or (isinstance(one, dict) and one)}


def _switched_off(value: Json, name: str, left_out: list[str]) -> Json:
    switches = value if isinstance(value, dict) else {}
    left_out += [f"{name}.{tool}" for tool, on in switches.items() if on]
    return {tool: on for tool, on in switches.items() if not on}


def _inside(value: Json, name: str, left_out: list[str]) -> Json:
    """The paths that cannot leave the project."""
    entries = value if isinstance(value, list) else []
    kept = [entry for entry in entries if isinstance(entry, str) and _stays_inside(entry)]
    left_out += [f"{name} ({entry})" for entry in entries if entry not in kept]
    return kept


def _stays_inside(path: str) -> bool:
    is_elsewhere = path.startswith(("/", "~", "$", "\\")) or "://" in path or re.match(r"[A-Za-z]:", path)
    return not is_elsewhere and ".." not in re.split(r"[/\\]", path) and not _refers(path)


def _agents(value: Json, name: str, left_out: list[str]) -> Json:
    agents = value if isinstance(value, dict) else {}
    filters = {"permission": _not_allowed, "tools": _switched_off}
    return {
        agent: _kept(settings, f"{name}.{agent}.", filters, _AGENT, left_out)
        for agent, settings in agents.items()
        if isinstance(settings, dict)
    }


def _none(value: Json, name: str, left_out: list[str]) -> Json:
    left_out += [f"{name}.{key}" for key in value] if isinstance(value, dict) else [name]
    return {}


def _skills(value: Json, name: str, left_out: list[str]) -> Json:
    """The skill directories inside the project. A URL would be fetched before the project is trusted."""
    given = value if isinstance(value, dict) else {}
    return _kept(given, f"{name}.", {"paths": _inside}, frozenset(), left_out)


def _one_of(words: frozenset[str]) -> _Filter:
    def kept(value: Json, name: str, left_out: list[str]) -> Json:
        if value in words:
            return value
        left_out.append(name)
        return None

    return kept


def _refers(value: Json) -> bool:
    match value:
        case str():
            return REFERENCE.search(value) is not None
        case list():
            return any(map(_refers, value))
        case dict():
            return any(map(_refers, value.values()))
        case _:
            return False


_FILTERS: Final[Mapping[str, _Filter]] = {
    "permission": _not_allowed,
    "tools": _switched_off,
    "instructions": _inside,
    "skills": _skills,
    "agent": _agents,
    "command": _none,
    **{key: _one_of(words) for key, words in _WORDS.items()},
}


def holds_untrusted(path: tuple[str, ...]) -> str:
    """The part of a setting that holds in an untrusted file of a project: ``yes``, ``no``, or a description."""
    first, *_ = path
    if first == "sandbox":
        return "what tightens, even if trusted"
    if first == "agent" and len(path) > 2:
        if path[2] in _OF_NEW_AGENTS:
            return "of new agents"
        return "what denies or asks" if path[2] in ("permission", "tools") else "yes" if path[2] in _AGENT else "no"
    if first in _HARMLESS:
        return "yes"
    return _PARTLY.get(first, "no")


_PARTLY: Final[Mapping[str, str]] = {
    "permission": "what denies or asks",
    "tools": "what denies",
    "instructions": "paths inside the project",
    "skills": "paths inside the project",
    "agent": "in part",
    **{key: " ".join(sorted(f"`{word}`" for word in words)) for key, words in _WORDS.items()},
}
"""A description of the part that holds, for each setting with a filter."""

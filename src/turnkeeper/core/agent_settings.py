"""Settings of agents, brought into one form: as ``agent`` of a configuration file has them.

| Written | Means |
|---|---|
| a key that no agent has | an option that the provider is sent |
| `name` | the name, in place of the key or the file's path |
| `mode` of a configuration file, a file in `mode` or `modes` | agents with the mode `primary` |
| one word as `permission` | that action for everything |
"""

from collections.abc import Sequence
from typing import Final, get_args

import msgspec

from turnkeeper.model.config import AgentConfig
from turnkeeper.model.permission import Action
from turnkeeper.model.value import Json, JsonObject

MODE_FOLDERS: Final = ("mode", "modes")
"""Folders whose files are agents that answer prompts."""
_KNOWN: Final = frozenset(field.encode_name for field in msgspec.structs.fields(AgentConfig))


def spelt_out(settings: JsonObject) -> JsonObject:
    """The settings of one file with their agents in one form. Values of a wrong type stay as they are."""
    modes, agents = settings.get("mode"), settings.get("agent", {})
    if not isinstance(agents, dict):
        return settings
    found: dict[str, Json] = {}
    older = {name: {**given, "mode": "primary"} for name, given in _objects(modes).items()}
    for key, given in [*older.items(), *agents.items()]:
        name, agent = _agent(key, given) if isinstance(given, dict) else (key, given)
        before = found.get(name)
        found[name] = {**before, **agent} if isinstance(before, dict) and isinstance(agent, dict) else agent
    rest = {key: value for key, value in settings.items() if key not in ("mode", "agent")}
    return {**rest, "agent": found} if found else rest


def of_file(folder: str, steps: Sequence[str], values: JsonObject, body: str) -> JsonObject:
    """The settings of a markdown file: ``steps`` lead from its folder to it, without the ending.

    An empty body leaves the prompt as it is.
    """
    mode: JsonObject = {"mode": "primary"} if folder in MODE_FOLDERS else {}
    prompt: JsonObject = {"prompt": body} if body else {}
    return {"agent": {"/".join(steps): {**values, **mode, **prompt}}}


def _objects(given: Json) -> dict[str, JsonObject]:
    entries = given.items() if isinstance(given, dict) else ()
    return {name: value for name, value in entries if isinstance(value, dict)}


def _agent(key: str, given: JsonObject) -> tuple[str, JsonObject]:
    name = given.get("name")
    is_named = isinstance(name, str) and bool(name)
    agent = {field: value for field, value in given.items() if field in _KNOWN and not (is_named and field == "name")}
    unknown = {field: value for field, value in given.items() if field not in _KNOWN}
    options = agent.get("options", {})
    if unknown and isinstance(options, dict):
        agent["options"] = {**options, **unknown}
    if agent.get("permission") in get_args(Action):
        agent["permission"] = {"*": agent["permission"]}
    return (str(name) if is_named else key), agent

"""Checks of settings against what there is here: what they name and does not exist, or takes less.

They need the settings of all files together: the provider of a model may be in another file than the model.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnkeeper.cli.options import Options
from turnkeeper.cli.plugged import PluggedDirectory, catalog_of, plugged_directory
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.core.setting_checks import Problem
    from turnkeeper.model.config import Config
    from turnkeeper.model.value import JsonObject
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.workspace.settings_source import SettingsSource


async def with_missing(found: "Sequence[SettingsSource]", options: Options) -> "tuple[SettingsSource, ...]":
    """The sources, with warnings about what they name and does not exist. A file that holds elsewhere is left alone."""
    found = [one._replace(problems=(*one.problems, *one.unset)) for one in found]
    try:
        async with plugged_directory(options.environ) as here:
            holding = {source.where for source in here.loaded.sources}
            return tuple(
                one._replace(problems=(*one.problems, *_missing(one, here, options))) if one.where in holding else one
                for one in found
            )
    except Invalid:  # A file has an error, which is told; until it is mended nothing else can be said.
        return tuple(found)


def _missing(source: "SettingsSource", here: "PluggedDirectory", options: Options) -> "Iterator[Problem]":
    from turnkeeper.core.agents import default_agent_problem
    from turnkeeper.core.setting_checks import Problem, unknown_agents
    from turnkeeper.run.configured import configured_agents

    given, config = source.settings, here.config
    catalog = catalog_of(config, options.environ)
    agents = configured_agents(config, options.environ)
    for path, wanted in _named(given, "model"):
        try:
            catalog.named(wanted)
        except NotFound as error:
            yield Problem(path, f"{'.'.join(path)}: {error}")
    wanted_agent = given.get("default_agent")
    problem = isinstance(wanted_agent, str) and default_agent_problem(agents, config.but(default_agent=wanted_agent))
    if problem:
        yield Problem(("default_agent",), problem)
    for path, wanted in _named({"command": given.get("command")}, "agent"):
        if wanted not in agents:
            yield Problem(path, f"{'.'.join(path)}: there is no agent {wanted!r}; there are: {', '.join(agents)}")
    yield from unknown_agents(given, agents)
    whole = config.but(enabled_providers=None, disabled_providers=())
    yield from _unknown_providers(given, catalog_of(whole, options.environ))
    yield from _not_sent(source, config, catalog)
    servers = given.get("mcp")
    for name in servers if isinstance(servers, dict) else ():
        one = config.mcp.get(name)
        if one is not None and one.command is None and one.url is None and one.enabled is not False:
            yield Problem(("mcp", name), f"mcp.{name} has neither a `command` nor a `url`, so it is not used")
    yield from _not_installed(source, here)


def _named(given: "JsonObject", key: str) -> "Iterator[tuple[tuple[str, ...], str]]":
    """The values under a key, each with its path: at the top, and in each agent and command."""
    for name in (key, f"small_{key}"):
        if isinstance(wanted := given.get(name), str) and wanted:
            yield (name,), wanted
    for kind in ("agent", "command"):
        entries = given.get(kind)
        for name, settings in entries.items() if isinstance(entries, dict) else ():
            if isinstance(settings, dict) and isinstance(wanted := settings.get(key), str) and wanted:
                yield (kind, name, key), wanted


def _unknown_providers(given: "JsonObject", catalog: "Catalog") -> "Iterator[Problem]":
    """The providers that are enabled or disabled and do not exist. The catalogue is that of all providers."""
    from turnkeeper.core.setting_checks import Problem

    for key in ("enabled_providers", "disabled_providers"):
        listed = given.get(key)
        for number, wanted in enumerate(listed if isinstance(listed, list) else ()):
            try:
                catalog.provider(str(wanted))
            except NotFound as error:
                yield Problem((key, number), f"{key}: {error}")


def _not_installed(source: "SettingsSource", here: "PluggedDirectory") -> "Iterator[Problem]":
    """The plugins that a source names and no package has. Those of opencode in JavaScript are left to opencode."""
    from turnkeeper.core.setting_checks import Problem
    from turnkeeper.plugins.sources import JAVASCRIPT

    given = source.settings.get("plugin")
    names = [one[0] if isinstance(one, list) and one else one for one in given] if isinstance(given, list) else []
    for one in here.plugins:
        if one.source.kind == "package" and one.source.problem not in (None, JAVASCRIPT) and one.name in names:
            yield Problem(("plugin",), f"the plugin {one.name!r} is left out: {one.source.problem}")


def _not_sent(source: "SettingsSource", config: "Config", catalog: "Catalog") -> "Iterator[Problem]":
    """The sampling of agents whose model is configured and does not say that it takes a temperature."""
    from turnkeeper.core.setting_checks import Problem

    given = source.settings.get("agent")
    for name, settings in given.items() if isinstance(given, dict) else ():
        agent = config.agent.get(name)
        provider, _, model = ((agent.model if agent is not None else None) or config.model or "").partition("/")
        known = config.provider.get(provider)
        if not isinstance(settings, dict) or known is None or model not in known.models:
            continue
        try:
            info = catalog.find(provider, model)
        except NotFound:  # It is told where the model is named, or the provider is disabled.
            continue
        # What the protocols do: all leave out the temperature, and that of Anthropic every kind of sampling.
        for key in ("temperature", "top_p") if info.protocol == "anthropic" else ("temperature",):
            if settings.get(key) is not None and not info.temperature:
                yield Problem(
                    ("agent", name, key),
                    f"agent.{name}.{key} is not sent: {provider}/{model} does not say that it takes a temperature; "
                    f"if it does, set provider.{provider}.models.{model}.temperature to true",
                )

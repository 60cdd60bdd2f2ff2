"""Checks of settings against what there is here: models, agents and MCP servers that do not exist.

They need the settings of all files together: the provider of a model may be in another file than the model.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from turnkeeper.cli.options import Options
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.cli.plugged import PluggedDirectory
    from turnkeeper.core.setting_checks import Problem
    from turnkeeper.workspace.settings_source import SettingsSource


async def with_missing(found: "Sequence[SettingsSource]", options: Options) -> "tuple[SettingsSource, ...]":
    """The sources, with warnings about what they name and does not exist. A file that holds elsewhere is left alone."""
    from turnkeeper.cli.plugged import plugged_directory

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
    from turnkeeper.core.setting_checks import Problem
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.providers.refresh import catalogue_file
    from turnkeeper.run.configured import configured_agents

    given, config = source.settings, here.config
    for name in ("model", "small_model"):
        if isinstance(wanted := given.get(name), str) and wanted:
            try:
                Catalog(config, refreshed=catalogue_file(options.environ)).named(wanted)
            except NotFound as error:
                yield Problem((name,), f"{name}: {error}")
    if isinstance(wanted := given.get("default_agent"), str):
        agents = configured_agents(config, options.environ)
        if (problem := default_agent_problem(agents, config.but(default_agent=wanted))) is not None:
            yield Problem(("default_agent",), problem)
    servers = given.get("mcp")
    for name in servers if isinstance(servers, dict) else ():
        one = config.mcp.get(name)
        if one is not None and one.command is None and one.url is None and one.enabled is not False:
            yield Problem(("mcp", name), f"mcp.{name} has neither a `command` nor a `url`, so it is not used")

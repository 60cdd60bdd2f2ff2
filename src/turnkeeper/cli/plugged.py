"""The settings of a directory, as written and as its plugins change them, for commands that open no store."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from turnkeeper.model.command import Command
    from turnkeeper.model.config import Config
    from turnkeeper.plugins.plugin import Plugin
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.workspace.config import LoadedSettings
    from turnkeeper.workspace.project import ProjectPlace


class PluggedDirectory(NamedTuple):
    """A directory with its settings as they are written, and what its plugins make of them."""

    place: "ProjectPlace"
    loaded: "LoadedSettings"
    changed: "LoadedSettings"
    """With the plugins among the sources."""
    plugins: "tuple[Plugin, ...]"
    commands: "list[Command]"

    @property
    def config(self) -> "Config":
        """The settings as the plugins change them."""
        return self.changed.config


async def settings_here(
    environ: Mapping[str, str], directory: Path | None = None
) -> "tuple[ProjectPlace, LoadedSettings]":
    """A directory, by default the current one, with its settings as they are written. Raises Invalid."""
    from turnkeeper.workspace.config import load
    from turnkeeper.workspace.project import identify

    place = await identify(directory or Path.cwd())
    return place, load(place.directory, place.worktree, environ)


def catalog_of(config: "Config", environ: Mapping[str, str]) -> "Catalog":
    """The catalogue of these settings, as it was fetched last."""
    from turnkeeper.providers.catalog import Catalog
    from turnkeeper.providers.refresh import catalogue_file

    return Catalog(config, refreshed=catalogue_file(environ))


@asynccontextmanager
async def plugged_directory(
    environ: Mapping[str, str], directory: Path | None = None
) -> AsyncIterator[PluggedDirectory]:
    """A directory, by default the current one. Its plugins are loaded, and removed again. Raises Invalid."""
    from turnkeeper.plugins.host import PluginHost
    from turnkeeper.plugins.settings import PluggedSettings
    from turnkeeper.workspace.tool_files import ToolTrust

    place, loaded = await settings_here(environ, directory)
    plugged = PluggedSettings(PluginHost(environ, ToolTrust(environ)))
    found = await plugged.renew(place, loaded)
    try:
        yield PluggedDirectory(
            place,
            loaded,
            plugged.changed(place.directory, loaded),
            tuple(found.plugins),
            plugged.commands(place.directory, loaded),
        )
    finally:
        await plugged.host.aclose()

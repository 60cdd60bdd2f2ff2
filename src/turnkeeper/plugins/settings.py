"""Settings with the changes of plugins: registrations are weaker than all files, ``config`` hooks are stronger."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from turnkeeper.core import provenance, settings
from turnkeeper.core.commands import hints
from turnkeeper.model.command import Command
from turnkeeper.model.config import Config
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.plugin import Plugin
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.workspace.config import LoadedSettings
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.settings_source import SettingsSource


class _Plugged(NamedTuple):
    """Cache entry: the settings of a place before and after its plugins."""

    plugins: PluginSet
    loaded: LoadedSettings
    changed: LoadedSettings

    def is_of(self, loaded: LoadedSettings) -> bool:
        """Whether the entry was made from these settings. They are compared by value: some are read each time."""
        known = self.loaded
        return known is loaded or (known.merged == loaded.merged and known.config == loaded.config)


class PluggedSettings:
    """The plugins of places, and a cache of the settings after their changes."""

    def __init__(self, host: PluginHost) -> None:
        self.host = host
        self._known: dict[Path, _Plugged] = {}

    def now(self, directory: Path) -> PluginSet:
        """The plugins that are loaded for a directory."""
        return self.host.now(directory)

    async def renew(self, place: ProjectPlace, loaded: LoadedSettings) -> PluginSet:
        """Load the current plugins of a place, and update its settings."""
        plugins = await self.host.of(place, loaded)
        known = self._known.get(place.directory)
        if not plugins.plugins:
            self._known.pop(place.directory, None)
        elif known is None or known.plugins is not plugins or not known.is_of(loaded):
            self._known[place.directory] = _Plugged(plugins, loaded, await _changed(plugins, loaded))
            while len(self._known) > self.host.places:
                del self._known[next(iter(self._known))]
        return plugins

    def config(self, directory: Path, loaded: LoadedSettings) -> Config:
        """The settings of a directory with the changes of plugins, which ``renew`` makes for newer settings."""
        return self.changed(directory, loaded).config

    def changed(self, directory: Path, loaded: LoadedSettings) -> LoadedSettings:
        """As ``config``, with the plugins among the sources: each with what it registered and what its hook changed."""
        known = self._known.get(directory)
        return known.changed if known is not None and known.is_of(loaded) else loaded

    def commands(self, directory: Path, loaded: LoadedSettings) -> list[Command]:
        """The commands that plugins added."""
        return [
            Command(
                name=name,
                template=given.template,
                description=given.description,
                agent=given.agent,
                model=given.model,
                variant=given.variant,
                subtask=given.subtask,
                where="plugin",
                hints=hints(given.template),
            )
            for name, given in self.config(directory, loaded).command.items()
            if name not in loaded.config.command
        ]


async def _changed(plugins: PluginSet, loaded: LoadedSettings) -> LoadedSettings:
    registered = [(one, plugins.contributed.settings(one.name)) for one in plugins.plugins]
    before = settings.merged([*(given for _, given in registered), loaded.merged])
    changes: list[tuple[Plugin, JsonObject]] = []
    for plugin, after in await plugins.configured(before):
        changes.append((plugin, provenance.changes(before, after)))
        before = after
    if before == loaded.merged:
        return loaded
    given = loaded.config
    config = settings.typed(before).but(denied=given.denied, denied_to=given.denied_to, asked=given.asked)
    sources = (*_sources(registered), *loaded.sources, *_sources(changes))
    return loaded._replace(config=config, merged=before, sources=sources)


def _sources(given: Iterable[tuple[Plugin, JsonObject]]) -> Iterator[SettingsSource]:
    for plugin, said in given:
        if said:
            yield SettingsSource(plugin.source.where, said, "plugin", written=said)

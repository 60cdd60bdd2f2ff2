"""What plugins make of the settings of a place: what they register is below all files, their ``config`` hook above."""

import logging
from pathlib import Path
from typing import NamedTuple

from turnkeeper.core import settings
from turnkeeper.core.commands import hints
from turnkeeper.model.command import Command
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.workspace.config import LoadedSettings
from turnkeeper.workspace.project import ProjectPlace

log = logging.getLogger(__name__)


class _Plugged(NamedTuple):
    """What the plugins of a place made of settings."""

    plugins: PluginSet
    loaded: JsonObject
    config: Config


class PluggedSettings:
    """The plugins of places, with the settings as they change them."""

    def __init__(self, host: PluginHost) -> None:
        self.host = host
        self._known: dict[Path, _Plugged] = {}

    def now(self, directory: Path) -> PluginSet:
        """The plugins that are loaded for a directory."""
        return self.host.now(directory)

    async def renew(self, place: ProjectPlace, loaded: LoadedSettings) -> PluginSet:
        """The plugins of a place as its files and settings say now."""
        plugins = await self.host.of(place, loaded.config)
        known = self._known.get(place.directory)
        if not plugins.plugins:
            self._known.pop(place.directory, None)
        elif known is None or known.plugins is not plugins or known.loaded is not loaded.merged:
            self._known[place.directory] = _Plugged(plugins, loaded.merged, await _config(plugins, loaded))
            while len(self._known) > self.host.places:
                del self._known[next(iter(self._known))]
        return plugins

    def config(self, directory: Path, loaded: LoadedSettings) -> Config:
        """The settings of a directory. Newer ones are given to plugins when the directory is used next."""
        known = self._known.get(directory)
        return known.config if known is not None and known.loaded is loaded.merged else loaded.config

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


async def _config(plugins: PluginSet, loaded: LoadedSettings) -> Config:
    merged = settings.merged([plugins.contributed.settings, loaded.merged])
    changed = await plugins.configured(merged)
    if changed == loaded.merged:
        return loaded.config
    for given in (changed, merged):
        try:
            found = settings.typed(settings.checked(given, "the settings as plugins change them"))
        except Invalid as error:
            log.warning("%s; what the plugins changed is left out", error)
        else:
            return found.but(denied=loaded.config.denied, asked=loaded.config.asked)
    return loaded.config

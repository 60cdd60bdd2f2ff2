"""The plugin host: finds the plugins of places, loads them, and loads a changed one again."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import anyio

from turnkeeper.core import flags
from turnkeeper.mint import Mint
from turnkeeper.model.config import Config
from turnkeeper.outside_code.threads import OutsideThreads
from turnkeeper.plugins.context import Contributions, PluginContext
from turnkeeper.plugins.plugin import Limits, Plugin
from turnkeeper.plugins.plugin_set import NONE, PluginSet
from turnkeeper.plugins.sources import JAVASCRIPT, Packages, PluginSource, files_in, function_of, named_packages
from turnkeeper.workspace.config import LoadedSettings
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)

PLACES_MAX: Final = 64
"""Maximum number of places whose plugins are kept loaded."""
DISPOSE_S: Final = 1.0
"""Time limit for disposing of plugins whose loading was cancelled."""


class PluginHost:
    """Keeps the plugins of each place loaded, and loads them again when files or settings change."""

    def __init__(
        self,
        environ: Mapping[str, str],
        trust: ToolTrust,
        *,
        tell: Callable[[Path, str, str], None] = lambda directory, session_id, problem: None,
        renewed: Callable[[Path, PluginSet], None] = lambda directory, plugins: None,
        limits: Limits | None = None,
        now: Callable[[], int] | None = None,
    ) -> None:
        """``tell`` receives problems: the directory, the session or an empty text, and the message.

        ``renewed`` is called when the plugins of a directory change. ``now`` is the clock, in milliseconds since 1970.
        """
        self._environ, self._trust = environ, trust
        self._tell, self._tell_renewed = tell, renewed
        self._limits, self._packages, self._now = limits or Limits(), Packages(), now or Mint().now
        self._sets: dict[Path, PluginSet] = {}
        self._told: set[tuple[str, str]] = set()
        self._lock = anyio.Lock()

    @property
    def places(self) -> int:
        """The number of places whose plugins are loaded."""
        return len(self._sets)

    def now(self, directory: Path) -> PluginSet:
        """The plugins that are loaded for a directory."""
        return self._sets.get(directory, NONE)

    async def of(self, place: ProjectPlace, loaded: LoadedSettings) -> PluginSet:
        """The plugins of a place. New and changed plugins are loaded, and deleted ones are removed."""
        if flags.PURE.is_on(self._environ):
            return NONE
        directories = [one.path for one in loaded.directories]
        wanted = [*named_packages(_named(loaded.config), self._packages), *files_in(directories, self._trust)]
        if [plugin.source for plugin in self.now(place.directory).plugins] == wanted:
            return self.now(place.directory)
        async with self._lock:
            known = self.now(place.directory)  # Other callers get these until the new ones are loaded.
            if [plugin.source for plugin in known.plugins] != wanted:
                known = await self._renewed(place, known, wanted)
                self._tell_renewed(place.directory, known)
            self._sets.pop(place.directory, None)
            self._sets[place.directory] = known
            while len(self._sets) > PLACES_MAX:
                oldest = next(iter(self._sets))
                self._tell_renewed(oldest, NONE)
                await self._dispose(self._sets.pop(oldest))
            return known

    async def aclose(self) -> None:
        """Dispose of all plugins."""
        while self._sets:
            await self._dispose(self._sets.popitem()[1])

    async def _dispose(self, known: PluginSet) -> None:
        for plugin in reversed(known.plugins):
            await known.dispose(plugin)

    async def _renewed(self, place: ProjectPlace, known: PluginSet, wanted: Sequence[PluginSource]) -> PluginSet:
        """The plugins of these sources. Unchanged plugins are not loaded again."""
        kept = {plugin.source: plugin for plugin in known.plugins if plugin.source in wanted}
        for plugin in reversed(known.plugins):
            if plugin.source not in kept:
                await known.dispose(plugin)
        contributed = known.contributed if known is not NONE else Contributions()
        tell = partial(self._tell, place.directory)
        plugins = [kept.get(source) or self._new(place, source, contributed) for source in wanted]
        try:
            for plugin in plugins:
                if plugin.source not in kept:
                    await self._load(place, plugin)
        except BaseException:
            # Cancelled half-way: the registrations would conflict with those of the next attempt.
            self._sets[place.directory] = PluginSet(kept.values(), contributed, tell)
            with anyio.move_on_after(DISPOSE_S, shield=True):
                for plugin in plugins:
                    if plugin.source not in kept:
                        await known.dispose(plugin)
            raise
        return PluginSet(plugins, contributed, tell)

    def _new(self, place: ProjectPlace, source: PluginSource, contributed: Contributions) -> Plugin:
        threads = OutsideThreads(f"plugin {source.name}")
        context = PluginContext(source.name, place.directory, place.worktree, self._environ, contributed, threads)
        return Plugin(source, context, threads, self._limits, self._now)

    async def _load(self, place: ProjectPlace, plugin: Plugin) -> None:
        source = plugin.source
        if source.problem is None:
            await plugin.load(partial(function_of, source, self._packages, self._trust))
        if plugin.error is not None and (source.where, plugin.error) not in self._told:
            self._told.add((source.where, plugin.error))
            words = f"the plugin {source.name!r} ({source.where}) is left out: {plugin.error}"
            log.log(logging.INFO if plugin.error == JAVASCRIPT else logging.WARNING, "%s", words)
            if plugin.state == "failed":
                self._tell(place.directory, "", words)


def _named(config: Config) -> list[tuple[str, Mapping[str, object]]]:
    """The packages that the settings name, with their options."""
    return [(one, {}) if isinstance(one, str) else one for one in config.plugin]

"""Cache of settings: those of a directory are read again only after one of their files or variables has changed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import flags
from turnkeeper.workspace.config import LoadedSettings, ProgramSettings, ToolNames, merged, sources
from turnkeeper.workspace.setting_places import Look, SettingPlaces
from turnkeeper.workspace.settings_source import SettingsSource
from turnkeeper.workspace.trust import FilesAtStart

DIRECTORIES_MAX: Final = 256
"""Maximum number of directories in the cache."""

_VARIABLES: Final = (
    *("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *(
        name
        for flag in (
            *(flags.DATA, flags.DISABLE_PROJECT_CONFIG, flags.TRUST, flags.CONFIG, flags.CONFIG_DIR),
            *(flags.CONFIG_CONTENT, flags.PERMISSION, flags.AUTH_CONTENT),
        )
        for name in flag.names
    ),
)


class _Cached(NamedTuple):
    settings: LoadedSettings
    variables: tuple[str | None, ...]
    """Values of the variables that the settings depend on."""
    places: SettingPlaces
    look: Look
    """State of the files when the settings were read."""


class _Good(NamedTuple):
    source: SettingsSource
    trust: tuple[object, ...]
    """State that decided whether the source is trusted. After it has changed, the settings are not used any more."""


class SettingsCache:
    """Caches the settings of directories until one of their files or variables changes.

    If a valid file becomes invalid, its last valid settings are used, so that a typing error stops no session.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        directories_max: int = DIRECTORIES_MAX,
        started_ns: int | None = None,
        own: ProgramSettings | None = None,
        tools: ToolNames = tuple,
    ) -> None:
        """``started_ns`` is when the program was started, by the clock of the file system; now by default."""
        self._environ, self._directories_max = environ, directories_max
        self._at_start = FilesAtStart(started_ns)
        self._own, self._tools = own or ProgramSettings(), tools
        self._known: dict[tuple[Path, Path], _Cached] = {}
        self._good: dict[tuple[Path, Path], dict[str, _Good]] = {}

    def load(self, directory: Path, worktree: Path) -> LoadedSettings:
        """The current settings of a directory. Raises Invalid, which names the invalid file."""
        known = self._known.pop((directory, worktree), None)
        variables = (self._own.text, *(self._environ.get(name) for name in _VARIABLES))
        is_known = known is not None and known.variables == variables
        places = (
            known.places if known is not None and is_known else SettingPlaces.of(directory, worktree, self._environ)
        )
        look = places.look()  # Before the files are read, so that the next call detects a change in between.
        if known is None or not is_known or known.look != look:
            trust = (look.stamps[places.trust], flags.TRUST.value(self._environ))
            loaded = self._loaded(directory, worktree, look, trust)
            if any(source.refers for source in loaded.sources):
                return loaded
            known = _Cached(loaded, variables, places, look)
        self._known[directory, worktree] = known
        while len(self._known) > self._directories_max:
            del self._known[next(iter(self._known))]
        return known.settings

    def _loaded(self, directory: Path, worktree: Path, look: Look, trust: tuple[object, ...]) -> LoadedSettings:
        found = sources(directory, worktree, self._environ, self._own.text, at_start=self._at_start, tools=self._tools)
        good = self._good.pop((directory, worktree), {})
        held: list[SettingsSource] = []
        kept: list[str] = []
        for source in found:
            last = good.get(source.where)
            if source.errors and last is not None and last.trust == trust:
                held.append(last.source)
                kept += source.errors
            else:
                held.append(source)
        loaded = merged(held, look.directories, kept)
        self._good[directory, worktree] = {source.where: _Good(source, trust) for source in held}
        while len(self._good) > self._directories_max:
            del self._good[next(iter(self._good))]
        return loaded

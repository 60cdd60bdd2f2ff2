"""Configuration files: finds, reads and merges them. They are never written.

In order, later ones override: opencode's and Turnkeeper's files in the user's configuration directory; the project's
files (``opencode.json``, ``opencode.jsonc``, ``turnkeeper.json``, ``turnkeeper.jsonc``) from the worktree down to the
directory; those in ``.opencode`` and ``.turnkeeper`` directories, also from the top down; the files named by
``OPENCODE_CONFIG`` and ``TURNKEEPER_CONFIG``; the JSON in ``OPENCODE_CONFIG_CONTENT`` and
``TURNKEEPER_CONFIG_CONTENT``; the permissions in ``OPENCODE_PERMISSION``; the settings that a program gives to
``turnkeeper.open``. The agent files of a directory of settings come after its other files.
"""

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import settings
from turnkeeper.model.config import Config, ProjectAsks
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.workspace import agent_files, files, paths, settings_source
from turnkeeper.workspace.agent_files import AgentFile
from turnkeeper.workspace.settings_source import SettingsSource
from turnkeeper.workspace.trust import NAME as TRUST_FILE
from turnkeeper.workspace.trust import VARIABLE as TRUST_VARIABLE
from turnkeeper.workspace.trust import TrustedDirectories, are_older

FILE_VARIABLES: Final = ("OPENCODE_CONFIG", "TURNKEEPER_CONFIG")
CONTENT_VARIABLES: Final = ("OPENCODE_CONFIG_CONTENT", "TURNKEEPER_CONFIG_CONTENT")
PERMISSION_VARIABLE: Final = "OPENCODE_PERMISSION"
PROGRAM: Final = "the config of the program"
NO_PROJECT_VARIABLE: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
_VARIABLES: Final = (
    *("HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", paths.DATA_VARIABLE, NO_PROJECT_VARIABLE, TRUST_VARIABLE),
    *(*FILE_VARIABLES, *CONTENT_VARIABLES, PERMISSION_VARIABLE),
)

DIRECTORIES_MAX: Final = 256
"""Maximum number of directories in the cache."""


class LoadedSettings(NamedTuple):
    """The merged settings, with their sources."""

    config: Config
    merged: JsonObject
    """All settings, including unknown ones."""
    sources: tuple[SettingsSource, ...]

    def __repr__(self) -> str:
        return f"Loaded(sources={self.sources!r})"

    @property
    def filled(self) -> dict[str, str]:
        """The source text of each string with a reference, by the resolved string, to display no secrets."""
        return {became: written for source in self.sources for became, written in source.filled.items()}

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """The dotted keys that do not hold until the user trusts a directory, by the file they are in."""
        return {source.where: source.left_out for source in self.sources if source.left_out}

    def explain(self, key: str) -> str | None:
        """The last file or variable that sets a dotted key, as ``provider.local.options``; None if none does."""
        setters = self.setters(*key.split("."))
        return setters[-1] if setters else None

    def setters(self, *key: str) -> list[str]:
        """The files and variables that set a key, weakest first."""
        return [source.where for source in self.sources if _has(source.settings, key)]


class ProgramSettings:
    """Settings that the program itself gives, and no file: the last source, which overrides all others."""

    def __init__(self, given: JsonObject | None = None) -> None:
        """Raises Invalid, as for a file."""
        self.text = ""
        """The settings as JSON; empty if there are none."""
        self._given: JsonObject = {}
        if given:
            self.add(given)

    def add(self, given: JsonObject) -> None:
        """Add settings, which hold from the next turn on. Raises Invalid, and adds nothing."""
        try:
            text = json.dumps(given, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise Invalid(f"{PROGRAM}: settings are JSON: {error}") from error
        more = settings_source.checked_settings(text, PROGRAM)
        if more != self._given:
            self._given = settings.merged([self._given, more])
            self.text = json.dumps(self._given)


def load(
    directory: Path, worktree: Path, environ: Mapping[str, str], own: str = "", *, started_ns: int | None = None
) -> LoadedSettings:
    """The merged settings of a directory; ``own`` are those of the program. Raises Invalid, which names the file.

    ``started_ns`` is when the program was started, by the clock of the file system; now by default.
    """
    started_ns = time.time_ns() if started_ns is None else started_ns
    sources = tuple(_sources(directory, worktree, environ, own, started_ns))
    merged = settings.merged(source.settings for source in sources)
    denied = tuple(source.denied for source in sources if source.denied)
    asked = tuple(source.asked for source in sources if source.asked != ProjectAsks())
    return LoadedSettings(settings.typed(merged).but(denied=denied, asked=asked), merged, sources)


class _Cached(NamedTuple):
    settings: LoadedSettings
    variables: tuple[str | None, ...]
    """The variables that settings and the names of their files come from."""
    files: tuple[str, ...]
    """Every configuration file that settings could come from, also those that do not exist."""
    stamps: dict[str, tuple[int, ...] | None]
    """Those files and the agent files that were there, with a value that changes when they are written."""


class SettingsCache:
    """Caches the settings of directories until one of their files or variables changes."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        directories_max: int = DIRECTORIES_MAX,
        started_ns: int | None = None,
        own: ProgramSettings | None = None,
    ) -> None:
        """``started_ns`` is when the program was started, by the clock of the file system; now by default."""
        self._environ, self._directories_max = environ, directories_max
        self._started_ns = time.time_ns() if started_ns is None else started_ns
        self._own = own or ProgramSettings()
        self._known: dict[tuple[Path, Path], _Cached] = {}

    def load(self, directory: Path, worktree: Path) -> LoadedSettings:
        """The current settings of a directory. Raises Invalid, which names the invalid file."""
        known = self._known.pop((directory, worktree), None)
        variables = (self._own.text, *(self._environ.get(name) for name in _VARIABLES))
        if known is not None and known.variables == variables:
            candidates = known.files
        else:
            candidates = tuple(map(str, _candidates(directory, worktree, self._environ)))
        # Computed before the files are read, so that the next call detects a change in between.
        agents = (str(file.path) for file in _agent_files(directory, worktree, self._environ))
        stamps = {file: files.stamp(file) for file in (*candidates, *agents)}
        if known is None or known.variables != variables or known.stamps != stamps:
            loaded = load(directory, worktree, self._environ, self._own.text, started_ns=self._started_ns)
            if any(source.refers for source in loaded.sources):
                return loaded
            known = _Cached(loaded, variables, candidates, stamps)
        self._known[directory, worktree] = known
        while len(self._known) > self._directories_max:
            del self._known[next(iter(self._known))]
        return known.settings


def _candidates(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    yield paths.data(environ) / TRUST_FILE
    yield from _user_files(environ)
    yield from (file for file in _project_files(directory, worktree, environ) if isinstance(file, Path))
    yield from (
        settings_source.path_from(environ[name], directory, environ) for name in FILE_VARIABLES if environ.get(name)
    )


def _agent_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[AgentFile]:
    for place in code_directories(directory, worktree, environ):
        yield from agent_files.found_in(place)


def _sources(
    directory: Path, worktree: Path, environ: Mapping[str, str], own: str, started_ns: int
) -> Iterator[SettingsSource]:
    yield from (settings_source.read(file, environ) for file in _user_files(environ) if os.path.lexists(file))
    for place in _user_directories(environ):
        yield from (settings_source.read_agent(file) for file in agent_files.found_in(place))
    trusted = TrustedDirectories(environ)
    for file in _project_files(directory, worktree, environ):
        if isinstance(file, AgentFile) or os.path.lexists(file):
            yield _read_project(file, environ, trusted, started_ns)
    for variable in FILE_VARIABLES:
        if environ.get(variable):
            yield settings_source.read(settings_source.path_from(environ[variable], directory, environ), environ)
    for variable in CONTENT_VARIABLES:
        if environ.get(variable):
            yield settings_source.of_text(environ[variable], variable, directory, environ)
    if environ.get(PERMISSION_VARIABLE):
        permission = settings_source.parsed(environ[PERMISSION_VARIABLE], PERMISSION_VARIABLE)
        yield SettingsSource(PERMISSION_VARIABLE, settings.checked({"permission": permission}, PERMISSION_VARIABLE))
    if own:
        yield settings_source.of_text(own, PROGRAM, directory, environ)


def _user_files(environ: Mapping[str, str]) -> Iterator[Path]:
    user = paths.config(environ, paths.OPENCODE)
    yield from (user / name for name in (paths.USER_SETTINGS, *paths.SETTINGS[:2]))
    yield from (paths.config(environ) / name for name in paths.SETTINGS)


def _project_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[Path | AgentFile]:
    """The configuration files of a project, also those that do not exist, and its agent files."""
    folders = _folders(directory, worktree, environ)
    yield from (folder / name for folder in folders for name in paths.SETTINGS)
    for place in (folder / dotted for folder in folders for dotted in paths.SETTINGS_FOLDERS):
        yield from (place / name for name in paths.SETTINGS)
        yield from agent_files.found_in(place)


def code_directories(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories that tools come from in a place, weakest first: the user's own, then those of the project."""
    return [*_user_directories(environ), *project_code_directories(directory, worktree, environ)]


def _user_directories(environ: Mapping[str, str]) -> list[Path]:
    return [paths.config(environ, paths.OPENCODE), paths.config(environ)]


def project_code_directories(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories of a project that tools come from, also if nobody trusts them."""
    folders = _folders(directory, worktree, environ)
    found = (folder / dotted for folder in folders for dotted in paths.SETTINGS_FOLDERS)
    return [place for place in found if os.path.isdir(place)]


class ProjectSettings(NamedTuple):
    """The files of settings of a project, also if nobody trusts them."""

    contents: Mapping[Path, bytes]
    widening: Mapping[str, tuple[str, ...]]
    """The dotted keys that hold only if the user trusts them, by their file."""


def project_settings(directory: Path, worktree: Path, environ: Mapping[str, str]) -> ProjectSettings:
    """The files of settings of a project as they are now, and what in them needs to be trusted."""
    contents: dict[Path, bytes] = {}
    widening: dict[str, tuple[str, ...]] = {}
    for file in _project_files(directory, worktree, environ):
        is_agent = isinstance(file, AgentFile)
        with suppress(Invalid) if is_agent else nullcontext():  # An agent that cannot be read is skipped.
            if is_agent or os.path.lexists(settings_source.place_of(file)):
                contents[settings_source.place_of(file)] = content = settings_source.content_of(file)
                source = settings_source.untrusted(file, content)
                widening |= {source.where: source.left_out} if source.left_out else {}
    return ProjectSettings(contents, widening)


def _folders(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories from the worktree down to ``directory``; outside of the worktree, only ``directory``."""
    if environ.get(NO_PROJECT_VARIABLE, "").lower() in ("1", "true"):
        return []
    upward = (directory, *directory.parents)
    return [*reversed(upward[: upward.index(worktree) + 1])] if worktree in upward else [directory]


def _read_project(
    file: Path | AgentFile, environ: Mapping[str, str], trusted: TrustedDirectories, started_ns: int
) -> SettingsSource:
    """The settings of a file of a project: all of them if the user trusts it as it is now."""
    place = settings_source.place_of(file)
    try:
        content = settings_source.content_of(file)
    except Invalid as error:
        if isinstance(file, AgentFile):
            return SettingsSource(str(place), {}, problem=str(error))
        raise
    if place not in trusted:
        return settings_source.untrusted(file, content)
    if trusted.has_settings(place, content) or (trusted.are_all and are_older(_places(file), started_ns)):
        return settings_source.strict(settings_source.trusted(file, content, environ))
    return settings_source.untrusted(file, content)._replace(is_changed=True)


def _places(file: Path | AgentFile) -> list[Path]:
    """A file of settings, and the directories that are only there for it: others could be moved into their place."""
    if isinstance(file, AgentFile):
        return [file.path, *file.path.parents[: len(file.steps) + 1]]
    return [file, file.parent] if file.parent.name in paths.SETTINGS_FOLDERS else [file]


def _has(settings_: JsonObject, key: Sequence[str]) -> bool:
    value: Json = settings_
    for name in key:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True

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
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from turnkeeper.core import settings, trust
from turnkeeper.model.config import Config, ProjectAsks
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text import jsonc
from turnkeeper.workspace import agent_files, files, paths
from turnkeeper.workspace.agent_files import AgentFile
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
FILE_BYTES_MAX: Final = 1024 * 1024
"""Maximum size of a configuration file, and of a file in ``{file:...}``."""

_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')


class SettingsSource(NamedTuple):
    """The settings of one file or variable. ``repr`` leaves out the settings, which may hold keys."""

    where: str
    settings: JsonObject
    refers: bool = False
    """Whether it contains ``{env:...}`` or ``{file:...}`` references, whose targets may change."""
    filled: Mapping[str, str] = MappingProxyType({})
    """The source text of each string with a reference, by the resolved string."""
    denied: JsonObject = MappingProxyType({})
    """What a project denies that is not trusted."""
    asked: ProjectAsks = ProjectAsks()
    """What such a project wants the user to be asked about."""
    left_out: tuple[str, ...] = ()
    """The dotted keys that do not hold until the user trusts the directory of the file."""

    ignored: tuple[str, ...] = ()
    """The dotted keys that never hold in a file of a project."""
    is_changed: bool = False
    """Whether it is in a trusted directory, and is not as it was when the user trusted it."""
    misspelt: tuple[tuple[str, str], ...] = ()
    """The dotted keys that are no settings, each with the one that is probably meant."""
    problem: str | None = None
    """Why the file is skipped."""

    def __repr__(self) -> str:
        return f"Source({self.where!r})"

    @property
    def warnings(self) -> list[str]:
        """What the user should know of settings that have no effect."""
        said = [f"{self.where}: {key} is ignored: a project's file may not widen the sandbox" for key in self.ignored]
        if self.is_changed:
            said.append(f"{self.where}: new or changed since the project was trusted; it only narrows what may happen")
        said += [f"{self.where}: there is no setting {key!r}; did you mean {meant!r}?" for key, meant in self.misspelt]
        said += [f"the agent is skipped: {self.problem}"] if self.problem is not None else []
        return said


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
        more = _checked(text, PROGRAM)
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
    yield from (_path(environ[name], directory, environ) for name in FILE_VARIABLES if environ.get(name))


def _agent_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[AgentFile]:
    for place in code_directories(directory, worktree, environ):
        yield from agent_files.found_in(place)


def _sources(
    directory: Path, worktree: Path, environ: Mapping[str, str], own: str, started_ns: int
) -> Iterator[SettingsSource]:
    yield from (_read(file, environ) for file in _user_files(environ) if os.path.lexists(file))
    for place in _user_directories(environ):
        yield from (_read_agent(file) for file in agent_files.found_in(place))
    trusted = TrustedDirectories(environ)
    for file in _project_files(directory, worktree, environ):
        if isinstance(file, AgentFile) or os.path.lexists(file):
            yield _read_project(file, environ, trusted, started_ns)
    for variable in FILE_VARIABLES:
        if environ.get(variable):
            yield _read(_path(environ[variable], directory, environ), environ)
    for variable in CONTENT_VARIABLES:
        if environ.get(variable):
            yield _source(environ[variable], variable, directory, environ)
    if environ.get(PERMISSION_VARIABLE):
        permission = _parsed(environ[PERMISSION_VARIABLE], PERMISSION_VARIABLE)
        yield SettingsSource(PERMISSION_VARIABLE, settings.checked({"permission": permission}, PERMISSION_VARIABLE))
    if own:
        yield _source(own, PROGRAM, directory, environ)


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
            if is_agent or os.path.lexists(_place(file)):
                contents[_place(file)] = content = _content_of(file)
                source = _untrusted(file, content)
                widening |= {source.where: source.left_out} if source.left_out else {}
    return ProjectSettings(contents, widening)


def _folders(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The directories from the worktree down to ``directory``; outside of the worktree, only ``directory``."""
    if environ.get(NO_PROJECT_VARIABLE, "").lower() in ("1", "true"):
        return []
    upward = (directory, *directory.parents)
    return [*reversed(upward[: upward.index(worktree) + 1])] if worktree in upward else [directory]


def _read(file: Path, environ: Mapping[str, str]) -> SettingsSource:
    return _source(_text_of(_content_of(file), file), str(file), file.parent, environ)


def _read_project(
    file: Path | AgentFile, environ: Mapping[str, str], trusted: TrustedDirectories, started_ns: int
) -> SettingsSource:
    """The settings of a file of a project: all of them if the user trusts it as it is now."""
    place = _place(file)
    try:
        content = _content_of(file)
    except Invalid as error:
        if isinstance(file, AgentFile):
            return SettingsSource(str(place), {}, problem=str(error))
        raise
    if place not in trusted:
        return _untrusted(file, content)
    if trusted.has_settings(place, content) or (trusted.are_all and are_older(_places(file), started_ns)):
        return _strict(_trusted(file, content, environ))
    return _untrusted(file, content)._replace(is_changed=True)


def _places(file: Path | AgentFile) -> list[Path]:
    """A file of settings, and the directories that are only there for it: others could be moved into their place."""
    if isinstance(file, AgentFile):
        return [file.path, *file.path.parents[: len(file.steps) + 1]]
    return [file, file.parent] if file.parent.name in paths.SETTINGS_FOLDERS else [file]


def _strict(source: SettingsSource) -> SettingsSource:
    """The settings of a project that is trusted. No project may widen the sandbox of commands."""
    strict = settings.with_strict_sandbox(source.settings)
    given, kept = source.settings.get("sandbox"), strict.get("sandbox")
    names = [key for key in given if not isinstance(kept, dict) or key not in kept] if isinstance(given, dict) else []
    misspelt = {key for key, _ in source.misspelt}
    ignored = tuple(name for key in names if (name := f"sandbox.{key}") not in misspelt)
    return source._replace(settings=strict, ignored=ignored)


def _trusted(file: Path | AgentFile, content: bytes, environ: Mapping[str, str]) -> SettingsSource:
    if isinstance(file, AgentFile):
        return _agent_source(file, content)
    return _source(_text_of(content, file), str(file), file.parent, environ)


def _untrusted(file: Path | AgentFile, content: bytes) -> SettingsSource:
    """The settings that hold although nobody trusts the file. References are not resolved.

    An agent file is not read through a link that leads out of its directory of settings: it could send a file of the
    user to a model.
    """
    where = str(_place(file))
    if not isinstance(file, AgentFile):
        plain = jsonc.plain(_text_of(content, file))
        return _narrowed(SettingsSource(where, _checked(plain, where), misspelt=_misspelt(plain, where)))
    place = file.path.parents[len(file.steps)]
    if not files.real(file.path).is_relative_to(files.real(place)):
        return SettingsSource(where, {}, problem=f"{file.path}: the link leads out of {place}")
    return _narrowed(_agent_source(file, content))


def _narrowed(source: SettingsSource) -> SettingsSource:
    found = trust.narrowed(source.settings)
    return source._replace(settings=found.settings, denied=found.denied, asked=found.asked, left_out=found.left_out)


def _agent_source(file: AgentFile, content: bytes) -> SettingsSource:
    """The settings of an agent file. One that is wrong is skipped: other agents can do without it."""
    where = str(file.path)
    try:
        return SettingsSource(where, settings.checked(file.settings(content), where))
    except Invalid as error:
        return SettingsSource(where, {}, problem=str(error))


def _place(file: Path | AgentFile) -> Path:
    return file.path if isinstance(file, AgentFile) else file


def _read_agent(file: AgentFile) -> SettingsSource:
    try:
        return _agent_source(file, _content_of(file))
    except Invalid as error:
        return SettingsSource(str(file.path), {}, problem=str(error))


def _content_of(file: Path | AgentFile) -> bytes:
    try:
        return files.read_bytes(_place(file), FILE_BYTES_MAX)
    except OSError as error:
        raise Invalid(f"{file}: cannot be read: {error}") from error


def _text_of(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file}: cannot be read: {error}") from error


def _source(text: str, where: str, folder: Path, environ: Mapping[str, str]) -> SettingsSource:
    # Comments are removed first, so that references in them are not resolved.
    plain = jsonc.plain(text)
    values = {one[0]: _value(one, where, folder, environ) for one in trust.REFERENCE.finditer(plain)}
    filled = _filled(plain, values)
    checked = _checked(filled, where)
    literals = [one[0] for one in _STRING.finditer(plain) if trust.REFERENCE.search(one[0])]
    became = {json.loads(_filled(one, values)): json.loads(one) for one in literals}
    return SettingsSource(where, checked, bool(values), became, misspelt=_misspelt(filled, where))


def _checked(text: str, where: str) -> JsonObject:
    checked = settings.checked(_parsed(text, where) if text.strip() else {}, where)
    _check_timezone(checked.get("timezone"), where)
    return checked


def _misspelt(text: str, where: str) -> tuple[tuple[str, str], ...]:
    """The misspelt keys as the file has them: checking turns unknown keys of an agent into its options."""
    given = _parsed(text, where) if text.strip() else None
    return settings.near_misses(given) if isinstance(given, dict) else ()


def _check_timezone(name: Json, where: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        if isinstance(name, str):
            ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Invalid(f"{where}: timezone {name!r} is not known; write it like Europe/Berlin") from error


def _parsed(text: str, where: str) -> Json:
    try:
        return jsonc.parse(text)
    except jsonc.JsoncError as error:
        raise Invalid(f"{where}: {error}") from error


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with ``{env:NAME}`` and ``{file:path}`` replaced by their values."""
    return trust.REFERENCE.sub(lambda reference: values[reference[0]], text)


def _value(reference: re.Match[str], where: str, folder: Path, environ: Mapping[str, str]) -> str:
    """The value of a reference, escaped for a JSON string."""
    kind, name = reference.groups()
    found = environ.get(name, "") if kind == "env" else _content(name, where, folder, environ)
    return json.dumps(found, ensure_ascii=False)[1:-1]


def _content(name: str, where: str, folder: Path, environ: Mapping[str, str]) -> str:
    try:
        return files.read_bytes(_path(name, folder, environ), FILE_BYTES_MAX).decode("utf-8").strip()
    except (OSError, ValueError, Invalid) as error:
        raise Invalid(f"{where}: {{file:{name}}} cannot be read: {error}") from error


def _path(name: str, folder: Path, environ: Mapping[str, str]) -> Path:
    home = environ.get("HOME", "")
    return Path(home) / name[2:] if name.startswith("~/") and home else folder / name


def _has(settings_: JsonObject, key: Sequence[str]) -> bool:
    value: Json = settings_
    for name in key:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True

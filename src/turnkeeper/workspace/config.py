"""Configuration files: found, read and merged. Nothing is ever written to them.

Weakest first: opencode's and our own files in the user's configuration directory; those of the project, from the
worktree down to the directory (``opencode.json``, ``opencode.jsonc``, ``turnkeeper.json``, ``turnkeeper.jsonc``),
then those in its ``.opencode`` and ``.turnkeeper`` directories, again from the top down; the files named by
``OPENCODE_CONFIG`` and ``TURNKEEPER_CONFIG``; the JSON in ``OPENCODE_CONFIG_CONTENT`` and
``TURNKEEPER_CONFIG_CONTENT``; the permissions in ``OPENCODE_PERMISSION``.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from turnkeeper.core import settings
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text import jsonc
from turnkeeper.workspace import files, paths

FILE_VARIABLES: Final = ("OPENCODE_CONFIG", "TURNKEEPER_CONFIG")
CONTENT_VARIABLES: Final = ("OPENCODE_CONFIG_CONTENT", "TURNKEEPER_CONFIG_CONTENT")
PERMISSION_VARIABLE: Final = "OPENCODE_PERMISSION"
NO_PROJECT_VARIABLE: Final = "OPENCODE_DISABLE_PROJECT_CONFIG"
_VARIABLES: Final = (
    *("HOME", "XDG_CONFIG_HOME", NO_PROJECT_VARIABLE),
    *(*FILE_VARIABLES, *CONTENT_VARIABLES, PERMISSION_VARIABLE),
)

DIRECTORIES_MAX: Final = 256
"""How many directories' settings are kept in memory."""
FILE_BYTES_MAX: Final = 1024 * 1024
"""The largest file of settings, and the largest that ``{file:...}`` may name."""

_REFERENCE: Final = re.compile(r"\{(env|file):([^{}\n]+)\}")
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')


class SettingsSource(NamedTuple):
    """One place settings came from. The settings may hold keys, so they are not shown."""

    where: str
    settings: JsonObject
    refers: bool = False
    """Whether it names variables or files, which may change without it."""
    filled: Mapping[str, str] = MappingProxyType({})
    """Strings with a reference in them: as they were written, by what they became."""

    def __repr__(self) -> str:
        return f"Source({self.where!r})"


class LoadedSettings(NamedTuple):
    """The merged settings, and where each of them came from."""

    config: Config
    merged: JsonObject
    """Everything the files say, also what we do not know."""
    sources: tuple[SettingsSource, ...]

    def __repr__(self) -> str:
        return f"Loaded(sources={self.sources!r})"

    @property
    def filled(self) -> dict[str, str]:
        """Strings with a reference in them: as they were written, by what they became. To show them without secrets."""
        return {became: written for source in self.sources for became, written in source.filled.items()}

    def explain(self, key: str) -> str | None:
        """The file or variable that last set a dotted key, as ``provider.local.options``; None if none did."""
        setters = [source.where for source in self.sources if _has(source.settings, key.split("."))]
        return setters[-1] if setters else None


def load(directory: Path, worktree: Path, environ: Mapping[str, str]) -> LoadedSettings:
    """All settings that hold in a directory. Raises Invalid with the file and what is wrong in it."""
    sources = tuple(_sources(directory, worktree, environ))
    merged = settings.merged(source.settings for source in sources)
    return LoadedSettings(settings.typed(merged), merged, sources)


class _Cached(NamedTuple):
    settings: LoadedSettings
    variables: tuple[str | None, ...]
    """The variables that settings and the names of their files come from."""
    files: tuple[str, ...]
    """Every file that settings could come from, also those that do not exist."""
    stamps: list[tuple[int, ...] | None]


class SettingsCache:
    """Loads settings, and reads them again only when a file or variable they come from has changed."""

    def __init__(self, environ: Mapping[str, str], *, directories_max: int = DIRECTORIES_MAX) -> None:
        self._environ, self._directories_max = environ, directories_max
        self._known: dict[tuple[Path, Path], _Cached] = {}

    def load(self, directory: Path, worktree: Path) -> LoadedSettings:
        """All settings that hold in a directory now. Raises Invalid with the file and what is wrong in it."""
        known = self._known.pop((directory, worktree), None)
        variables = tuple(self._environ.get(name) for name in _VARIABLES)
        if known is not None and known.variables == variables:
            files = known.files
        else:
            files = tuple(map(str, _candidates(directory, worktree, self._environ)))
        # Taken before the files are read: a change in between is seen by the next call.
        stamps = [_stamp(file) for file in files]
        if known is None or known.variables != variables or known.stamps != stamps:
            loaded = load(directory, worktree, self._environ)
            if any(source.refers for source in loaded.sources):
                return loaded
            known = _Cached(loaded, variables, files, stamps)
        self._known[directory, worktree] = known
        while len(self._known) > self._directories_max:
            del self._known[next(iter(self._known))]
        return known.settings


def _stamp(file: str) -> tuple[int, ...] | None:
    try:
        found = os.stat(file)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino, found.st_dev


def _candidates(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    yield from _user_files(environ)
    yield from _project_files(directory, worktree, environ)
    yield from (_path(environ[name], directory, environ) for name in FILE_VARIABLES if environ.get(name))


def _sources(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    for file in _user_files(environ):
        if os.path.lexists(file):
            yield _read(file, environ)
    for file in _project_files(directory, worktree, environ):
        if os.path.lexists(file):
            source = _read(file, environ)
            yield source._replace(settings=settings.narrowed(source.settings))
    for variable in FILE_VARIABLES:
        if environ.get(variable):
            yield _read(_path(environ[variable], directory, environ), environ)
    for variable in CONTENT_VARIABLES:
        if environ.get(variable):
            yield _source(environ[variable], variable, directory, environ)
    if environ.get(PERMISSION_VARIABLE):
        permission = _parsed(environ[PERMISSION_VARIABLE], PERMISSION_VARIABLE)
        yield SettingsSource(PERMISSION_VARIABLE, settings.checked({"permission": permission}, PERMISSION_VARIABLE))


def _user_files(environ: Mapping[str, str]) -> Iterator[Path]:
    user = paths.config(environ, paths.OPENCODE)
    yield from (user / name for name in (paths.USER_SETTINGS, *paths.SETTINGS[:2]))
    yield from (paths.config(environ) / name for name in paths.SETTINGS)


def _project_files(directory: Path, worktree: Path, environ: Mapping[str, str]) -> Iterator[Path]:
    folders = _folders(directory, worktree, environ)
    yield from (folder / name for folder in folders for name in paths.SETTINGS)
    yield from (
        folder / dotted / name for folder in folders for dotted in paths.SETTINGS_FOLDERS for name in paths.SETTINGS
    )


def _folders(directory: Path, worktree: Path, environ: Mapping[str, str]) -> list[Path]:
    """The worktree, and every directory on the way down. Outside of it, the directory alone."""
    if environ.get(NO_PROJECT_VARIABLE, "").lower() in ("1", "true"):
        return []
    if not directory.is_relative_to(worktree):
        return [directory]
    return [
        worktree.joinpath(*directory.relative_to(worktree).parts[:depth])
        for depth in range(len(directory.relative_to(worktree).parts) + 1)
    ]


def _read(file: Path, environ: Mapping[str, str]) -> SettingsSource:
    try:
        text = files.read_bytes(file, FILE_BYTES_MAX).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise Invalid(f"{file}: cannot be read: {error}") from error
    return _source(text, str(file), file.parent, environ)


def _source(text: str, where: str, folder: Path, environ: Mapping[str, str]) -> SettingsSource:
    # Comments go first: what is written in one is neither looked up nor read.
    plain = jsonc.plain(text)
    values = {one[0]: _value(one, where, folder, environ) for one in _REFERENCE.finditer(plain)}
    filled = _filled(plain, values)
    checked = settings.checked(_parsed(filled, where) if filled.strip() else {}, where)
    _check_timezone(checked.get("timezone"), where)
    literals = [one[0] for one in _STRING.finditer(plain) if _REFERENCE.search(one[0])]
    became = {json.loads(_filled(one, values)): json.loads(one) for one in literals}
    return SettingsSource(where, checked, bool(values), became)


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
    """``{env:NAME}`` and ``{file:path}`` replaced by their values."""
    return _REFERENCE.sub(lambda reference: values[reference[0]], text)


def _value(reference: re.Match[str], where: str, folder: Path, environ: Mapping[str, str]) -> str:
    """What a reference names, safe inside a JSON string."""
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


def _has(settings_: JsonObject, key: list[str]) -> bool:
    value: Json = settings_
    for name in key:
        if not isinstance(value, dict) or name not in value:
            return False
        value = value[name]
    return True

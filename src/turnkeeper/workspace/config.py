"""Configuration: finds, reads and merges settings. The user's files are never written.

In order, later ones override: opencode's and Turnkeeper's files in the user's configuration directory; what hosts
publish where the user is logged in (``well_known``); the project's files from the worktree down to the directory; those
in ``.opencode`` and ``.turnkeeper`` directories, also from the top down; the directories and then the files that
variables name; the JSON in variables; the permissions in variables; the settings that a program gives to
``turnkeeper.open``. The markdown files of a directory of settings, with agents and commands, come
after its other files.
"""

import json
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import Final, NamedTuple

from turnkeeper.core import flags, provenance, setting_checks, settings
from turnkeeper.core.agents import BUILT_IN
from turnkeeper.core.provenance import MISSING
from turnkeeper.core.trust import agents_kept
from turnkeeper.model.config import Config, ProjectAsks
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.text import jsonc
from turnkeeper.workspace import files, markdown_files, paths, setting_files, settings_source, tool_files, well_known
from turnkeeper.workspace.markdown_files import MarkdownFile
from turnkeeper.workspace.setting_files import CodeDirectory, code_directories
from turnkeeper.workspace.settings_source import SettingsSource
from turnkeeper.workspace.trust import FilesAtStart, TrustedDirectories

FILE_VARIABLES: Final = flags.CONFIG.names
CONTENT_VARIABLES: Final = flags.CONFIG_CONTENT.names
PERMISSION_VARIABLE: Final = flags.PERMISSION.names[0]
PROGRAM: Final = "the config of the program"

ToolNames = Callable[[], Collection[str]]
"""Gives the names of the built-in tools. Called only if a rule may name an unknown tool."""


class LoadedSettings(NamedTuple):
    """The merged settings, with their sources."""

    config: Config
    merged: JsonObject
    """All settings, including unknown ones."""
    sources: tuple[SettingsSource, ...]
    directories: tuple[CodeDirectory, ...] = ()
    """The directories of settings, weakest first. Some that do not exist may be missing."""
    kept: tuple[str, ...] = ()
    """The current errors of files whose last valid settings are still used."""

    def __repr__(self) -> str:
        return f"Loaded(sources={self.sources!r})"

    @property
    def filled(self) -> dict[str, str]:
        """The source text of each string with a reference, by the resolved string, to display no secrets."""
        return {became: written for source in self.sources for became, written in source.filled.items()}

    @property
    def left_out(self) -> dict[str, tuple[str, ...]]:
        """The dotted keys that have no effect until the user trusts the directory, by their file."""
        return {source.where: source.left_out for source in self.sources if source.left_out}

    @property
    def warnings(self) -> list[str]:
        """Warnings about settings that have no effect."""
        return [warning for source in self.sources for warning in source.warnings]

    def explain(self, key: str) -> str | None:
        """The last file or variable that sets a dotted key, as ``provider.local.options``; None if none does."""
        path = provenance.path_of(self.merged, key)
        setters = self.setters(*path) if path else []
        return setters[-1] if setters else None

    def setters(self, *key: str) -> list[str]:
        """The files and variables that set a key, weakest first."""
        return [source.where for source in self.setting_sources(*key)]

    def setting_sources(self, *key: str) -> list[SettingsSource]:
        """The sources that set a key, weakest first."""
        return [source for source in self.sources if provenance.at(source.settings, key) is not MISSING]


class ProgramSettings:
    """Settings that the embedding program passes: the last source, which overrides all others."""

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
    directory: Path, worktree: Path, environ: Mapping[str, str], own: str = "", *, at_start: FilesAtStart | None = None
) -> LoadedSettings:
    """The merged settings of a directory; ``own`` are those of the program. Raises Invalid, which names the file.

    ``at_start`` are the files that the variable trusts; by default the program starts now.
    """
    found = sources(directory, worktree, environ, own, at_start=at_start)
    return merged(found, code_directories(directory, worktree, environ))


def sources(
    directory: Path,
    worktree: Path,
    environ: Mapping[str, str],
    own: str = "",
    *,
    at_start: FilesAtStart | None = None,
    tools: ToolNames = tuple,
) -> tuple[SettingsSource, ...]:
    """Every source of settings of a directory, weakest first, with its problems."""
    found = _with_agents_kept(tuple(_sources(directory, worktree, environ, own, at_start or FilesAtStart())))
    return _with_rules(found, [one.path for one in code_directories(directory, worktree, environ)], tools)


def with_flags(loaded: LoadedSettings, environ: Mapping[str, str]) -> LoadedSettings:
    """The settings, with each flag that overrides one as one more source, to show what holds and why."""
    for variable, key, value in flags.settings_of(environ, loaded.merged.get("share")):
        given: JsonObject = {key[0]: {key[1]: value} if len(key) > 1 else value}
        source = SettingsSource(variable, given, "variable", written=given)
        values = settings.merged([loaded.merged, given])
        loaded = loaded._replace(merged=values, sources=(*loaded.sources, source))
    return loaded


def checked_file(file: Path, directory: Path, environ: Mapping[str, str]) -> tuple[SettingsSource, ...]:
    """One file as a source of the user, with its problems. Its rules may name the tools of a directory."""
    places = [*(one.path for one in code_directories(directory, file.parent, environ)), file.parent]
    return _with_rules((settings_source.read(file, environ),), places, tuple)


def _with_agents_kept(found: tuple[SettingsSource, ...]) -> tuple[SettingsSource, ...]:
    """The sources, without settings of untrusted ones that change how the agents of the others are called."""
    own = [one.settings.get("agent") for one in found if not one.is_narrowed]
    known = {agent.name for agent in BUILT_IN} | {name for one in own if isinstance(one, dict) for name in one}
    result: list[SettingsSource] = []
    for source in found:
        kept, more = agents_kept(source.settings, known) if source.is_narrowed else (source.settings, ())
        result.append(source._replace(settings=kept, left_out=(*source.left_out, *more)) if more else source)
    return tuple(result)


def _with_rules(
    found: tuple[SettingsSource, ...], places: Sequence[Path], tools: ToolNames
) -> tuple[SettingsSource, ...]:
    """The sources, each with a problem for every rule that names no tool."""
    if not any(setting_checks.unknown_permissions(one.written, setting_checks.PERMISSIONS, ()) for one in found):
        return found
    known = {*setting_checks.PERMISSIONS, *tool_files.names_in(places), *tools()}
    written = [source.written for source in found]
    servers = [name for one in written if isinstance(given := one.get("mcp"), dict) for name in given]
    # A plugin may bring any tool, so a name that is not known may be one of these.
    has_plugins = any(one.get("plugin") for one in written) or tool_files.has_plugins(places)
    return tuple(_with_rules_checked(source, known, servers, is_error=not has_plugins) for source in found)


def merged(
    found: Sequence[SettingsSource], directories: Iterable[CodeDirectory] = (), kept: Iterable[str] = ()
) -> LoadedSettings:
    """The settings of these sources. Raises Invalid if one of them cannot be used."""
    errors = [error for source in found for error in source.errors]
    if errors:
        more = f" (and {len(errors) - 1} more; `turnkeeper config check` lists them)" if len(errors) > 1 else ""
        raise Invalid(f"{errors[0]}{more}")
    values = settings.merged(source.settings for source in found)
    denied = tuple(source.denied for source in found if source.denied)
    denied_to = tuple(dict(source.denied_to) for source in found if source.denied_to)
    asked = tuple(source.asked for source in found if source.asked != ProjectAsks())
    config = settings.typed(values).but(denied=denied, denied_to=denied_to, asked=asked)
    return LoadedSettings(config, values, tuple(found), tuple(directories), tuple(kept))


def _sources(
    directory: Path, worktree: Path, environ: Mapping[str, str], own: str, at_start: FilesAtStart
) -> Iterator[SettingsSource]:
    for file in setting_files.user_files(environ):
        if os.path.lexists(file):
            yield settings_source.read(file, environ)
    for place in setting_files.user_directories(environ):
        yield from (settings_source.read_markdown(one) for one in markdown_files.found_in(place))
    yield from well_known.sources(environ, directory)
    trusted = TrustedDirectories(environ)
    for found in setting_files.project_files(directory, worktree, environ):
        if isinstance(found, MarkdownFile) or files.may_exist(found):
            yield _read_project(found, environ, trusted, at_start)
    for found in setting_files.named_directory_files(directory, environ):
        if isinstance(found, MarkdownFile):
            yield settings_source.read_markdown(found, "named file")
        elif files.may_exist(found):
            yield settings_source.read(found, environ, "named file")
    for file in setting_files.named_files(directory, environ):
        yield settings_source.read(file, environ, "named file")
    yield from _variables(directory, environ)
    if own:
        yield settings_source.of_text(own, PROGRAM, directory, environ, "program")._replace(marks={})


def _variables(directory: Path, environ: Mapping[str, str]) -> Iterator[SettingsSource]:
    for variable in CONTENT_VARIABLES:
        if environ.get(variable):
            yield settings_source.of_text(environ[variable], variable, directory, environ)
    for variable in flags.PERMISSION.names:
        if environ.get(variable):
            source = SettingsSource(variable, {}, "variable")
            try:
                permission = jsonc.parse(environ[variable])
            except jsonc.JsoncError as error:
                yield settings_source.broken(variable, "variable", str(error))
            else:
                yield settings_source.checked(source, {"permission": permission})


def _with_rules_checked(
    source: SettingsSource, known: Collection[str], servers: Collection[str], *, is_error: bool
) -> SettingsSource:
    problems = setting_checks.unknown_permissions(source.written, known, servers)
    return source._replace(problems=(*source.problems, *(one._replace(is_error=is_error) for one in problems)))


class ProjectSettings(NamedTuple):
    """The files of settings of a project, including untrusted ones."""

    contents: Mapping[Path, bytes]
    widening: Mapping[str, tuple[str, ...]]
    """The dotted keys that have an effect only if the user trusts them, by their file."""


def project_settings(directory: Path, worktree: Path, environ: Mapping[str, str]) -> ProjectSettings:
    """The current files of settings of a project, and their keys that need trust."""
    contents: dict[Path, bytes] = {}
    widening: dict[str, tuple[str, ...]] = {}
    for file in setting_files.project_files(directory, worktree, environ):
        is_markdown = isinstance(file, MarkdownFile)
        with suppress(Invalid) if is_markdown else nullcontext():  # One that cannot be read is skipped.
            if is_markdown or files.may_exist(settings_source.place_of(file)):
                contents[settings_source.place_of(file)] = content = settings_source.content_of(file)
                source = settings_source.untrusted(file, content)
                if source.errors:
                    raise Invalid(source.errors[0])
                widening |= {source.where: source.left_out} if source.left_out else {}
    return ProjectSettings(contents, widening)


def _read_project(
    file: Path | MarkdownFile, environ: Mapping[str, str], trusted: TrustedDirectories, at_start: FilesAtStart
) -> SettingsSource:
    """The settings of a file of a project: all of them if the user trusts it as it is now."""
    place = settings_source.place_of(file)
    try:
        content = settings_source.content_of(file)
    except Invalid as error:
        if isinstance(file, MarkdownFile):
            return settings_source.skipped(file, str(error), "project")
        return settings_source.broken(str(place), "project", str(error).removeprefix(f"{place}: "))
    if place not in trusted:
        return settings_source.untrusted(file, content)
    if trusted.has_settings(place, content) or (trusted.are_all and at_start.has(place, content, _places(file))):
        return settings_source.strict(settings_source.trusted(file, content, environ))
    return settings_source.untrusted(file, content)._replace(is_changed=True)


def _places(file: Path | MarkdownFile) -> list[Path]:
    """A file of settings with its directories of settings, each of which could be moved there from elsewhere."""
    if isinstance(file, MarkdownFile):
        return [file.path, *file.path.parents[: len(file.steps) + 1]]
    return [file, file.parent] if file.parent.name in paths.SETTINGS_FOLDERS else [file]

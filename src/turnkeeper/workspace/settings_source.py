"""One source of settings, a file or a variable: reads and checks it, and keeps what holds if nobody trusts it."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, NamedTuple

from turnkeeper.core import settings, trust
from turnkeeper.model.config import ProjectAsks
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text import jsonc
from turnkeeper.workspace import files
from turnkeeper.workspace.agent_files import AgentFile

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


def read(file: Path, environ: Mapping[str, str]) -> SettingsSource:
    """The settings of a file of the user. Raises Invalid, which names the file."""
    return of_text(_text_of(content_of(file), file), str(file), file.parent, environ)


def read_agent(file: AgentFile) -> SettingsSource:
    """The settings of an agent file of the user."""
    try:
        return _agent_source(file, content_of(file))
    except Invalid as error:
        return SettingsSource(str(file.path), {}, problem=str(error))


def trusted(file: Path | AgentFile, content: bytes, environ: Mapping[str, str]) -> SettingsSource:
    """All settings of a file of a project, with this content."""
    if isinstance(file, AgentFile):
        return _agent_source(file, content)
    return of_text(_text_of(content, file), str(file), file.parent, environ)


def untrusted(file: Path | AgentFile, content: bytes) -> SettingsSource:
    """The settings that hold although nobody trusts the file. References are not resolved.

    An agent file is not read through a link that leads out of its directory of settings: it could send a file of the
    user to a model.
    """
    where = str(place_of(file))
    if not isinstance(file, AgentFile):
        plain = jsonc.plain(_text_of(content, file))
        return _narrowed(SettingsSource(where, checked_settings(plain, where), misspelt=_misspelt(plain, where)))
    place = file.path.parents[len(file.steps)]
    if not files.real(file.path).is_relative_to(files.real(place)):
        return SettingsSource(where, {}, problem=f"{file.path}: the link leads out of {place}")
    return _narrowed(_agent_source(file, content))


def strict(source: SettingsSource) -> SettingsSource:
    """The settings of a project that is trusted. No project may widen the sandbox of commands."""
    allowed = settings.with_strict_sandbox(source.settings)
    given, kept = source.settings.get("sandbox"), allowed.get("sandbox")
    names = [key for key in given if not isinstance(kept, dict) or key not in kept] if isinstance(given, dict) else []
    misspelt = {key for key, _ in source.misspelt}
    ignored = tuple(name for key in names if (name := f"sandbox.{key}") not in misspelt)
    return source._replace(settings=allowed, ignored=ignored)


def of_text(text: str, where: str, folder: Path, environ: Mapping[str, str]) -> SettingsSource:
    """The settings of a text. Files that it refers to are relative to ``folder``. Raises Invalid."""
    # Comments are removed first, so that references in them are not resolved.
    plain = jsonc.plain(text)
    values = {one[0]: _value(one, where, folder, environ) for one in trust.REFERENCE.finditer(plain)}
    filled = _filled(plain, values)
    checked = checked_settings(filled, where)
    literals = [one[0] for one in _STRING.finditer(plain) if trust.REFERENCE.search(one[0])]
    became = {json.loads(_filled(one, values)): json.loads(one) for one in literals}
    return SettingsSource(where, checked, bool(values), became, misspelt=_misspelt(filled, where))


def place_of(file: Path | AgentFile) -> Path:
    """Where a file is."""
    return file.path if isinstance(file, AgentFile) else file


def content_of(file: Path | AgentFile) -> bytes:
    """The content of a file. Raises Invalid, which names the file."""
    try:
        return files.read_bytes(place_of(file), FILE_BYTES_MAX)
    except OSError as error:
        raise Invalid(f"{place_of(file)}: cannot be read: {error}") from error


def path_from(name: str, folder: Path, environ: Mapping[str, str]) -> Path:
    """The path that a name stands for: from the home, or relative to a folder."""
    home = environ.get("HOME", "")
    return Path(home) / name[2:] if name.startswith("~/") and home else folder / name


def checked_settings(text: str, where: str) -> JsonObject:
    """The settings of a JSON text. Raises Invalid if one has the wrong type."""
    checked = settings.checked(parsed(text, where) if text.strip() else {}, where)
    _check_timezone(checked.get("timezone"), where)
    return checked


def parsed(text: str, where: str) -> Json:
    """The value of a JSON text with comments. Raises Invalid."""
    try:
        return jsonc.parse(text)
    except jsonc.JsoncError as error:
        raise Invalid(f"{where}: {error}") from error


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


def _text_of(content: bytes, file: Path) -> str:
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise Invalid(f"{file}: cannot be read: {error}") from error


def _misspelt(text: str, where: str) -> tuple[tuple[str, str], ...]:
    """The misspelt keys as the file has them: checking turns unknown keys of an agent into its options."""
    given = parsed(text, where) if text.strip() else None
    return settings.near_misses(given) if isinstance(given, dict) else ()


def _check_timezone(name: Json, where: str) -> None:
    from zoneinfo import ZoneInfo

    try:
        if isinstance(name, str):
            ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Invalid(f"{where}: timezone {name!r} is not known; write it like Europe/Berlin") from error


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
        return files.read_bytes(path_from(name, folder, environ), FILE_BYTES_MAX).decode("utf-8").strip()
    except (OSError, ValueError, Invalid) as error:
        raise Invalid(f"{where}: {{file:{name}}} cannot be read: {error}") from error

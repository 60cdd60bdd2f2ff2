"""One source of settings, a file or a variable: reads and checks it, and narrows an untrusted one.

Reading never fails: errors are collected in ``problems``, so that all of them can be shown.
"""

import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from datetime import date, time
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.core import settings, trust
from turnkeeper.core.setting_checks import KeyPath, Problem, dotted, unknown_keys
from turnkeeper.model.config import ProjectAsks
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.text import jsonc, marks
from turnkeeper.text.marks import Mark, Marks
from turnkeeper.text.surrogates import clean_json
from turnkeeper.workspace import files
from turnkeeper.workspace import setting_references as references
from turnkeeper.workspace.markdown_files import MarkdownFile

Layer: TypeAlias = Literal["user", "well-known", "project", "named file", "variable", "program", "plugin"]
"""The kind of a source of settings, weakest first."""

_BODIES: Final = {"agent": "prompt", "command": "template"}
"""The setting that holds the text below the front matter of a markdown file, by kind."""
_STRING: Final = re.compile(r'"(?:[^"\\\n]|\\.)*"')
_TOML_PLACE: Final = re.compile(r"(?P<reason>.*) \(at line (?P<line>\d+), column (?P<column>\d+)\)", re.DOTALL)
_TOML_COMMENT: Final = re.compile(r"(?m)^[ \t]*#.*$")
_EMPTY: Final[Mapping[str, str]] = MappingProxyType({})


class SettingsSource(NamedTuple):
    """The settings of one file or variable. ``repr`` leaves out the settings, which may hold keys."""

    where: str
    settings: JsonObject
    """The effective settings of the source."""
    layer: Layer = "user"
    written: JsonObject = MappingProxyType({})
    """All settings of the source, also those without effect while it is untrusted."""
    marks: Marks = MappingProxyType({})
    """The position of each value in the text."""
    problems: tuple[Problem, ...] = ()
    refers: bool = False
    """Whether it contains ``{env:...}`` or ``{file:...}`` references, whose targets may change."""
    filled: Mapping[str, str] = _EMPTY
    """The source text of each string with a reference, by the resolved string."""
    unset: tuple[Problem, ...] = ()
    """The references to variables that are not set. Many set only some of the keys of their providers: no warning."""
    denied: JsonObject = MappingProxyType({})
    """The deny rules of an untrusted project."""
    denied_to: Mapping[str, JsonObject] = MappingProxyType({})
    """The deny rules of an untrusted project for agents, by their names."""
    asked: ProjectAsks = ProjectAsks()
    """The ask rules of an untrusted project."""
    left_out: tuple[str, ...] = ()
    """The dotted keys without effect until the user trusts the directory of the file."""
    ignored: tuple[str, ...] = ()
    """The dotted keys that never have an effect in a file of a project."""
    is_narrowed: bool = False
    """Whether the source belongs to an untrusted project."""
    is_changed: bool = False
    """Whether the file is in a trusted directory and is new or changed since the user trusted it."""
    kind: Literal["settings", "agent", "command"] = "settings"
    """The kind of definition that a skipped file would have given."""

    def __repr__(self) -> str:
        return f"Source({self.where!r})"

    @property
    def is_own(self) -> bool:
        """Whether the source belongs to the user's configuration directory or to the program."""
        return self.layer in ("user", "program")

    def mark(self, path: KeyPath) -> Mark | None:
        """The line and column of a value; None for a source without lines."""
        agent = path[:1] == ("agent",)
        aliases = [("mode", *path[1:])] if agent else []
        if agent and path[2:3] == ("options",):
            aliases += [(*above, *path[3:]) for above in (path[:2], ("mode", path[1]))]
        exact = next((self.marks[one] for one in (path, *aliases) if one in self.marks), None)
        return exact or marks.nearest(self.marks, path)

    def place(self, path: KeyPath) -> str:
        """The position of a value in the form of editors: ``file:line:column``."""
        found = self.mark(path)
        return f"{self.where}:{found.line}:{found.column}" if found else self.where

    @property
    def apart(self) -> JsonObject:
        """The deny and ask rules of an untrusted project, which are not merged with the other settings."""
        agents = settings.merged(
            {name: {"permission": one} for name, one in given.items()} for given in (self.denied_to, self.asked.agent)
        )
        general = settings.merged([{"permission": self.denied}, {"permission": self.asked.permission}])
        return {**({"agent": agents} if agents else {}), **{key: one for key, one in general.items() if one}}

    def problems_of(self, path: KeyPath) -> list[str]:
        """The problems of a value, and of values inside it."""
        found = [one for one in self.problems if one.path[: len(path)] == path]
        return [f"{self.place(one.path)}: {one.message}" for one in found]

    @property
    def errors(self) -> list[str]:
        """The problems that make the source unusable."""
        return [f"{self.place(one.path)}: {one.message}" for one in self.problems if one.is_error]

    @property
    def warnings(self) -> list[str]:
        """Warnings about settings without effect, and other minor problems."""
        said = [f"{self.where}: {key} is ignored: a project's file may not widen the sandbox" for key in self.ignored]
        if self.is_changed:
            said.append(
                f"{self.where}: new or changed since the project was trusted; it only narrows what may happen until "
                "`turnkeeper trust`"
            )
        said += [f"{self.place(one.path)}: {one.message}" for one in self.problems if not one.is_error]
        return said


def read(file: Path, environ: Mapping[str, str], layer: Layer = "user") -> SettingsSource:
    """The settings of a file of the user."""
    try:
        content = content_of(file)
    except Invalid as error:
        return _unreadable(file, error, layer)
    return _of_content(content, file, environ, layer)


def read_markdown(file: MarkdownFile, layer: Layer = "user") -> SettingsSource:
    """The settings of a markdown file of the user."""
    try:
        return _markdown_source(file, content_of(file), layer)
    except Invalid as error:
        return skipped(file, str(error), layer)


def trusted(file: Path | MarkdownFile, content: bytes, environ: Mapping[str, str]) -> SettingsSource:
    """All settings of a file of a project, with this content."""
    if isinstance(file, MarkdownFile):
        return _markdown_source(file, content, "project")
    return _of_content(content, file, environ, "project")


def untrusted(file: Path | MarkdownFile, content: bytes) -> SettingsSource:
    """The settings that have an effect although the file is untrusted. References are not resolved.

    A markdown file is not read through a link that leads out of its directory of settings: it could send a file of the
    user to a model.
    """
    if not isinstance(file, MarkdownFile):
        return _narrowed(_of_content(content, file, None, "project"))
    place = file.path.parents[len(file.steps)]
    if not files.real(file.path).is_relative_to(files.real(place)):
        return skipped(file, f"{file.path}: the link leads out of {place}", "project")
    return _narrowed(_markdown_source(file, content, "project"))


def strict(source: SettingsSource) -> SettingsSource:
    """The settings of a project that is trusted. No project may widen the sandbox of commands."""
    allowed = settings.with_strict_sandbox(source.settings)
    given, kept = source.settings.get("sandbox"), allowed.get("sandbox")
    names = [key for key in given if not isinstance(kept, dict) or key not in kept] if isinstance(given, dict) else []
    unknown = {problem.path for problem in source.problems}
    ignored = tuple(dotted(("sandbox", key)) for key in names if ("sandbox", key) not in unknown)
    return source._replace(settings=allowed, ignored=ignored)


def of_text(
    text: str, where: str, folder: Path, environ: Mapping[str, str] | None, layer: Layer = "variable"
) -> SettingsSource:
    """The settings of a JSON text. Files that it refers to are relative to ``folder``.

    Without an environment, references stay as they are.
    """
    # Comments are removed first, so that references in them are not resolved.
    plain = jsonc.plain(text)
    values: dict[str, str] = {}
    try:
        if environ is not None:
            values = {one: _escaped(value) for one, value in references.values_of(plain, folder, environ).items()}
            references.check_filled(len(plain) + sum(len(values[one[0]]) for one in trust.REFERENCE.finditer(plain)))
        filled = references.filled(plain, values)
        given = jsonc.parse_plain(filled) if filled.strip() else {}
    except jsonc.JsoncError as error:
        fault = (str(error).removesuffix(f" at line {error.line}, column {error.column}"), error.line, error.column)
        return broken(where, layer, *fault)
    except references.BadReference as error:
        return broken(where, layer, str(error), *error.place(plain))
    except Invalid as error:
        return broken(where, layer, str(error))
    literals = [one[0] for one in _STRING.finditer(plain) if values and trust.REFERENCE.search(one[0])]
    became = {json.loads(references.filled(one, values)): json.loads(one) for one in literals}
    places = marks.of_jsonc(text)
    unset = references.unset_variables(plain, environ, places) if environ is not None else ()
    source = SettingsSource(where, {}, layer, marks=places, refers=bool(values), filled=became, unset=unset)
    found = checked(source, given)
    return found._replace(problems=(*found.problems, *_repeated(text)))


def of_toml(
    text: str, where: str, folder: Path, environ: Mapping[str, str] | None, layer: Layer = "variable"
) -> SettingsSource:
    """The settings of a TOML text, with the keys of a JSON one."""
    became: dict[str, str] = {}
    chars = len(text)

    def filled(written: str) -> str:
        if environ is None or not trust.REFERENCE.search(written):
            return written
        nonlocal chars
        values = references.values_of(written, folder, environ)
        chars += sum(len(values[one[0]]) for one in trust.REFERENCE.finditer(written))
        references.check_filled(chars)
        found = references.filled(written, values)
        became[found] = written
        return found

    try:
        given = _as_json(tomllib.loads(text.replace("\r\n", "\n")), filled)
    except tomllib.TOMLDecodeError as error:
        place = _TOML_PLACE.fullmatch(str(error))
        return (
            broken(where, layer, place["reason"], int(place["line"]), int(place["column"]))
            if place
            else broken(where, layer, str(error))
        )
    except references.BadReference as error:
        return broken(where, layer, str(error), *error.place(_TOML_COMMENT.sub("", text)))
    except Invalid as error:
        return broken(where, layer, str(error))
    except RecursionError:
        return broken(where, layer, "nested too deeply")
    except ValueError:  # Of more digits than Python reads.
        return broken(where, layer, "a number is too long")
    places = marks.of_toml(text)
    plain = _TOML_COMMENT.sub("", text) if became else ""
    unset = references.unset_variables(plain, environ, places) if environ is not None else ()
    source = SettingsSource(where, {}, layer, marks=places, refers=bool(became), filled=became, unset=unset)
    return checked(source, given)


def checked(source: SettingsSource, given: Json) -> SettingsSource:
    """A source with the settings of a value, which is checked."""
    given = clean_json(given)  # Half a character in an escape or a variable can be neither stored nor sent.
    if not isinstance(given, dict):
        return source._replace(problems=(Problem((), "expected an object of settings", is_error=True),))
    found = settings.sifted_settings(given)
    kept, problems = found.settings, found.problems
    if (fault := _timezone_fault(kept.get("timezone"))) is not None:
        kept = {key: value for key, value in kept.items() if key != "timezone"}
        problems = (*problems, Problem(("timezone",), fault))
    return source._replace(settings=kept, written=kept, problems=problems)


def place_of(file: Path | MarkdownFile) -> Path:
    """The path of a file."""
    return file.path if isinstance(file, MarkdownFile) else file


def content_of(file: Path | MarkdownFile) -> bytes:
    """The content of a file. Raises Invalid, which names the file."""
    try:
        return files.read_bytes(place_of(file), references.FILE_BYTES_MAX)
    except OSError as error:
        raise Invalid(f"{place_of(file)}: cannot be read: {error}") from error


def checked_settings(text: str, where: str) -> JsonObject:
    """The settings of a program as JSON. Raises Invalid if one has the wrong type."""
    try:
        given = settings.checked(clean_json(jsonc.parse(text)) if text.strip() else {}, where)
    except jsonc.JsoncError as error:
        raise Invalid(f"{where}: {error}") from error
    if (fault := _timezone_fault(given.get("timezone"))) is not None:
        raise Invalid(f"{where}: {fault}")
    return given


def broken(where: str, layer: Layer, message: str, line: int = 0, column: int = 0) -> SettingsSource:
    """A source that cannot be used, with the position of the fault."""
    found: Marks = {("",): Mark(line, column)} if line else {}
    return SettingsSource(where, {}, layer, marks=found, problems=(Problem(("",), message, is_error=True),))


def _of_content(content: bytes, file: Path, environ: Mapping[str, str] | None, layer: Layer) -> SettingsSource:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        return broken(str(file), layer, f"cannot be read: {error}")
    parse = of_toml if file.suffix == ".toml" else of_text
    return parse(text, str(file), file.parent, environ, layer)


def _unreadable(file: Path, error: Invalid, layer: Layer) -> SettingsSource:
    return broken(str(file), layer, str(error).removeprefix(f"{file}: "))


def _narrowed(source: SettingsSource) -> SettingsSource:
    found = trust.narrowed(source.settings)
    held = source._replace(settings=found.settings, left_out=found.left_out, is_narrowed=True)
    return held._replace(denied=found.denied, denied_to=found.denied_to, asked=found.asked)


def skipped(
    file: MarkdownFile, why: str, layer: Layer, path: KeyPath = (), marks: Marks = MappingProxyType({})
) -> SettingsSource:
    """A markdown file that is not used, because of a problem at a key of it."""
    where = str(file.path)
    problem = Problem(path, f"the {file.kind} is skipped: {why.removeprefix(f'{where}: ')}")
    return SettingsSource(where, {}, layer, marks=marks, problems=(problem,), kind=file.kind)


def _markdown_source(file: MarkdownFile, content: bytes, layer: Layer) -> SettingsSource:
    """The settings of a markdown file. A wrong file is skipped, and others are loaded."""
    where = str(file.path)
    try:
        read = clean_json(file.settings(content))
    except Invalid as error:
        return skipped(file, str(error), layer)
    assert isinstance(read, dict)
    marks = _markdown_marks(file, read, content)
    if (wrong := settings.wrong_type(read)) is not None:
        return skipped(file, wrong.message, layer, wrong.path, marks)
    given = settings.checked(read, where)
    return SettingsSource(where, given, layer, written=given, marks=marks, problems=unknown_keys(read))


def _repeated(text: str) -> Iterator[Problem]:
    """Keys that an object of a JSONC text has twice."""
    for path, first in marks.repeated(text).items():
        yield Problem(path, f"{dotted(path)} is set twice; what line {first.line} says has no effect")


def _markdown_marks(file: MarkdownFile, given: JsonObject, content: bytes) -> Marks:
    """The lines of the keys in the front matter."""
    entries = given.get(file.kind)
    name = next(iter(entries), "") if isinstance(entries, dict) else ""
    lines = content.decode("utf-8-sig", "replace").splitlines()
    end = next((number for number, line in enumerate(lines) if number and line.rstrip() == "---"), 0)
    found: dict[KeyPath, Mark] = {
        (file.kind, name): Mark(1, 1),
        (file.kind, name, _BODIES[file.kind]): Mark(min(end + 2, len(lines)), 1),
    }
    for number, line in enumerate(lines[:end], start=1):
        if key := re.match(r"[\w$-]+(?=\s*:)", line):
            found[file.kind, name, key[0]] = Mark(number, 1)
    return found


def _timezone_fault(name: Json) -> str | None:
    from zoneinfo import ZoneInfo

    try:
        if isinstance(name, str):
            ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return f"timezone {name!r} is not known; write it like Europe/Berlin"
    return None


def _as_json(value: Json, filled: Callable[[str], str]) -> Json:
    """A TOML value as JSON. Dates become text; a number that JSON cannot express is refused."""
    match value:
        case str():
            return filled(value)
        case dict():
            return {key: _as_json(one, filled) for key, one in value.items()}
        case list():
            return [_as_json(one, filled) for one in value]
        case date() | time():
            return value.isoformat()
        case float() if not math.isfinite(value):
            raise Invalid(f"{value} is no number of a setting")
        case _:
            return value


def _escaped(text: str) -> str:
    """A text as it is written inside of a JSON string."""
    return json.dumps(text, ensure_ascii=False)[1:-1]

"""The commands that show, explain, check and edit settings."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.config_checks import with_missing
from turnkeeper.cli.config_edit import schema_text
from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, remark, write
from turnkeeper.cli.plugged import plugged_directory
from turnkeeper.cli.screen import Screen, harmless
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.core.explanation import Said
    from turnkeeper.core.setting_checks import KeyPath
    from turnkeeper.workspace.config import LoadedSettings
    from turnkeeper.workspace.setting_docs import SettingDoc
    from turnkeeper.workspace.settings_source import SettingsSource

FATES = {
    "holds": "holds",
    "joined": "holds, with those of stronger files",
    "merged": "holds, but for keys that a stronger file sets",
    "overridden": "overridden by a stronger file, variable or plugin",
    "in part": "holds only in part: a file of the project can narrow this, not widen it",
    "left out": "does not hold: the project is not trusted, or a project may not set this",
}


async def show(
    *,
    origin: Annotated[bool, Parameter(help="Name the file and the line of each value.")] = False,
    options: Options,
) -> None:
    """Show the settings that hold in the working directory.

    All layers are merged. Keys, tokens and passwords are shown as ***, and what
    comes from a variable or a file as it is written. With --json the answer is
    {"settings", "sources", "warnings"}; --origin adds {"origins": [{"key",
    "value", "where", "line", "column", "overrode"}]}.

    For example:
      turnkeeper config show
      turnkeeper config show --origin
      turnkeeper config show --json | jq .settings.model
    """
    from turnkeeper.core.shown_settings import shown

    loaded = await _loaded(options)
    sources = [_source_entry(source) for source in loaded.sources]
    value: dict[str, object] = {
        "settings": shown(loaded.merged, loaded.filled),
        "sources": sources,
        "warnings": loaded.warnings,
    }
    origins = _origins(loaded) if origin else []
    if origin:
        value["origins"] = origins
    answer(options, value, lambda screen: _shown(screen, loaded, value["settings"], origins), empty="Nothing is set.")
    untrusted = (
        f"{where}: not in force until the project is trusted: {', '.join(names)} (`turnkeeper trust`)"
        for where, names in loaded.left_out.items()
    )
    remark(options, *loaded.warnings, *untrusted)


async def explain(
    key: Annotated[str, Parameter(metavar="KEY", help="A dotted key, as `compaction.auto` or `agent.build.model`.")],
    /,
    *,
    options: Options,
) -> None:
    """Say which layers set a key, in which file and line, and which one holds.

    The strongest layer that sets a key holds. Variables that switch something
    off, such as TURNKEEPER_DISABLE_AUTOCOMPACT, are the strongest, and before
    them what plugins change; null is said by one that removes a key. Settings of a
    project hold as far as they narrow what may happen, until you trust it. With
    --json the answer is {"key", "value", "meaning", "type", "default", "said":
    [{"where", "layer", "line", "column", "value", "fate", "note"}], "problems"}.

    For example:
      turnkeeper config explain model
      turnkeeper config explain provider.local.options.baseURL
    """
    from turnkeeper.core import provenance
    from turnkeeper.core.shown_settings import shown

    if not key.strip("."):
        raise UsageError("KEY is empty; name a setting, such as `model`, or see all with `turnkeeper config show`")
    loaded = await _loaded(options)
    written = [source.written for source in loaded.sources]
    path = provenance.path_of(provenance.merged(written), key)
    key = key if path is None else ".".join(path)
    doc = _documentation(key)
    if path is None:
        if doc is None:
            raise NotFound(f"there is no setting {key!r}, and no file sets it{_alike(key)}")
        path = tuple(key.split("."))
    found = provenance.at(loaded.merged, path)
    is_set = found is not provenance.MISSING
    name = path[-1] if path else ""
    value = shown(found, loaded.filled, name) if is_set else None
    entries = said_by(loaded, path)
    wrong = [line for source in loaded.sources for line in source.problems_of(path)]
    wire = {"key": key, "value": value, "said": entries, "problems": wrong, **_doc_entry(doc)}
    answer(options, wire, lambda screen: _explained(screen, key, value if is_set else None, entries, doc))
    remark(options, *wrong)


def said_by(loaded: "LoadedSettings", path: tuple[str, ...]) -> list[dict[str, object]]:
    """The values of a setting in each layer, weakest first: file, line, and whether it has effect."""
    from turnkeeper.core.explanation import explained

    sources = loaded.sources
    written, holding = [one.written for one in sources], [one.settings for one in sources]
    said = explained(written, holding, [one.apart for one in sources], path)
    return [_said_entry(sources[one.layer], path, one, loaded.filled) for one in said]


def place_of(said: dict[str, object]) -> str:
    """A place in a file, in the form that editors take."""
    where, line, column = str(said["where"]), said["line"], said["column"]
    return f"{where}:{line}:{column}" if line else where


def fate_of(said: dict[str, object]) -> str:
    """The effect of a value of a layer, and what would change it."""
    return f"{FATES[str(said['fate'])]}{'; ' if said['note'] else ''}{said['note']}"


async def check(
    file: Annotated[
        Path | None, Parameter(metavar="FILE", help="Only this file; all that hold here by default.")
    ] = None,
    /,
    *,
    options: Options,
) -> int:
    """Look for mistakes in settings: all of them, each with its file and line.

    An error makes a file unusable: it is no JSON or TOML, a permission or the
    sandbox has the wrong type, or a rule names no tool. A warning is about a
    value that is left out, or that names a model, an agent, a plugin, an MCP
    server or a variable that does not exist. The exit code is 1 if there is an
    error. With --json the answer is {"files", "problems": [{"file", "line",
    "column", "key", "message", "severity"}]}.

    For example:
      turnkeeper config check
      turnkeeper config check ~/.config/turnkeeper/turnkeeper.toml
    """
    if file is not None and not file.exists():
        raise UsageError(f"{str(file)!r} does not exist")
    sources = await _sources(options) if file is None else _file_sources(file, options)
    sources = await with_missing(sources, options)
    problems = [one for source in sources for one in _problems(source)]
    wire = {"files": [source.where for source in sources], "problems": problems}
    answer(options, wire, lambda screen: _checked(screen, sources, problems), empty="There are no settings.")
    return REFUSED if any(one["severity"] == "error" for one in problems) else OK


def schema(*, options: Options) -> None:
    """Print the JSON Schema of configuration files, for editors.

    Save it and name it under "$schema" in a file, or in the settings of your
    editor, which then completes and checks keys.

    For example:
      turnkeeper config schema > ~/.config/turnkeeper/config.schema.json
    """
    write(schema_text().encode())


async def fetch(*, options: Options) -> None:
    """Fetch the settings that hosts publish where you are logged in.

    A host where you logged in with `auth login URL` publishes settings at
    /.well-known/opencode. They are stronger than your own files and weaker than
    those of a project. Nothing is fetched but by that command and this one. With
    --json the answer is {"items": [{"address", "keys"}]}.

    For example:
      turnkeeper config fetch
      turnkeeper config fetch --json
    """
    from turnkeeper.providers.published import fetch_published

    found = await fetch_published(options.environ)
    hosts = [{"address": address, "keys": sorted(config)} for address, config in found.items()]
    lines = [f"{harmless(address)}: {', '.join(map(harmless, sorted(config)))}" for address, config in found.items()]
    empty = "You are logged in to no host that publishes settings; `turnkeeper auth login URL` logs in."
    answer_items(options, hosts, lambda screen: "\n".join(lines), empty=empty)


# --- What is shown -------------------------------------------------------------------------------------------


def _shown(screen: Screen, loaded: "LoadedSettings", settings: object, origins: Sequence[dict[str, object]]) -> str:
    if not loaded.merged:
        return ""
    if not origins:
        return harmless(json.dumps(settings, indent=2, ensure_ascii=False))
    lines = []
    for one in origins:
        place = screen.paint(f"  # {harmless(place_of(one))}", "dim")
        lines.append(f"{harmless(str(one['key']))} = {_text(one['value'])}{place}")
    return "\n".join(lines)


def _explained(
    screen: Screen, key: str, value: object, said: Sequence[dict[str, object]], doc: "SettingDoc | None"
) -> str:
    lines = [f"{screen.paint(harmless(key), 'bold')} = {_text(value)}" if said else f"{harmless(key)} is not set"]
    if doc is not None:
        from turnkeeper.workspace.setting_docs import plain

        lines.append(screen.paint(f"  {plain(doc.doc)} Type: {doc.type}.", "dim"))
    if said:
        lines.append("Said by, strongest first:")
    for one in reversed(said):
        lines.append(f"  {harmless(place_of(one))} ({one['layer']}): {_text(one['value'])}")
        lines.append(f"    {fate_of(one)}")
    return "\n".join(lines)


def _checked(screen: Screen, sources: "Sequence[SettingsSource]", problems: Sequence[dict[str, object]]) -> str:
    lines = [
        f"{harmless(place_of({**one, 'where': one['file']}))}: "
        f"{screen.paint(str(one['severity']), 'red' if one['severity'] == 'error' else 'yellow')}: "
        f"{harmless(str(one['message']))}"
        for one in problems
    ]
    if sources and not problems:
        lines.append(f"No mistakes in {len(sources)} {'file' if len(sources) == 1 else 'files and variables'}.")
    return "\n".join(lines)


def _text(value: object) -> str:
    return harmless(json.dumps(value, ensure_ascii=False))


# --- What is found -------------------------------------------------------------------------------------------


async def _sources(options: Options) -> "tuple[SettingsSource, ...]":
    from turnkeeper.workspace import config
    from turnkeeper.workspace.project import identify

    place = await identify(Path.cwd())
    return config.sources(place.directory, place.worktree, options.environ)


async def _loaded(options: Options) -> "LoadedSettings":
    from turnkeeper.workspace.config import with_flags

    async with plugged_directory(options.environ) as here:
        return with_flags(here.changed, options.environ)


def _file_sources(file: Path, options: Options) -> "tuple[SettingsSource, ...]":
    from turnkeeper.workspace import config

    return config.checked_file(file.absolute(), Path.cwd(), options.environ)


def _source_entry(source: "SettingsSource") -> dict[str, object]:
    return {"where": source.where, "layer": source.layer, "leftOut": source.left_out, "changed": source.is_changed}


def _origins(loaded: "LoadedSettings") -> list[dict[str, object]]:
    from turnkeeper.core import provenance
    from turnkeeper.core.setting_checks import dotted
    from turnkeeper.core.shown_settings import shown

    found = []
    for one in provenance.origins([source.settings for source in loaded.sources], loaded.merged):
        path: KeyPath = one.path if one.entry is None else (*one.path, one.entry)
        overrode = [loaded.sources[layer].place(one.path) for layer in one.overrode]
        name = next((step for step in reversed(one.path) if step in ("headers", "environment")), one.path[-1])
        inner = {one.path[-1]: one.value} if name != one.path[-1] else one.value
        value = shown(inner, loaded.filled, name)
        if isinstance(value, dict) and inner is not one.value:
            value = value[one.path[-1]]
        found.append(
            {
                "key": dotted(path),
                "value": value,
                "where": loaded.sources[one.layer].where,
                **_position(loaded.sources[one.layer], one.path),
                "overrode": overrode,
            }
        )
    return found


def _said_entry(
    source: "SettingsSource", path: tuple[str, ...], said: "Said", filled: "dict[str, str]"
) -> dict[str, object]:
    from turnkeeper.core.shown_settings import shown

    is_narrowed = said.fate in ("left out", "in part")
    note = ""
    if is_narrowed and path[0] != "sandbox":
        changed = "the file is new or changed since the project was trusted; " if source.is_changed else ""
        note = f"{changed}`turnkeeper trust` trusts it as it is now"
    return {
        "where": source.where,
        "layer": source.layer,
        **_position(source, path),
        "value": shown(said.value, filled, path[-1]),
        "fate": said.fate,
        "note": note,
    }


def _position(source: "SettingsSource", path: "KeyPath") -> dict[str, int | None]:
    """The line and the column of a setting; none if it is not from a file."""
    place = source.mark(path)
    return {"line": place.line if place else None, "column": place.column if place else None}


def _problems(source: "SettingsSource") -> "list[dict[str, object]]":
    from turnkeeper.core.setting_checks import dotted

    found: list[dict[str, object]] = []
    for one in source.problems:
        found.append(
            {
                "file": source.where,
                **_position(source, one.path),
                "key": dotted(one.path),
                "message": one.message,
                "severity": "error" if one.is_error else "warning",
            }
        )
    return found


def _documentation(key: str) -> "SettingDoc | None":
    """The documentation of a key, in which names of the user's own stand for ``*``.

    A key below a setting that has keys of any name, such as ``permission.bash``, has that of the setting.
    """
    from turnkeeper.workspace.setting_docs import setting_docs

    found = [doc for doc in setting_docs() if _is_at(doc.key.split("."), key.split("."))]
    exact = [doc for doc in found if doc.key.count(".") == key.count(".")]
    return next(iter([*exact, *(doc for doc in found if doc.type.startswith("an action"))]), None)


def _is_at(pattern: list[str], steps: list[str]) -> bool:
    """Whether a documented key is that of these steps, or one above it."""
    return len(pattern) <= len(steps) and all(a in ("*", b) for a, b in zip(pattern, steps, strict=False))


def _doc_entry(doc: "SettingDoc | None") -> dict[str, object]:
    if doc is None:
        return {"meaning": None, "type": None, "default": None}
    return {"meaning": doc.doc.meaning, "type": doc.type, "default": doc.doc.default or None}


def _alike(key: str) -> str:
    from difflib import get_close_matches

    from turnkeeper.workspace.setting_docs import setting_docs

    near = get_close_matches(key, [doc.key for doc in setting_docs()], n=1)
    return f"; did you mean {near[0]!r}?" if near else ""

"""The commands about agents: which there are, where each comes from, and a new one in a file."""

import math
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import candidates
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, confirm, remark
from turnkeeper.cli.plugged import plugged_directory
from turnkeeper.cli.screen import Column, Screen, fields, harmless, one_line, rows_of, table
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.model.value import JsonObject
    from turnkeeper.server.catalogue import AgentEntry
    from turnkeeper.workspace.config import LoadedSettings

BUILT_IN: Final = "built-in"
PLUGIN: Final = "plugin"
NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}")

AgentName = Annotated[str, Parameter(metavar="NAME", help="The name of the agent.")]


async def list_agents(
    *,
    all_: Annotated[bool, Parameter(name="--all", help="Also those that only the program uses.")] = False,
    options: Options,
) -> None:
    """List the agents of the working directory, and where each comes from.

    Agents are built in, or come from configuration files and from markdown files in
    `agent` folders. Later ones of the files of an agent override earlier ones. The
    default agent stands first. `run --agent NAME` uses one; a subagent is called by
    others.

    With --json the answer is {"items": [{"name", "mode", "hidden", "description",
    "model", "from"}], "default", "problems"}, with hidden agents; "problems" are
    the files that were skipped.

    For example:
      turnkeeper agent list
      turnkeeper agent list --json | jq -r '.items[].name'
    """
    found = await _known(options.environ)
    shown = [one for one in found.entries if all_ or options.json or not one.hidden]
    rows = [found.row(one) for one in shown]
    answer_items(
        options, rows, lambda screen: found.table(screen, shown), default=found.default, problems=found.problems
    )
    remark(options, *map(harmless, found.problems))


async def show(name: AgentName, /, *, options: Options) -> None:
    """Show an agent: its settings, the files they come from, its rules and its prompt.

    Of several rules that fit a call the last one decides. What a variable or a file
    was filled in for is shown as it is written. With --json the answer is the
    agent as clients are sent it, with "from".

    For example:
      turnkeeper agent show plan
    """
    found = await _known(options.environ)
    entry = next((one for one in found.entries if one.name == name), None)
    if entry is None:
        shown = ", ".join(one.name for one in found.entries if not one.hidden)
        raise NotFound(f"there is no agent {name!r}; the agents are: {shown}")
    answer(options, found.whole(entry), lambda screen: _described(screen, entry, found.sources(name)))


async def create(
    name: AgentName,
    /,
    *,
    description: Annotated[str | None, Parameter(help="What it is for; other agents read it, too.")] = None,
    prompt: Annotated[str | None, Parameter(help="Who the model is, in place of the usual prompt.")] = None,
    mode: Annotated[
        Literal["primary", "subagent", "all"] | None, Parameter(help="Whether it answers you, other agents, or both.")
    ] = None,
    model: Annotated[
        str | None, Parameter(metavar="PROVIDER/MODEL", help="Its model.", completer=candidates.models)
    ] = None,
    variant: Annotated[str | None, Parameter(help="The variant of its model.")] = None,
    temperature: Annotated[float | None, Parameter(help="The temperature of its requests.")] = None,
    steps: Annotated[int | None, Parameter(help="How many turns it may take for a prompt.")] = None,
    color: Annotated[str | None, Parameter(metavar="COLOR", help="#RRGGBB, or a colour of the theme.")] = None,
    deny: Annotated[
        tuple[str, ...], Parameter(metavar="PERMISSION", negative=(), help="A permission it does not have; repeatable.")
    ] = (),
    user: Annotated[bool, Parameter(help="For all projects of yours, not only this one.")] = False,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Overwrite a file without asking.")] = False,
    options: Options,
) -> None:
    """Write a markdown file with a new agent.

    The file is .turnkeeper/agents/NAME.md at the top of the project, or with --user
    in your configuration directory. Edit it for more: its front matter takes the
    settings of an agent, and the text below is its prompt. A name may have slashes.

    With --json the answer is {"name", "file", "leftOut"}; "leftOut" are settings
    that hold once you trust the project.

    For example:
      turnkeeper agent create review --mode subagent --deny edit \\
        --description "Reviews a change" --prompt "You review code."
      turnkeeper run --agent review "review the last commit"
    """
    if temperature is not None and not math.isfinite(temperature):
        raise UsageError("--temperature takes a number such as 0.7; NaN and infinity cannot be stored")
    given = {
        "description": description,
        "mode": mode,
        "model": model,
        "variant": variant,
        "temperature": temperature,
        "steps": steps,
        "color": color,
        "permission": dict.fromkeys(deny, "deny") or None,
    }
    values = {key: value for key, value in given.items() if value is not None}
    await _check(options, name, values)
    await _write(options, name, values, prompt or "", is_user=user, is_sure=yes)


async def _write(
    options: Options, name: str, values: "JsonObject", prompt: str, *, is_user: bool, is_sure: bool
) -> None:
    """Write the file of an agent. Raises Forbidden if it exists and may not be overwritten."""
    from turnkeeper.text import frontmatter
    from turnkeeper.workspace import files, paths
    from turnkeeper.workspace.config import load
    from turnkeeper.workspace.project import identify

    place = await identify(Path.cwd())
    folder = paths.config(options.environ) if is_user else place.top / ".turnkeeper"
    file = folder / "agents" / f"{name}.md"
    if file.exists() and not is_sure:
        confirm(
            f"{file} exists. Overwrite it?",
            no_terminal=f"{file} exists, and there is no terminal to ask on; add --yes to overwrite it",
            refused="nothing was written",
        )
    before = file.read_bytes() if file.exists() else None
    files.write_whole(file, frontmatter.write(values, prompt).encode())
    try:
        left_out = load(place.directory, place.worktree, options.environ).left_out.get(str(file), ())
    except Invalid as error:
        _put_back(file, before)
        raise UsageError(f"nothing was written: {error}") from error
    value = {"name": name, "file": str(file), "leftOut": left_out}
    answer(options, value, lambda screen: f"Wrote {screen.path(str(file))}")
    if left_out:
        held = ", ".join(left_out)
        remark(options, f"Until you trust the project, these settings do not hold: {held} (`turnkeeper trust`)")


def _put_back(file: Path, before: bytes | None) -> None:
    """Undo a write of a file that makes the settings unusable."""
    from turnkeeper.workspace import files

    if before is None:
        file.unlink()
    else:
        files.write_whole(file, before)


async def _check(options: Options, name: str, values: "JsonObject") -> None:
    """Raise UsageError for a name or a setting that no agent can have, and for a model that there is not."""
    from turnkeeper.cli.models import local_catalog
    from turnkeeper.core import settings
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.providers import choice

    if NAME.fullmatch(name) is None:
        raise UsageError(f"{name!r} cannot name an agent; use letters, digits, '-' and '_', with '/' for folders")
    try:
        settings.checked({"agent": {name: values}}, "the new agent")
        if (model := values.get("model")) is not None:
            provider_id, _, model_id = str(model).partition("/")
            _, catalog = await local_catalog(options.environ)
            choice.find(catalog, ModelChoice(provider_id=provider_id, model_id=model_id))
    except Invalid as error:
        raise UsageError(str(error)) from error
    except NotFound as error:
        raise UsageError(f"{error} (`turnkeeper models PROVIDER` lists the models of a provider)") from error


class _Known(NamedTuple):
    """The agents of a directory, as they are shown."""

    default: str
    entries: "list[AgentEntry]"
    loaded: "LoadedSettings"
    native: frozenset[str]
    problems: list[str]

    def sources(self, name: str) -> list[str]:
        """The sources of an agent, weakest first."""
        return [*([BUILT_IN] if name in self.native else []), *self.loaded.setters("agent", name)] or [PLUGIN]

    def row(self, entry: "AgentEntry") -> dict[str, object]:
        """An agent of the list, as JSON."""
        return {
            "name": entry.name,
            "mode": entry.mode,
            "hidden": bool(entry.hidden),
            "description": entry.description,
            "model": _model(entry) or None,
            "from": self.sources(entry.name),
        }

    def whole(self, entry: "AgentEntry") -> dict[str, object]:
        """One agent as JSON."""
        import msgspec

        from turnkeeper.model.value import encode

        # Encoded as JSON, because only the encoder leaves out unset fields.
        return {**msgspec.json.decode(encode(entry), type=dict[str, object]), "from": self.sources(entry.name)}

    def table(self, screen: Screen, entries: "list[AgentEntry]") -> str:
        """The list as a table."""
        return table(
            screen,
            Column("AGENT", [harmless(one.name) for one in entries], ("cyan",)),
            Column("", ["default" if one.name == self.default else "" for one in entries], ("green",)),
            Column("MODE", [one.mode for one in entries]),
            Column("MODEL", [harmless(_model(one)) for one in entries]),
            Column("FROM", [self._from(screen, one.name) for one in entries], ("dim",), least=12, keep_end=True),
            Column("DESCRIPTION", [one_line(one.description or "") for one in entries], least=16, is_optional=True),
        )

    def _from(self, screen: Screen, name: str) -> str:
        return screen.path(self.sources(name)[-1])


async def _known(environ: Mapping[str, str]) -> _Known:
    from turnkeeper.core.agents import default_agent, default_agent_problem, listed
    from turnkeeper.run.configured import configured_agents
    from turnkeeper.server.catalogue import agent_entry, masked
    from turnkeeper.server.mask import Mask

    async with plugged_directory(environ) as here:
        loaded, config = here.loaded, here.config
    agents = configured_agents(config, environ)
    default, mask = default_agent(agents, config).name, Mask(loaded.filled)
    problem = default_agent_problem(agents, config)
    problems = [warning for source in loaded.sources if source.kind == "agent" for warning in source.warnings]
    return _Known(
        default=default,
        entries=[masked(agent_entry(one), mask) for one in listed(agents, default)],
        loaded=loaded,
        native=frozenset(name for name, agent in agents.items() if agent.native),
        problems=[*problems, *([problem] if problem is not None else [])],
    )


def _described(screen: Screen, entry: "AgentEntry", sources: list[str]) -> str:
    head = fields(
        screen,
        [
            ("Agent", screen.paint(harmless(entry.name), "bold")),
            ("For", one_line(entry.description or "")),
            ("Mode", f"{entry.mode}, hidden" if entry.hidden else entry.mode),
            ("Model", harmless(_model(entry))),
            ("Temperature", _number(entry.temperature)),
            ("Top p", _number(entry.top_p)),
            ("Steps", _number(entry.steps)),
            ("Colour", harmless(entry.color or "")),
            ("Options", one_line(str(entry.options)) if entry.options else ""),
            *rows_of("From", map(screen.path, sources)),
        ],
    )
    rules = table(
        screen,
        Column("PERMISSION", [harmless(rule.permission) for rule in entry.permission], ("cyan",)),
        Column("PATTERN", [harmless(rule.pattern) for rule in entry.permission], least=12),
        Column("ACTION", [rule.action for rule in entry.permission]),
    )
    prompt = "\n".join(map(harmless, (entry.prompt or "").splitlines()))
    return "\n\n".join(part for part in (head, rules, prompt) if part)


def _number(value: float | None) -> str:
    return f"{value:g}" if value is not None else ""


def _model(entry: "AgentEntry") -> str:
    if entry.model is None:
        return ""
    variant = f" ({entry.variant})" if entry.variant else ""
    return f"{entry.model.provider_id}/{entry.model.model_id}{variant}"

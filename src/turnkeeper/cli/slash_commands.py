"""The commands about slash commands: which there are, where each comes from, and what it says."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, note
from turnkeeper.cli.plugged import plugged_directory
from turnkeeper.cli.screen import Column, Screen, fields, harmless, one_line, table

if TYPE_CHECKING:
    from turnkeeper.model.command import Command


async def list_commands(*, options: Options) -> None:
    """List the commands of the working directory, and where each comes from.

    `run "/NAME ARGUMENTS"` sends one. Commands are built in, or come from
    configuration files and from markdown files in `command` folders; the last
    definition of a name counts. The prompts of MCP servers are commands, too; the
    servers are started to be asked for them. Those of a project that you have not
    trusted are left out.

    With --json the answer is {"items": [{"name", "kind", "description", "from",
    "agent", "model", "variant", "subtask", "hints"}], "problems"}; "problems" are
    the files that were skipped or not trusted. The kind is prompt or action.

    For example:
      turnkeeper command list
      turnkeeper run "/review the last commit"
    """
    known, problems = await _known(options)
    answer_items(options, [_row(one) for one in known], lambda screen: _table(screen, known), problems=problems)
    if not options.json:
        for problem in problems:
            note(harmless(problem))


async def show(
    name: Annotated[str, Parameter(metavar="NAME", help="The name of the command, with or without its slash.")],
    /,
    *,
    options: Options,
) -> None:
    """Show a command: its settings, the file it comes from and its template.

    What a variable or a file was filled in for is shown as it is written. With
    --json the answer is that of `command list`, with "template".

    For example:
      turnkeeper command show review
    """
    from turnkeeper.core.commands import find

    known, _ = await _known(options)
    command = find({one.name: one for one in known}, name.removeprefix("/"))
    answer(options, {**_row(command), "template": command.template}, lambda screen: _described(screen, command))


def show_commands(options: Options, known: "Sequence[Command]") -> None:
    """Show a list of commands, as `/help` does."""
    answer_items(options, [_row(one) for one in known], lambda screen: _table(screen, known))


async def _known(options: Options) -> "tuple[list[Command], list[str]]":
    """The commands of the working directory without secrets, and what is wrong with files of commands."""
    from turnkeeper.cli.mcp import tried_servers
    from turnkeeper.run.commands import CommandPlaces, known_commands
    from turnkeeper.run.mcp_places import served_commands
    from turnkeeper.server.catalogue import masked_command
    from turnkeeper.server.mask import Mask
    from turnkeeper.workspace.skills import SkillLibrary

    async with plugged_directory(options.environ) as here:
        place, loaded, config, plugged = here.place, here.loaded, here.config, here.commands
    mask = Mask(loaded.filled)
    problems = [warning for source in loaded.sources if source.kind == "command" for warning in source.warnings]
    for where, names in loaded.left_out.items():
        if held := [name for name in names if name.startswith("command.")]:
            problems.append(f"{where}: not in force until `turnkeeper trust`: {', '.join(held)}")
    found = await SkillLibrary(options.environ).skills(place, config, loaded.directories)
    served: list[Command] = []
    if loaded.config.mcp:
        async with tried_servers(options) as servers:
            served = served_commands(servers)
    known = known_commands(CommandPlaces(loaded, found.skills, plugged, served))
    return [masked_command(one, mask) for one in known.values()], problems


def _row(command: "Command") -> dict[str, object]:
    return {
        "name": command.name,
        "kind": command.kind,
        "description": command.description,
        "from": command.where,
        "agent": command.agent,
        "model": command.model,
        "variant": command.variant,
        "subtask": bool(command.subtask),
        "hints": command.hints,
    }


def _table(screen: Screen, known: "Sequence[Command]") -> str:
    return table(
        screen,
        Column("COMMAND", [harmless(f"/{one.name}") for one in known], ("cyan",)),
        Column("ARGUMENTS", [" ".join(one.hints) for one in known], ("dim",), is_optional=True),
        Column("FROM", [screen.path(harmless(one.where)) for one in known], ("dim",), least=12, keep_end=True),
        Column("DESCRIPTION", [one_line(one.description or "") for one in known], least=16),
    )


def _described(screen: Screen, command: "Command") -> str:
    head = fields(
        screen,
        [
            ("Command", screen.paint(harmless(f"/{command.name}"), "bold")),
            ("For", one_line(command.description or "")),
            ("Kind", command.kind),
            ("Agent", harmless(command.agent or "")),
            ("Model", harmless(command.model or "")),
            ("Variant", harmless(command.variant or "")),
            ("Subtask", "yes" if command.subtask else ""),
            ("Arguments", " ".join(command.hints)),
            ("From", screen.path(harmless(command.where))),
        ],
    )
    template = "\n".join(map(harmless, command.template.splitlines()))
    return "\n\n".join(part for part in (head, template) if part)

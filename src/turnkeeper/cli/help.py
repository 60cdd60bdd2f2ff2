"""Help pages, written from the commands themselves. Our own, because loading rich costs more than the page."""

import inspect
import shutil
import textwrap
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from turnkeeper.cli.commands import PROGRAM, ROOT, Command

if TYPE_CHECKING:
    from cyclopts import App
    from cyclopts.argument import Argument

WIDTH_MAX: Final = 100
EVERYWHERE: Final = ("--store", "--data", "--server", "--json")

_ROOT_TAIL: Final = """\
Examples:
  turnkeeper session create --title "Wind over the bay"
  turnkeeper session list --all
  turnkeeper import opencode

Where an ID is expected, the beginning of one or a session's slug will do. `turnkeeper COMMAND --help` says more
about a command; `turnkeeper --version` prints the version. `tk` is short for `turnkeeper`.
"""


def columns() -> int:
    """How wide a page may be."""
    return min(shutil.get_terminal_size().columns, WIDTH_MAX)


def page(apps: "Sequence[App]", chain: Sequence[str], width: int = WIDTH_MAX) -> str:
    """The page of a command or of a group of commands."""
    command = _command(chain)
    words = " ".join([PROGRAM, *chain])
    function = apps[-1].default_command
    blocks: list[str] = []
    if function is None:
        blocks += [_filled(command.summary, width), f"Usage: {words} COMMAND ..."]
    else:
        text, examples = _documentation(function)
        arguments = [one for one in apps[-1].assemble_argument_collection(parse_docstring=False) if one.show]
        blocks += [_filled(text, width), f"Usage: {words}{_usage(arguments)}"]
        blocks += _arguments(arguments, width)
    if command.commands:
        listed = [(one.name, one.summary) for one in command.commands]
        blocks.insert(2, _section("Commands", listed, width))
    if function is not None and examples:
        blocks.append(f"Examples:\n{examples}")
    if not chain:
        blocks.append(_everywhere(width))
        blocks.append(_ROOT_TAIL.rstrip())
    elif function is None:
        blocks.append(f"`{words} COMMAND --help` says more about a command.")
    return "\n\n".join(blocks) + "\n"


def leaves(group: Command = ROOT, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """Every command that can be run, with the words it is called by."""
    for command in group.commands:
        if command.target:
            yield (*path, command.name), command
        yield from leaves(command, (*path, command.name))


def _command(chain: Sequence[str]) -> Command:
    found = ROOT
    for name in chain:
        found = next(one for one in found.commands if one.name == name)
    return found


def _documentation(function: object) -> tuple[str, str]:
    text = inspect.getdoc(function) or ""
    said, _, examples = text.partition("\nExamples:\n")
    return said.strip(), examples.rstrip()


def _usage(arguments: "Sequence[Argument]") -> str:
    words = []
    for one in arguments:
        if _is_positional(one):
            name = _label(one) + ("..." if one.is_var_positional() else "")
            words.append(name if one.required else f"[{name}]")
    return "".join(f" {word}" for word in [*words, "[OPTIONS]"])


def _arguments(arguments: "Sequence[Argument]", width: int) -> list[str]:
    positional = [(_label(one), one.parameter.help or "") for one in arguments if _is_positional(one)]
    named = [one for one in arguments if not _is_positional(one)]
    own = [(_label(one), _about(one)) for one in named if one.names[0] not in EVERYWHERE]
    shared = [(_label(one), _about(one)) for one in named if one.names[0] in EVERYWHERE]
    sections = {"Arguments": positional, "Options": own, "Options of every command": shared}
    return [_section(title, rows, width) for title, rows in sections.items() if rows]


def _everywhere(width: int) -> str:
    from turnkeeper.cli.commands import build

    arguments = build()["db"]["path"].assemble_argument_collection(parse_docstring=False)
    return "\n\n".join(_arguments([one for one in arguments if one.show], width))


def _is_positional(argument: "Argument") -> bool:
    return argument.index is not None


def _label(argument: "Argument") -> str:
    metavar = argument.parameter.metavar or ""
    if _is_positional(argument):
        return metavar
    # The short form first, as everywhere.
    names = ", ".join(sorted(argument.names, key=len))
    return f"{names} {metavar}".rstrip()


def _about(argument: "Argument") -> str:
    default = argument.field_info.default
    said = argument.parameter.help or ""
    if isinstance(default, int | str) and not isinstance(default, bool):
        return f"{said} Default: {default}."
    return said


def _section(title: str, rows: Sequence[tuple[str, str]], width: int) -> str:
    indent = max(len(name) for name, _ in rows) + 4
    lines = [
        textwrap.fill(text, width, initial_indent=f"  {name}".ljust(indent), subsequent_indent=" " * indent)
        for name, text in rows
    ]
    return "\n".join([f"{title}:", *lines])


def _filled(text: str, width: int) -> str:
    return "\n\n".join(textwrap.fill(" ".join(one.split()), width) for one in text.split("\n\n"))

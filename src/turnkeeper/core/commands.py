"""Commands: the built-in actions, the parsing of ``/name arguments``, and the expansion of templates to prompts."""

import re
from collections.abc import Collection, Mapping, Sequence
from difflib import get_close_matches
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.model.agent import Agent
from turnkeeper.model.command import Command
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import JsonObject

ARGUMENTS: Final = "$ARGUMENTS"
NAMES_SHOWN_MAX: Final = 12

_PLACE: Final = re.compile(r"\$(ARGUMENTS|[1-9]\d{0,5})")
_WORD: Final = re.compile(r"\[image \d+\]|\"[^\"]*\"|'[^']*'|[^\s\"']+", re.IGNORECASE)
_SHELL: Final = re.compile(r"!`([^`]+)`")
_NAME: Final = re.compile(r"\w[\w-]*")
_ALIKE: Final = 0.8
"""The similarity from which a word with slashes counts as a misspelt command. Paths stay prompts."""

ACTIONS: Final = {
    action.name: action
    for action in (
        Command(name="help", kind="action", description="List the commands."),
        Command(name="compact", kind="action", description="Replace older history by a summary."),
        Command(name="undo", kind="action", description="Take back the last prompt and the changes after it."),
        Command(name="redo", kind="action", description="Bring back what was undone."),
        Command(name="share", kind="action", description="Publish the session under a link."),
        Command(name="unshare", kind="action", description="Withdraw the link to the session."),
        Command(name="export", kind="action", description="Write the session to a file.", hints=("$1",)),
    )
}
"""The built-in commands that are no prompts, by name."""


class Called(NamedTuple):
    """A text that is a command: its name, and the text behind it."""

    name: str
    arguments: str


class ShellPiece(NamedTuple):
    """A shell command in a template, whose output stands in its place."""

    command: str
    is_literal: bool
    """Whether it is as the template has it: no argument is in it."""


Piece: TypeAlias = str | ShellPiece


def called(text: str, known: Collection[str], left_out: Collection[str] = ()) -> Called | None:
    """The command that a text is; None if it is a plain prompt. Raises NotFound for an unknown command.

    The first word decides. A path is no command: it has a second slash, a dot or other signs, unless a command has
    this name, or it is in a folder of commands or looks like one of those there. ``left_out`` are commands that are not
    trusted: they are refused, and not taken for paths. A space before the slash makes any text a plain prompt.
    """
    if not text.startswith("/") or not text[1:2].strip():
        return None
    word, *rest = text[1:].split(maxsplit=1)
    if word in known:
        return Called(word, rest[0].strip() if rest else "")
    if word in left_out:
        raise NotFound(f"there is no command {word!r} until `turnkeeper trust` trusts this project")
    if _NAME.fullmatch(word) or _is_in_folder(word, {*known, *left_out}):
        raise unknown(known, word)
    return None


def _is_in_folder(word: str, names: Collection[str]) -> bool:
    """Whether a word with slashes is meant as a command in a folder, and not as a path."""
    steps = word.split("/")
    nested = [name for name in names if "/" in name]
    if not nested or not all(_NAME.fullmatch(step) for step in steps):
        return False
    is_there = steps[0] in {name.partition("/")[0] for name in nested}
    return is_there or bool(get_close_matches(word, nested, n=1, cutoff=_ALIKE))


def find(commands: Mapping[str, Command], name: str) -> Command:
    """The command of this name. Raises NotFound, which has the nearest names."""
    if name not in commands:
        raise unknown(commands, name)
    return commands[name]


def unknown(known: Collection[str], name: str) -> NotFound:
    """The refusal of an unknown name, with the names that look like it, or else those there are."""
    near = get_close_matches(name, known, n=3, cutoff=0.5)
    if near:
        return NotFound(f"there is no command {name!r}; the nearest are: {', '.join(near)}")
    shown = sorted(known)[:NAMES_SHOWN_MAX]
    more = f" and {len(known) - len(shown)} more" if len(known) > len(shown) else ""
    return NotFound(f"there is no command {name!r}; known are: {', '.join(shown) or 'none'}{more}")


def is_subtask(command: Command, agent: Agent) -> bool:
    """Whether a Child Session runs a command: it says so, or its agent is a subagent and it does not say otherwise."""
    return bool(command.subtask) or (agent.mode == "subagent" and command.subtask is not False)


def of_file(steps: Sequence[str], values: JsonObject, body: str) -> JsonObject:
    """The settings of a markdown file: ``steps`` lead from its folder to it, without the ending."""
    return {"command": {"/".join(steps): {**values, "template": body}}}


def expansion(command: Command, arguments: str) -> tuple[Piece, ...]:
    """The prompt of a command with these arguments. A skill is no template: nothing in it is replaced or run."""
    assert command.source != "mcp", "the server expands it"
    if command.source == "skill":
        return (command.template, *([f"\n\n{arguments}"] if arguments.strip() else []))
    return pieces(command.template, arguments)


def pieces(template: str, arguments: str) -> tuple[Piece, ...]:
    """The template with the arguments inserted, as texts and shell commands.

    ``$1`` and so on are words of the arguments; the highest number takes all remaining words. ``$ARGUMENTS`` is the
    whole text of the arguments. A template without placeholders gets the arguments as a paragraph at its end. What is
    a shell command is decided by the template alone, and nothing in the arguments is replaced again.
    """
    places = _PLACE.findall(template)
    highest = max((int(one) for one in places if one.isdigit()), default=0)
    words = [_unquoted(word) for word in _WORD.findall(arguments)]

    def filled(text: str) -> str:
        return _PLACE.sub(lambda found: _value(found[1], arguments, words, highest), text)

    found: list[Piece] = []
    for number, piece in enumerate(_SHELL.split(template)):
        if number % 2:
            found.append(ShellPiece(filled(piece), is_literal=_PLACE.search(piece) is None))
        elif piece:
            found.append(filled(piece))
    if not places and arguments.strip():
        found.append(f"\n\n{arguments}")
    return tuple(found)


def argument_words(arguments: str, count: int) -> tuple[str, ...]:
    """The words of the arguments for so many places: the last takes all remaining words, and missing ones are empty."""
    words = [_unquoted(word) for word in _WORD.findall(arguments)]
    return tuple(_value(str(number), arguments, words, count) for number in range(1, count + 1))


def joined(found: Sequence[Piece], outputs: Sequence[str], input: str = "") -> str:
    """The text of a prompt: the pieces with the outputs in the places of their commands, then the further text."""
    left = iter(outputs)
    text = "".join(next(left) if isinstance(piece, ShellPiece) else piece for piece in found).strip()
    return "\n\n".join(part for part in (text, input) if part.strip())


def said(command: Command, found: Sequence[Piece], arguments: str) -> str:
    """The text whose mentions count: the template with the arguments, without outputs; of a skill, the arguments."""
    if command.source == "skill":
        return arguments
    return "\n".join(piece for piece in found if isinstance(piece, str))


def hints(template: str) -> tuple[str, ...]:
    """The placeholders of a template, which clients show while the user types a command."""
    found = set(_PLACE.findall(template))
    numbers = sorted(int(one) for one in found if one.isdigit())
    return (*(f"${number}" for number in numbers), *([ARGUMENTS] if "ARGUMENTS" in found else []))


def _value(place: str, arguments: str, words: Sequence[str], highest: int) -> str:
    if not place.isdigit():
        return arguments
    number = int(place)
    return " ".join(words[number - 1 :]) if number == highest else "".join(words[number - 1 : number])


def _unquoted(word: str) -> str:
    return re.sub(r"\A[\"']|[\"']\Z", "", word)

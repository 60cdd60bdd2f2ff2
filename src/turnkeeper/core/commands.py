"""Command templates of the configuration: the prompt that ``/name arguments`` expands to."""

import re
from collections.abc import Mapping
from typing import Final

from turnkeeper.model.agent import Agent
from turnkeeper.model.config import CommandConfig
from turnkeeper.model.refusal import Invalid, NotFound

_PLACE: Final = re.compile(r"\$(\d+)")
_WORD: Final = re.compile(r"\[image \d+\]|\"[^\"]*\"|'[^']*'|[^\s\"']+", re.IGNORECASE)
_SHELL: Final = re.compile(r"!`[^`]+`")
ARGUMENTS: Final = "$ARGUMENTS"


def find(commands: Mapping[str, CommandConfig], name: str) -> CommandConfig:
    """The command of this name. Raises NotFound, which lists the known commands."""
    if name not in commands:
        known = ", ".join(sorted(commands)) or "there are none"
        raise NotFound(f"there is no command {name!r}; known are: {known}")
    return commands[name]


def is_subtask(command: CommandConfig, agent: Agent) -> bool:
    """Whether a Child Session runs a command: it says so, or its agent is a subagent and it does not say otherwise."""
    return bool(command.subtask) or (agent.mode == "subagent" and command.subtask is not False)


def expanded(template: str, arguments: str) -> str:
    """The template with the arguments inserted. Raises Invalid for a template that runs a program.

    ``$1`` and so on are words of the arguments; the highest number takes all remaining words. ``$ARGUMENTS`` is the
    whole text of the arguments. A template without placeholders gets the arguments as a paragraph at its end.
    """
    if _SHELL.search(template):
        raise Invalid("the command's template runs a program (!`...`), which this server does not do yet")
    places = [int(number) for number in _PLACE.findall(template)]
    words = [_unquoted(word) for word in _WORD.findall(arguments)]

    def word(found: re.Match[str]) -> str:
        number = int(found[1])
        return " ".join(words[number - 1 :]) if number == max(places) else "".join(words[number - 1 : number])

    text = _PLACE.sub(word, template).replace(ARGUMENTS, arguments)
    if not places and ARGUMENTS not in template and arguments.strip():
        text = f"{text}\n\n{arguments}"
    return text.strip()


def hints(template: str) -> tuple[str, ...]:
    """The placeholders of a template, which clients show while the user types a command."""
    numbered = sorted({f"${number}" for number in _PLACE.findall(template)}, key=lambda one: int(one[1:]))
    return (*numbered, *([ARGUMENTS] if ARGUMENTS in template else []))


def _unquoted(word: str) -> str:
    return re.sub(r"\A[\"']|[\"']\Z", "", word)

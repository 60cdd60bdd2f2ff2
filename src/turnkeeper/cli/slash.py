"""`/name arguments` as a message: which command is meant."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import local_store
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.command import Command
    from turnkeeper.model.prompt import FileInput, Prompt, TextInput

LITERAL = "begin the message with a space to send it as it is"


class Message(NamedTuple):
    """The text of the prompt: the words of the command line, and standard input."""

    words: str
    piped: str = ""

    @classmethod
    def of(cls, words: tuple[str, ...]) -> "Message":
        """The words, and standard input if that is no terminal."""
        piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")
        return cls(" ".join(words), piped if piped.strip() else "")

    @property
    def text(self) -> str:
        """All of it: the words first."""
        if not self.words.strip() or not self.piped:
            return self.words.strip() or self.piped.strip()
        return f"{self.words}\n{self.piped}"

    @property
    def prompt_words(self) -> str:
        """The words in which files are mentioned; none in a shell command."""
        return "" if self.words.lstrip().startswith("!") else self.words

    def inputs(self) -> "tuple[TextInput, ...]":
        """The texts of a prompt. Only the words mention files: standard input may come from anywhere."""
        from turnkeeper.core.mentions import mentions
        from turnkeeper.model.prompt import TextInput

        if not mentions(self.words):
            return (TextInput(text=self.text),) if self.text else ()
        texts = TextInput(text=self.words.strip(), mentions=True), TextInput(text=self.piped)
        return tuple(one for one in texts if one.text)


class CalledCommand(NamedTuple):
    """The command that a message is, with what stands behind its name."""

    command: "Command"
    arguments: str
    input: str
    """Standard input."""

    @property
    def is_action(self) -> bool:
        """Whether it is no prompt."""
        return self.command.kind == "action"

    def prompt(self, given: "Prompt") -> "Prompt":
        """The prompt with the agent and the model of the command, which answer it if it is no subtask."""
        from turnkeeper.model.message import model_choice

        if self.command.subtask:
            return given
        model = model_choice(self.command.model) if self.command.model is not None else given.model
        return given.but(agent=self.command.agent or given.agent, model=model)


async def called(tk: "Turnkeeper | Client", message: Message, directory: Path | None) -> CalledCommand | None:
    """The command that a message is; None for a plain prompt. Raises UsageError, with the nearest names."""
    from turnkeeper.core.commands import called as named

    # Without words the first line of standard input counts; nothing else of it is read for mentions.
    said, input = (message.words, message.piped) if message.words.strip() else _first_line(message.piped)
    if not said.startswith("/"):
        return None
    known = {one.name: one for one in await tk.commands(directory)}
    try:
        found = named(said, known, await not_trusted(tk, directory))
    except NotFound as error:
        raise UsageError(f"{error}; `turnkeeper command list` lists all, or {LITERAL}") from error
    return CalledCommand(known[found.name], found.arguments, input) if found is not None else None


async def not_trusted(tk: "Turnkeeper | Client", directory: Path | None) -> list[str]:
    """The names of the command files of a project on this machine, including untrusted ones."""
    from turnkeeper.workspace import markdown_files, setting_files
    from turnkeeper.workspace.project import identify

    if local_store(tk) is None:
        return []
    place = await identify(directory or Path.cwd())
    found = setting_files.project_directories(place.directory, place.worktree, os.environ)
    files = (file for folder in found for file in markdown_files.found_in(folder))
    return ["/".join(file.steps) for file in files if file.kind == "command"]


def _first_line(text: str) -> tuple[str, str]:
    first, _, rest = text.partition("\n")
    return first, rest


def files_of(prompt: "Prompt") -> "list[FileInput]":
    """The files of a prompt."""
    from turnkeeper.model.prompt import FileInput

    return [part for part in prompt.parts if isinstance(part, FileInput)]

"""Markdown files of settings: those in the ``agent``, ``mode`` and ``command`` folders of a directory of settings."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from turnkeeper.core import agent_settings, commands
from turnkeeper.core.agent_settings import MODE_FOLDERS
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.text import frontmatter
from turnkeeper.workspace.folder_entries import is_folder

COMMAND_FOLDERS: Final = ("command", "commands")
FOLDERS: Final = ("agent", "agents", *MODE_FOLDERS, *COMMAND_FOLDERS)
FILES_MAX: Final = 200
"""Maximum number of files that are read in one folder."""
DEPTH_MAX: Final = 8
"""Maximum depth of folders."""
ENDING: Final = ".md"


class MarkdownFile(NamedTuple):
    """A file that defines an agent or a command."""

    path: Path
    folder: str
    """The folder of FOLDERS that contains the file."""
    steps: tuple[str, ...]
    """The names from that folder to the file, without its ending."""

    @property
    def kind(self) -> Literal["agent", "command"]:
        """The kind of definition in the file."""
        return "command" if self.folder in COMMAND_FOLDERS else "agent"

    def settings(self, content: bytes) -> JsonObject:
        """The settings of the agent or command, unchecked. Raises Invalid, which names the file."""
        try:
            values, body = frontmatter.parse(content.decode("utf-8-sig"))
        except (UnicodeDecodeError, frontmatter.FrontmatterError) as error:
            raise Invalid(f"{self.path}: {error}") from error
        if self.kind == "command":
            return commands.of_file(self.steps, values, body)
        return agent_settings.of_file(self.folder, self.steps, values, body)


def found_in(directory: Path) -> Iterator[MarkdownFile]:
    """The markdown files of a directory of settings, in a fixed order."""
    for folder in FOLDERS:
        depth = 1 if folder in MODE_FOLDERS else DEPTH_MAX
        found = (
            MarkdownFile(directory / folder / Path(*steps), folder, _named(steps or (folder,)))
            for steps in _walk(os.path.join(directory, folder), (), depth)
        )
        yield from (file for _, file in zip(range(FILES_MAX), found, strict=False))


def _named(steps: tuple[str, ...]) -> tuple[str, ...]:
    return (*steps[:-1], steps[-1].removesuffix(ENDING))


def _walk(top: str, steps: tuple[str, ...], depth: int) -> Iterator[tuple[str, ...]]:
    """The markdown files below a folder. Links to folders are followed; the depth ends a loop of them.

    A folder that may not be listed is there in place of its files: to read it says why they are missing.
    """
    try:
        with os.scandir(top) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        if isinstance(error, PermissionError) and os.path.lexists(top):
            yield steps
        return
    for entry in entries:
        if entry.name.endswith(ENDING) and not is_folder(entry):
            yield (*steps, entry.name)
        elif depth > 1 and is_folder(entry):
            yield from _walk(entry.path, (*steps, entry.name), depth - 1)

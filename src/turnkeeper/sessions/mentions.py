"""Expand the mentions of a template: ``@name`` becomes the file or directory of that name, or else the agent."""

import os
from collections.abc import Container
from pathlib import Path
from typing import Final

from anyio import to_thread

from turnkeeper.core.mentions import mentions
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.sessions.attach import DIRECTORY, TEXT
from turnkeeper.workspace.project import ProjectPlace

CLOSING: Final = ")]}>:;!?\"'"


async def expand(template: str, place: ProjectPlace, agents: Container[str], home: Path) -> tuple[PartInput, ...]:
    """The parts of a prompt: the text of the template, then the files and agents that it mentions."""
    return (TextInput(text=template), *await to_thread.run_sync(_mentioned, template, place, agents, home))


def _mentioned(template: str, place: ProjectPlace, agents: Container[str], home: Path) -> list[PartInput]:
    found: dict[str, PartInput] = {}
    for called in mentions(template):
        # Punctuation after a name usually ends the sentence, unless a file has it in its name.
        for name in dict.fromkeys((called, called.rstrip(CLOSING))):
            if (path := _existing(name, place, home)) is not None:
                mime = DIRECTORY if path.is_dir() else TEXT
                found.setdefault(name, FileInput(mime=mime, filename=name, url=path.as_uri()))
                break
            if name in agents:
                found.setdefault(name, AgentInput(name=name))
                break
    return list(found.values())


def _existing(name: str, place: ProjectPlace, home: Path) -> Path | None:
    """The existing path of a name: relative to the top of the project, or else to the directory."""
    paths = [home / name[2:]] if name.startswith("~/") else [place.top / name, place.directory / name]
    return next((Path(os.path.normpath(path)) for path in paths if os.path.exists(path)), None)

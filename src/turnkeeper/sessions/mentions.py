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
    """The template as a prompt's parts: its text as it is, then what it mentions. Names of nothing are only words."""
    return (TextInput(text=template), *await to_thread.run_sync(_mentioned, template, place, agents, home))


def _mentioned(template: str, place: ProjectPlace, agents: Container[str], home: Path) -> list[PartInput]:
    found: dict[str, PartInput] = {}
    for called in mentions(template):
        # The sign behind a name is more often the sentence's than the name's, but only the disk can tell.
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
    """Names are meant from the top of the project; outside of one, or where there is none such, from the directory."""
    if name.startswith("~/"):
        paths = [home / name[2:]]
    elif place.worktree == Path(place.worktree.anchor):
        paths = [place.directory / name]
    else:
        paths = [place.worktree / name, place.directory / name]
    return next((Path(os.path.normpath(path)) for path in paths if os.path.exists(path)), None)

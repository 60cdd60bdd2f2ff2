"""Mentions in a text: ``@name`` becomes the file or folder of that name, or else the agent, or a resource.

| Mention | Part |
|---|---|
| ``@path`` | the file or the listing of the folder |
| ``@path#10``, ``@path#10-20`` | these lines of the file; also ``@path:10``, ``@path:10-20`` |
| ``@path#Symbol`` | the file, with a note about which symbol of it is meant |
| ``@agent`` | the agent |
| ``@server:name``, ``@server:address`` | the resource of an MCP server |
"""

import os
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final

from anyio import to_thread

from turnkeeper.core.mentions import mentions
from turnkeeper.model.parts.base import Mention
from turnkeeper.model.parts.file import ResourceSource
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.run.mcp_places import McpPlaces
from turnkeeper.sessions.attach import DIRECTORY, TEXT
from turnkeeper.workspace.project import ProjectPlace

CLOSING: Final = ")]}>:;!?\"'"
SYMBOL: Final = "The user means the symbol {symbol} of {file}. The whole file is attached: find the symbol in it."
_LINES: Final = re.compile(r"L?([1-9]\d{0,8})(?:-L?([1-9]\d{0,8}))?")


async def mentioned(
    text: str, place: ProjectPlace, agents: Container[str], home: Path, servers: McpPlaces | None = None
) -> list[PartInput]:
    """The files, folders, agents and resources that a text mentions, as parts of a prompt."""
    if "@" not in text:
        return []
    found = await to_thread.run_sync(_mentioned, text, place, agents, home)
    for name in mentions(text) if servers is not None else ():
        if name not in found and ":" in name and (offered := await _offered(servers, place, name, text)) is not None:
            found[name] = [offered]
    return [part for parts in found.values() for part in parts]


async def with_mentions(
    parts: Sequence[PartInput],
    place: ProjectPlace,
    agents: Container[str],
    home: Path,
    servers: McpPlaces | None = None,
) -> tuple[PartInput, ...]:
    """The parts of a prompt; each text that wants it is followed by what it mentions."""
    found: list[PartInput] = []
    for part in parts:
        found.append(part)
        if isinstance(part, TextInput) and part.mentions:
            found += await mentioned(part.text, place, agents, home, servers)
    return tuple(found)


async def _offered(servers: McpPlaces | None, place: ProjectPlace, name: str, text: str) -> FileInput | None:
    """The resource of a server that is meant by a name."""
    for one in dict.fromkeys((name, name.rstrip(CLOSING))):
        found = await servers.mentioned(place, one) if servers is not None else None
        if found is not None:
            server, resource = found
            said, start = f"@{one}", text.index(f"@{one}")
            source = ResourceSource(
                client_name=server.name,
                uri=resource.uri,
                text=Mention(value=said, start=start, end=start + len(said)),
            )
            return FileInput(mime=resource.mime_type or TEXT, filename=resource.name, url=resource.uri, source=source)
    return None


def _mentioned(template: str, place: ProjectPlace, agents: Container[str], home: Path) -> dict[str, list[PartInput]]:
    found: dict[str, list[PartInput]] = {}
    for called in mentions(template):
        # Punctuation after a name usually ends the sentence, unless a file has it in its name.
        for name in dict.fromkeys((called, called.rstrip(CLOSING))):
            parts = _named(name, place, agents, home)
            if parts:
                found.setdefault(name, parts)
                break
    return found


def _named(name: str, place: ProjectPlace, agents: Container[str], home: Path) -> list[PartInput]:
    """What a name stands for: a path, a piece of a file, or else an agent."""
    if (path := _existing(name, place, home)) is not None:
        return [FileInput(mime=DIRECTORY if path.is_dir() else TEXT, filename=name, url=path.as_uri())]
    if name in agents:
        return [AgentInput(name=name)]
    file, mark, piece = _split(name.rstrip(CLOSING))
    path = _existing(file, place, home) if file and piece else None
    if path is None or path.is_dir():
        return []
    part = FileInput(mime=TEXT, filename=file, url=path.as_uri())
    if (lines := _LINES.fullmatch(piece)) is not None:
        return [
            part.but(filename=f"{file}{mark}{piece}", url=f"{part.url}?start={lines[1]}&end={lines[2] or lines[1]}")
        ]
    return [TextInput(text=SYMBOL.format(symbol=piece, file=file), synthetic=True), part]


def _split(name: str) -> tuple[str, str, str]:
    """The file, the mark and the piece of a name. After a colon there are only lines, as in ``run --file``."""
    file, mark, piece = name.rpartition(":")
    return (file, mark, piece) if _LINES.fullmatch(piece) else name.rpartition("#")


def _existing(name: str, place: ProjectPlace, home: Path) -> Path | None:
    """The existing path of a name: relative to the top of the project, or else to the directory."""
    paths = [home / name[2:]] if name.startswith("~/") else [place.top / name, place.directory / name]
    return next((Path(os.path.normpath(path)) for path in paths if os.path.exists(path)), None)

"""Mentions in a text: ``@name`` becomes the file or folder of that name, or else the agent, or a resource.

| Mention | Part |
|---|---|
| ``@path``, ``@"a path"`` | the file or the listing of the folder |
| ``@path#10``, ``@path#10-20`` | these lines of the file; also ``@path:10``, ``@path:10-20`` |
| ``@path#Symbol`` | the lines of the symbol; the whole file, with a note, if it is not known where that is |
| ``@agent`` | the agent |
| ``@server:name``, ``@server:address`` | the resource of an MCP server |
"""

import os
import re
from collections.abc import Container, Sequence
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from anyio import to_thread

from turnkeeper.core.mentions import CLOSING, LINES, mentions, path_mentions, written
from turnkeeper.model.parts.base import Mention
from turnkeeper.model.parts.file import Position, Range, ResourceSource, SymbolSource
from turnkeeper.model.prompt import AgentInput, FileInput, PartInput, TextInput
from turnkeeper.run.mcp_places import McpPlaces
from turnkeeper.sessions.attach import DIRECTORY, TEXT
from turnkeeper.text.attachment_url import line_query
from turnkeeper.text.symbols import Symbol, find, nearest
from turnkeeper.workspace.project import ProjectPlace
from turnkeeper.workspace.symbols import FileSymbols, own_symbols

MEANT_MAX: Final = 8
"""How many symbols of one name are attached. With more of them the file is."""
UNKNOWN: Final = "The user means the symbol {symbol} of {file}. {reason} The whole file is attached."


class _SymbolMention(NamedTuple):
    """A symbol of a file, of which it is not known yet where it is."""

    name: str
    file: FileInput
    path: Path
    mention: Mention


_Found: TypeAlias = PartInput | _SymbolMention


async def mentioned(
    text: str,
    place: ProjectPlace,
    agents: Container[str],
    home: Path,
    symbols: FileSymbols = own_symbols,
    servers: McpPlaces | None = None,
) -> list[PartInput]:
    """The files, folders, symbols, agents and resources that a text mentions, as parts of a prompt."""
    if "@" not in text:
        return []
    named = await to_thread.run_sync(_mentioned, text, place, agents, home)
    found: list[PartInput] = []
    for one in named.values():
        if isinstance(one, _SymbolMention):
            found += _attached(one, await symbols(one.path))
        else:
            found.append(one)
    for name in mentions(text) if servers is not None else ():
        if name not in named and ":" in name and (offered := await _offered(servers, place, name, text)) is not None:
            found.append(offered)
    return found


async def missing_files(text: str, place: ProjectPlace, home: Path) -> list[str]:
    """The paths that a text mentions and that do not exist, so that it is sent without them."""
    names = path_mentions(text)
    return await to_thread.run_sync(lambda: [name for name in names if _existing(name, place, home) is None])


async def with_mentions(
    parts: Sequence[PartInput],
    place: ProjectPlace,
    agents: Container[str],
    home: Path,
    symbols: FileSymbols = own_symbols,
    servers: McpPlaces | None = None,
) -> tuple[PartInput, ...]:
    """The parts of a prompt; each text that wants it is followed by what it mentions."""
    found: list[PartInput] = []
    for part in parts:
        found.append(part)
        if isinstance(part, TextInput) and part.mentions:
            found += await mentioned(part.text, place, agents, home, symbols, servers)
    return tuple(found)


def _attached(named: _SymbolMention, known: Sequence[Symbol]) -> list[PartInput]:
    """The lines of each symbol that is meant; or the whole file, and why."""
    meant, file = find(known, named.name), named.file
    if 0 < len(meant) <= MEANT_MAX:
        return [_lines_of(named, one) for one in meant]
    near = nearest(known, named.name)
    if meant:
        reason = f"There are {len(meant)} of this name."
    elif known:
        reason = "It was not found there" + (f"; similar names are {', '.join(near)}." if near else ".")
    else:
        reason = "It is not known which symbols this file has."
    text = UNKNOWN.format(symbol=named.name, file=file.filename, reason=reason)
    return [TextInput(text=text, synthetic=True), file]


def _lines_of(named: _SymbolMention, symbol: Symbol) -> FileInput:
    source = SymbolSource(
        path=str(named.path),
        range=Range(
            start=Position(line=symbol.first - 1, character=0), end=Position(line=symbol.last - 1, character=0)
        ),
        name=symbol.name,
        kind=symbol.kind,
        text=named.mention,
    )
    url = f"{named.file.url}{line_query(symbol.first, symbol.last)}"
    return named.file.but(filename=f"{named.file.filename}#{symbol.name}", url=url, source=source)


async def _offered(servers: McpPlaces | None, place: ProjectPlace, name: str, text: str) -> FileInput | None:
    """The resource of a server that is meant by a name."""
    for one in dict.fromkeys((name, name.rstrip(CLOSING))):
        found = await servers.mentioned(place, one) if servers is not None else None
        if found is not None:
            server, resource = found
            said = written(one, text)
            start = text.index(said)
            source = ResourceSource(
                client_name=server.name,
                uri=resource.uri,
                text=Mention(value=said, start=start, end=start + len(said)),
            )
            return FileInput(mime=resource.mime_type or TEXT, filename=resource.name, url=resource.uri, source=source)
    return None


def _mentioned(template: str, place: ProjectPlace, agents: Container[str], home: Path) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    for called in mentions(template):
        # Punctuation after a name usually ends the sentence, unless a file has it in its name.
        for name in dict.fromkeys((called, called.rstrip(CLOSING))):
            one = _named(name, template, place, agents, home)
            if one is not None:
                found.setdefault(name, one)
                break
    return found


def _named(name: str, template: str, place: ProjectPlace, agents: Container[str], home: Path) -> _Found | None:
    """The meaning of a name: a path, a piece of a file, or else an agent."""
    if (path := _existing(name, place, home)) is not None:
        return FileInput(mime=DIRECTORY if os.path.isdir(path) else TEXT, filename=name, url=path.as_uri())
    if name in agents:
        return AgentInput(name=name)
    file, mark, piece = _split(name.rstrip(CLOSING))
    path = _existing(file, place, home) if file and piece else None
    if path is None or os.path.isdir(path):
        return None
    part = FileInput(mime=TEXT, filename=file, url=path.as_uri())
    if (lines := LINES.fullmatch(piece)) is not None:
        numbers = sorted(int(one) for one in lines.groups() if one is not None)
        return part.but(filename=f"{file}{mark}{piece}", url=f"{part.url}{line_query(*numbers)}")
    symbol = piece.rstrip("(")  # As a call is written: run().
    said = written(f"{file}{mark}{symbol}", template)
    found = re.search(rf"{re.escape(said)}(?!\w)", template)
    start = found.start() if found is not None else 0
    return _SymbolMention(symbol, part, path, Mention(value=said, start=start, end=start + len(said)))


def _split(name: str) -> tuple[str, str, str]:
    """The file, the mark and the piece of a name. After a colon there are only lines, as in ``run --file``."""
    file, mark, piece = name.rpartition(":")
    return (file, mark, piece) if LINES.fullmatch(piece) else name.rpartition("#")


def _existing(name: str, place: ProjectPlace, home: Path) -> Path | None:
    """The existing path of a name: relative to the top of the project, or else to the directory."""
    paths = [home / name[2:]] if name.startswith("~/") else [place.top / name, place.directory / name]
    return next((Path(os.path.normpath(path)) for path in paths if _is_there(path)), None)


def _is_there(path: Path) -> bool:
    """Whether something is at a path. One that may not be looked at counts: the read tool tells the model why."""
    try:
        os.stat(path)
    except PermissionError:
        return True
    except (OSError, ValueError):
        return False
    return True

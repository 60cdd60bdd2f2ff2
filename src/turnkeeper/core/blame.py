"""Blame: which turn and which tool call last wrote each line of a file."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from turnkeeper.core.history_trees import TurnPatch, in_force, patches
from turnkeeper.core.writing_calls import may_write
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value

_PATH_ARGUMENTS: Final = ("filePath", "file_path", "path")


class WritingCall(Value):
    """A tool call that may have written a file."""

    part_id: str
    call_id: str
    tool: str


class WritingTurn(Value):
    """A turn that changed files, and the calls of it."""

    session_id: str
    slug: str
    message_id: str
    patch: TurnPatch
    began: int
    ended: int
    parts: tuple[Part, ...]
    is_copy: bool = False
    """It was copied by a fork, and so is in the source, too."""


class LineOrigin(Value):
    """The turn that last wrote a line, and the calls that may have written it; empty if they are not known."""

    session_id: str
    slug: str
    message_id: str
    calls: tuple[WritingCall, ...] = ()


class BlamedLine(Value):
    """A line of a file. Without an origin, no session that is known wrote it."""

    line: int
    text: str
    origin: LineOrigin | None = None


class Blame(Value):
    """The lines of a file."""

    file: str
    lines: tuple[BlamedLine, ...]
    left_out: int = 0
    """Turns that changed the file and are not considered: too many, or their snapshots are no longer kept."""


def writing_turns(session: Session, history: Iterable[MessageWithParts]) -> Iterator[WritingTurn]:
    """The turns of a session that changed files and are not reverted."""
    for turn in in_force(history, session.revert):
        info = turn.info
        if isinstance(info, AssistantMessage):
            for patch in patches([turn]):
                yield WritingTurn(
                    session_id=session.id,
                    slug=session.slug,
                    message_id=info.id,
                    patch=patch,
                    began=info.time.created,
                    ended=info.time.completed or info.time.created,
                    parts=turn.parts,
                    is_copy=session.origin is not None and info.time.created < session.time.created,
                )


def in_order(turns: Iterable[WritingTurn]) -> list[WritingTurn]:
    """The turns in the order they ended. Of a turn and its copies in forks one stays, the original if it is there."""
    found: dict[tuple[object, ...], WritingTurn] = {}
    for turn in sorted(turns, key=lambda one: one.is_copy):
        found.setdefault((turn.patch, turn.began, turn.ended), turn)
    return sorted(found.values(), key=lambda one: one.ended)


def origin(turn: WritingTurn, file: str) -> LineOrigin:
    """The turn as the origin of lines of a file, by its absolute path."""
    calls = [part for part in turn.parts if isinstance(part, ToolPart) and may_write(part)]
    if len(calls) > 1:
        calls = [part for part in calls if _names_file(part, file, turn.patch.after.directory)]
    return LineOrigin(
        session_id=turn.session_id,
        slug=turn.slug,
        message_id=turn.message_id,
        calls=tuple(WritingCall(part_id=part.id, call_id=part.call_id, tool=part.tool) for part in calls),
    )


def blamed(file: str, content: bytes, origins: Sequence[LineOrigin | None], left_out: int) -> Blame:
    """The lines of a file with their origins."""
    lines = content.decode("utf-8", "replace").split("\n")
    lines = lines if lines[-1] else lines[:-1]
    found = [
        BlamedLine(line=number, text=text, origin=origin)
        for number, (text, origin) in enumerate(zip(lines, origins, strict=True), 1)
    ]
    return Blame(file=file, lines=tuple(found), left_out=left_out)


def _names_file(part: ToolPart, file: str, directory: str) -> bool:
    given = part.state.input
    for argument in _PATH_ARGUMENTS:
        if isinstance(path := given.get(argument), str):
            return posixpath.normpath(posixpath.join(directory, path)) == file
    relative = posixpath.relpath(file, directory)
    names = "|".join(map(re.escape, (file, relative)))
    pattern = re.compile(rf"(?<![\w./-])(?:\./)?(?:{names})(?![\w/-]|\.\w)")
    return any(pattern.search(text) for text in _texts(given))


def _texts(value: object) -> Iterator[str]:
    """Every string in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _texts(one)

"""The command that searches the history of sessions, and how it prints what it finds."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, note_damaged
from turnkeeper.cli.screen import Screen, one_line, shortened
from turnkeeper.core.search_text import searchable

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.model.session import Session
    from turnkeeper.store.queries import SearchHit

BEFORE = 40
AROUND = 160


async def search(
    *words: Annotated[str, Parameter(metavar="WORD", help="Words, or prefixes of words; all must occur.")],
    session: Annotated[
        str | None, Parameter(metavar="ID", help="Only in this session.", completer=candidates.sessions)
    ] = None,
    limit: names.Limit = 20,
    options: Options,
) -> int:
    """Search titles, texts, reasoning and tool output for words. Newest first.

    With --json the answer is a list: [{"sessionID", "messageID", "partID"}]. A
    title has only the first.

    For example:
      turnkeeper session search wind gust
      turnkeeper session search --session calm-otter "parser"
    """
    text = " ".join(words)
    if not text.strip():
        raise UsageError("give the words to search for")
    async with options.read() as tk:
        inside = await names.session(tk, session) if session is not None else None
        found = await tk.search(text, session_id=inside, limit=limit)
        damaged: list[str] = []
        shown = [] if options.json else await matches(tk, found, words, damaged)
    empty = f"Nothing matches {text!r}." if not found else ""
    answer(options, found, lambda screen: "\n\n".join(_shown(screen, one, words) for one in shown), empty=empty)
    return note_damaged(damaged)


class SessionMatches(NamedTuple):
    """A session, and the message, the kind and the excerpt of each match in its history."""

    session: "Session"
    lines: list[tuple[str, str, str]]


async def matches(
    tk: "Turnkeeper", found: "Sequence[SearchHit]", words: Sequence[str], damaged: list[str]
) -> list[SessionMatches]:
    """The search results grouped by session, in their order. What cannot be read is added to ``damaged``."""
    from turnkeeper.model.parts import ToolPart
    from turnkeeper.model.refusal import NotFound
    from turnkeeper.store.damaged import DamagedDocument

    by_session: dict[str, SessionMatches] = {}
    for one in found:
        try:
            if one.session_id not in by_session:
                by_session[one.session_id] = SessionMatches(await tk.get(one.session_id), [])
            if one.message_id is not None and one.part_id is not None:
                part = await tk.store.queries.part(one.message_id, one.part_id)
                kind = part.tool if isinstance(part, ToolPart) else str(type(part).__struct_config__.tag)
                excerpt = _excerpt(searchable(part) or "", words)
                by_session[one.session_id].lines.append((one.message_id, kind, excerpt))
        except DamagedDocument as error:
            damaged.append(str(error))
        except NotFound:
            continue  # It was deleted after the search.
    return list(by_session.values())


def _excerpt(text: str, words: Sequence[str]) -> str:
    line = one_line(text)
    match = _pattern(words).search(line)
    start = max(0, match.start() - BEFORE) if match else 0
    return f"{'…' if start else ''}{line[start : start + AROUND]}"


def _shown(screen: Screen, match: SessionMatches, words: Sequence[str]) -> str:
    lines = [f"{screen.paint(match.session.id, 'cyan')}  {screen.paint(one_line(match.session.title), 'bold')}"]
    for message_id, kind, excerpt in match.lines:
        room = (screen.width or AROUND) - len(message_id) - len(kind) - 6
        text = _pattern(words).sub(lambda hit: screen.paint(hit.group(), "yellow"), shortened(excerpt, max(room, 20)))
        lines.append(f"  {screen.paint(f'{message_id}  {kind}', 'dim')}  {text}")
    return "\n".join(lines)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    wanted = [re.escape(word) for word in " ".join(words).split()]
    return re.compile(rf"\b(?:{'|'.join(wanted)})\w*", re.IGNORECASE)

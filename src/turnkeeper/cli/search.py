"""The command that searches the history of sessions, and how it prints what it finds."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer_items, note_damaged
from turnkeeper.cli.screen import Screen, one_line, shortened

if TYPE_CHECKING:
    from turnkeeper.sessions.search import Found

AROUND = 160


async def search(
    *words: Annotated[str, Parameter(metavar="WORD", help="Words, or prefixes of words; all must occur.")],
    session: Annotated[
        str | None, Parameter(metavar="ID", help="Only in this session.", completer=candidates.sessions)
    ] = None,
    limit: names.Limit = 20,
    options: Options,
) -> int:
    """Search titles, texts, reasoning, and the input and output of tools for words.

    The newest come first. Calls that earlier versions recorded are found by their
    input once `turnkeeper doctor --fix` was run.

    With --json the answer is {"items": [{"sessionID", "slug", "title",
    "directory", "messageID", "partID", "seq", "role", "kind", "snippet"}]}. A
    title has neither message nor part. Damaged messages are left out and named on
    standard error and in "damaged"; then the exit code is 1.

    For example:
      turnkeeper session search wind gust
      turnkeeper session search --session calm-otter "parser"
      turnkeeper session search wind --json | jq -r '.items[].snippet'
    """
    from turnkeeper.sessions.search import search as found_words

    text = " ".join(words)
    if not text.strip():
        raise UsageError("give the words to search for")
    damaged: list[str] = []
    async with options.read() as tk:
        inside = await names.session(tk, session) if session is not None else None
        found = await found_words(tk.store, text, session_id=inside, limit=limit, damaged=damaged)
    answer_items(
        options,
        found,
        lambda screen: "\n\n".join(_shown(screen, hits, words) for hits in by_session(found)),
        empty="" if damaged else f"Nothing matches {text!r}.",
        damaged=damaged or None,
    )
    return note_damaged(damaged)


def by_session(found: "Sequence[Found]") -> "list[list[Found]]":
    """The hits of each session, in the order of the first of each."""
    grouped: dict[str, list[Found]] = {}
    for one in found:
        grouped.setdefault(one.session_id, []).append(one)
    return list(grouped.values())


def _shown(screen: Screen, hits: "Sequence[Found]", words: Sequence[str]) -> str:
    lines = [f"{screen.paint(hits[0].session_id, 'cyan')}  {screen.paint(one_line(hits[0].title), 'bold')}"]
    for message_id, hit in ((one.message_id, one) for one in hits if one.message_id is not None):
        room = (screen.width or AROUND) - len(message_id) - len(hit.kind) - 6
        said = shortened(one_line(hit.snippet), max(room, 20))
        text = _pattern(words).sub(lambda match: screen.paint(match.group(), "yellow"), said)
        lines.append(f"  {screen.paint(f'{message_id}  {hit.kind}', 'dim')}  {text}")
    return "\n".join(lines)


def _pattern(words: Sequence[str]) -> re.Pattern[str]:
    wanted = [re.escape(word) for word in " ".join(words).split()]
    return re.compile(rf"\b(?:{'|'.join(wanted)})\w*", re.IGNORECASE)

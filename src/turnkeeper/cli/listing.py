"""Commands that find sessions: list, children, search."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note, note_damaged
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, one_line
from turnkeeper.cli.session_name import SessionName
from turnkeeper.cli.table import Column, table

if TYPE_CHECKING:
    from turnkeeper.model.session import Session

LIMIT: Final = 50
_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


async def list_sessions(
    *,
    all: Annotated[bool, Parameter(name=("--all", "-a"), help="Also children and archived ones.")] = False,
    project: Annotated[str | None, Parameter(metavar="ID", help="Only this project: id or a directory in it.")] = None,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="Only sessions that work in DIR.")] = None,
    parent: Annotated[str | None, Parameter(metavar="ID", help="Only children of this session.")] = None,
    search: Annotated[str | None, Parameter(metavar="TEXT", help="Only titles that contain TEXT.")] = None,
    since: Annotated[str | None, Parameter(metavar="WHEN", help="Active since: 90min, 12h, 3d, 2026-11-15.")] = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"), metavar="N", help="How many at most.")] = LIMIT,
    after: Annotated[str | None, Parameter(metavar="CURSOR", help="Go on behind the page before.")] = None,
    options: Options = EVERYWHERE,
) -> int:
    """List sessions, newest activity first.

    Shows roots that are not archived; --all shows everything. With --json the answer is a page:
    {"items": [...], "older": CURSOR}, without "older" on the last one. A session that is damaged is left out and named
    on standard error, and in "damaged"; then the command ends with 1.

    Examples:
      turnkeeper session list
      turnkeeper session list --all --since 3d
      turnkeeper session list --directory . --search parser
      turnkeeper session list --json | jq -r '.items[].id'
    """
    from turnkeeper.mint import wall_clock

    async with options.sessions(looks=True) as tk:
        page = await tk.list(
            project_id=await names.project(tk, project) if project is not None else None,
            directory=directory.expanduser().resolve() if directory is not None else None,
            parent_id=await names.session(tk, parent) if parent is not None else None,
            roots=not all,
            archived=all,
            search=search,
            since=_moment(since, wall_clock()) if since is not None else None,
            limit=limit,
            after=after,
        )
    answer(options, page, lambda screen: sessions_table(screen, page.items))
    if not options.json and not page.items:
        note("No sessions here." if after or all else "No sessions here; `--all` shows children and archived ones.")
    if not options.json and page.older is not None:
        note(f"There are more: add --after {page.older}")
    return note_damaged(page.damaged)


async def children(
    id: SessionName,
    /,
    *,
    recursive: Annotated[bool, Parameter(name=("--recursive", "-r"), help="Also their children.")] = False,
    options: Options = EVERYWHERE,
) -> None:
    """List the Child Sessions of a session, archived ones among them.

    Examples:
      turnkeeper session children ses_e1f51c506ffe
      turnkeeper session children calm-otter --recursive --json
    """
    async with options.sessions(looks=True) as tk:
        found = await tk.children(await names.session(tk, id), recursive=recursive)
    answer(options, found, lambda screen: sessions_table(screen, found))
    if not options.json and not found:
        note("It has no children.")


async def search(
    *words: Annotated[str, Parameter(metavar="WORD", help="Words, or beginnings of words; all must occur.")],
    session: Annotated[str | None, Parameter(metavar="ID", help="Only in this session.")] = None,
    limit: Annotated[int, Parameter(name=("--limit", "-n"), metavar="N", help="How many places at most.")] = 20,
    options: Options = EVERYWHERE,
) -> int:
    """Find where words were said: in titles, texts, reasoning and the output of tools. Newest first.

    With --json the answer is a list of places: [{"sessionID", "messageID", "partID"}]; a title has only the first.

    Examples:
      turnkeeper session search wind gust
      turnkeeper session search --session calm-otter "parser"
    """
    from turnkeeper.cli.found import places

    text = " ".join(words)
    if not text.strip():
        raise UsageError("give the words to look for")
    if limit < 1:
        raise UsageError(f"--limit must be at least 1, not {limit}")
    async with options.read() as tk:
        inside = await names.session(tk, session) if session is not None else None
        found = await tk.search(text, session_id=inside, limit=limit)
        damaged: list[str] = []
        shown = [] if options.json else await places(tk, found, words, damaged)
    answer(options, found, lambda screen: "\n\n".join(place.text(screen) for place in shown))
    if not options.json and not found:
        note(f"Nothing was said with {text!r}.")
    return note_damaged(damaged)


def sessions_table(screen: Screen, sessions: "Sequence[Session]") -> str:
    """Sessions as a table."""
    return table(
        screen,
        [
            Column("SESSION", [one.id for one in sessions], ("cyan",)),
            Column("UPDATED", [screen.ago(one.time.updated) for one in sessions], ("dim",)),
            Column("", [_mark(one) for one in sessions], ("yellow",)),
            Column("TITLE", [one_line(one.title) for one in sessions], least=16),
            Column(
                "DIRECTORY",
                [screen.path(one.directory) for one in sessions],
                ("dim",),
                least=16,
                is_optional=True,
                keep_end=True,
            ),
        ],
    )


def _mark(session: "Session") -> str:
    marks = {"child": session.parent_id is not None, "archived": session.time.archived is not None}
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _moment(text: str, now: int) -> int:
    """The milliseconds of ``3d`` (ago), of a date, or of a number of milliseconds since 1970."""
    if match := re.fullmatch(r"(\d+)\s*([a-z]+)", text.strip()):
        amount, unit = match.groups()
        if unit in _UNITS:
            return now - int(amount) * _UNITS[unit] * 1000
    if text.strip().isdecimal() and len(text.strip()) > 8:
        return int(text)
    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        raise UsageError(f"{text!r} is not a time; write 90min, 12h, 3d, 2w, 2026-11-15 or 2026-11-15T08:30") from error

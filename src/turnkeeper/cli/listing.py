"""Commands that list sessions: list, children."""

import re
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer_items, note, note_damaged
from turnkeeper.cli.screen import Column, Screen, harmless, one_line, table
from turnkeeper.interop.imported import program_of

if TYPE_CHECKING:
    from turnkeeper.model.session import Session

_UNITS: Final = {"s": 1, "m": 60, "min": 60, "h": 3600, "d": 86_400, "w": 7 * 86_400}


async def list_sessions(
    *,
    all: Annotated[bool, Parameter(name=("--all", "-a"), help="Also children and archived sessions.")] = False,
    project: Annotated[str | None, Parameter(metavar="ID", help="Only this project: id or a directory in it.")] = None,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="Only sessions with this directory.")] = None,
    parent: Annotated[
        str | None, Parameter(metavar="ID", help="Only children of this session.", completer=candidates.sessions)
    ] = None,
    search: Annotated[str | None, Parameter(metavar="TEXT", help="Only titles that contain TEXT.")] = None,
    since: Annotated[str | None, Parameter(metavar="WHEN", help="Active since: 90min, 12h, 3d, 2026-11-15.")] = None,
    limit: names.Limit = 50,
    before: Annotated[str | None, Parameter(metavar="CURSOR", help="The sessions before this cursor.")] = None,
    options: Options,
) -> int:
    """List sessions, newest activity first.

    Lists root sessions that are not archived; --all lists every session. With
    --json the answer is {"items": [SESSION], "older": CURSOR}. Give "older" to
    --before; the last page has none. Damaged sessions are left out and named on
    standard error and in "damaged"; then the exit code is 1.

    For example:
      turnkeeper session list
      turnkeeper session list --all --since 3d
      turnkeeper session list --directory . --search parser
      turnkeeper session list --json | jq -r '.items[].id'
    """
    from turnkeeper.mint import wall_clock
    from turnkeeper.workspace.files import real

    async with options.sessions(read_only=True) as tk:
        scope = await names.project(tk, project)
        page = await tk.list(
            project_id=scope.project_id,
            directory=real(directory.expanduser()) if directory is not None else scope.directory,
            parent_id=await names.session(tk, parent) if parent is not None else None,
            roots=not all,
            archived=all,
            search=search,
            since=_time(since, wall_clock()) if since is not None else None,
            limit=limit,
            after=before,
        )
    empty = "No sessions here." if before or all else "No sessions here; `--all` shows children and archived ones."
    answer_items(
        options,
        page.items,
        lambda screen: sessions_table(screen, page.items),
        empty=empty,
        older=page.older,
        damaged=page.damaged or None,
    )
    if not options.json and page.older is not None:
        note(f"There are older ones: add --before {page.older}")
    return note_damaged(page.damaged)


async def children(
    id: names.SessionName,
    /,
    *,
    recursive: Annotated[bool, Parameter(name=("--recursive", "-r"), help="Also their children.")] = False,
    options: Options,
) -> None:
    """List the Child Sessions of a session, also archived ones.

    With --json the answer is {"items": [SESSION]}.

    For example:
      turnkeeper session children ses_e1f51c506ffe
      turnkeeper session children calm-otter --recursive --json
    """
    async with options.sessions(read_only=True) as tk:
        found = await tk.children(await names.session(tk, id), recursive=recursive)
    answer_items(options, found, lambda screen: sessions_table(screen, found), empty="It has no children.")


def sessions_table(screen: Screen, sessions: "Sequence[Session]") -> str:
    """Sessions as a table."""
    return table(
        screen,
        Column("SESSION", [one.id for one in sessions], ("cyan",)),
        Column("UPDATED", [screen.ago(one.time.updated) for one in sessions], ("dim",)),
        Column("", [_marks(one) for one in sessions], ("yellow",)),
        Column("TITLE", [one_line(one.title) for one in sessions], least=16),
        Column(
            "DIRECTORY",
            [screen.path(one.directory) for one in sessions],
            ("dim",),
            least=16,
            is_optional=True,
            keep_end=True,
        ),
    )


def _marks(session: "Session") -> str:
    marks = {"child": session.parent_id is not None, "archived": session.time.archived is not None}
    marks["undo pending"] = session.revert is not None
    if (program := program_of(session)) is not None:
        marks[harmless(program)] = True
    return ", ".join(mark for mark, holds in marks.items() if holds)


def _time(text: str, now: int) -> int:
    """The Unix time in milliseconds of ``3d`` (ago), of a date, or of such a number itself."""
    given = text.strip()
    match = re.fullmatch(r"(\d+)\s*([a-z]+)", given)
    try:
        if match and match[2] in _UNITS:
            return now - int(match[1]) * _UNITS[match[2]] * 1000
        if given.isdecimal() and len(given) > 8:
            return int(given)
        return int(datetime.fromisoformat(given).timestamp() * 1000)
    except (ValueError, OverflowError) as error:
        times = "90min, 12h, 3d, 2w, 2026-11-15 or 2026-11-15T08:30"
        raise UsageError(f"{text!r:.80} is not a time; write {times}") from error

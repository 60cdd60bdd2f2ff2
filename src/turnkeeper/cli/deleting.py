"""The command that deletes sessions: those that are named, old ones, or all of a project."""

import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer_items, confirm, remark
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, one_line, plural
from turnkeeper.cli.status_word import running_owner
from turnkeeper.model.refusal import Busy, NotFound

if TYPE_CHECKING:
    from cyclopts import Token

    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session


def _duration(_: object, tokens: "Sequence[Token]") -> int:
    from turnkeeper.text.duration import parse_duration

    [given] = [token.value for token in tokens]
    return parse_duration(given)


class Skipped(NamedTuple):
    """A session that is not deleted, and why."""

    session: "Session"
    reason: str


class _Family(NamedTuple):
    """A session that is to be deleted, with all below it."""

    root: "Session"
    below: "Sequence[Session]"

    @property
    def all(self) -> "list[Session]":
        """Children first."""
        return [*reversed(self.below), self.root]

    @property
    def updated(self) -> int:
        """When one of them was last active."""
        return max(one.time.updated for one in self.all)


class _Plan(NamedTuple):
    families: list[_Family]
    skipped: list[Skipped]

    @property
    def sessions(self) -> "list[Session]":
        return [one for family in self.families for one in family.all]


async def delete(
    *ids: Annotated[
        str,
        Parameter(
            metavar="ID", help="The sessions: by their ids, prefixes of them, or slugs.", completer=candidates.sessions
        ),
    ],
    older_than: Annotated[
        int | None,
        Parameter(metavar="AGE", converter=_duration, help="Only if not active for so long, as 30d, 12h or 2w."),
    ] = None,
    project: Annotated[
        str | None, Parameter(metavar="P", help="Only of this project: its id, or a directory in it.")
    ] = None,
    dry_run: Annotated[bool, Parameter(help="Only show what would be deleted.")] = False,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask for confirmation.")] = False,
    options: Options,
) -> int:
    """Delete sessions with their children. This cannot be undone.

    Traces of their text can remain on the disk until they are overwritten, as in
    unused pages of a SQLite file, and in backups.

    Without an ID all sessions that fit --older-than and --project are deleted, also
    archived ones; with IDs, those of them that fit. A session counts as active
    when it or one of its children was. Sessions that are running are skipped and
    named; then the exit code is 1 if you named them.

    Asks for confirmation; without a terminal, --yes is needed. With --json the
    answer is {"items": [SESSION], "dryRun", "skipped": [{"sessionID",
    "reason"}]}, children first. `session archive` hides a session and keeps it.

    For example:
      turnkeeper session delete calm-otter
      turnkeeper session delete --older-than 30d --project . --dry-run
      turnkeeper session delete --older-than 90d --yes --json
    """
    if not ids and older_than is None and project is None:
        raise UsageError("name the sessions to delete, or give --older-than or --project")
    before = int(time.time() * 1000) - older_than * 1000 if older_than is not None else None
    async with options.sessions(read_only=dry_run) as tk:
        scope = await names.project(tk, project)
        if len(ids) == 1 and before is None and project is None and not dry_run:
            removed = await _remove_one(tk, ids[0], is_sure=yes)
            _report(options, removed, [], dry_run=False)
            return OK
        plan = await _plan(tk, ids, before, scope)
        if plan.families and not dry_run and not yes:
            _ask([one.root for one in plan.families], sum(len(one.below) for one in plan.families))
        removed = plan.sessions if dry_run else await _remove(tk, plan)
    _report(options, removed, plan.skipped, dry_run=dry_run)
    return REFUSED if ids and plan.skipped else OK


def _report(options: Options, removed: "Sequence[Session]", skipped: Sequence[Skipped], *, dry_run: bool) -> None:
    rows = [{"sessionID": one.session.id, "reason": one.reason} for one in skipped]
    verb, empty = "Would remove" if dry_run else "Removed", "" if skipped else "No session fits."
    answer_items(
        options,
        removed,
        lambda screen: _lines(screen, verb, removed),
        empty=empty,
        dryRun=dry_run,
        skipped=rows,
    )
    remark(options, *(f"Skipped {one.session.id} ({one_line(one.session.title)}): {one.reason}" for one in skipped))


async def _remove_one(tk: "Turnkeeper | Client", name: str, *, is_sure: bool) -> "Sequence[Session]":
    """Delete a session, also one whose documents are damaged. Raises Busy while another process runs it."""
    session_id = await names.session(tk, name)
    if not is_sure:
        _ask([await tk.get(session_id)], len(await tk.children(session_id, recursive=True)))
    return await tk.remove(session_id)


async def _plan(tk: "Turnkeeper | Client", ids: Sequence[str], before: int | None, scope: names.Scope) -> _Plan:
    """The sessions to delete, and those that are kept."""
    from turnkeeper.api import Turnkeeper

    named = [await tk.get(await names.session(tk, one)) for one in ids]
    # Children go with their parents, so only those that are named are looked at by themselves.
    found = named if ids else [one async for one in names.every_session(tk, scope, roots=True)][::-1]
    plan = _Plan([], [])
    covered: set[str] = set()
    busy = {} if isinstance(tk, Turnkeeper) else await tk.statuses()
    for root in found:
        family = _Family(root, await tk.children(root.id, recursive=True))
        if (reason := _misfit(family, before, scope)) is not None:
            if ids:
                plan.skipped.append(Skipped(root, reason))
        elif reasons := [why for one in family.all if (why := await _running(tk, one, busy)) is not None]:
            plan.skipped.append(Skipped(root, reasons[0]))
        else:
            plan.families.append(family)
            covered |= {one.id for one in family.below}
    # Of a parent and its child that are both named, the parent is enough.
    roots = {one.root.id: one for one in plan.families if one.root.id not in covered}
    return _Plan(list(roots.values()), plan.skipped)


def _misfit(family: _Family, before: int | None, scope: names.Scope) -> str | None:
    if not scope.has(family.root):
        return "it is of another project"
    if before is not None and family.updated >= before:
        return "it was active since"
    return None


async def _running(tk: "Turnkeeper | Client", session: "Session", busy: Collection[str]) -> str | None:
    """Why a session cannot be deleted now; None if it can. ``busy`` are those that a server runs."""
    if (store := local_store(tk)) is None:
        return f"the server runs {session.id}; stop it first" if session.id in busy else None
    owner = await running_owner(store, session.id)
    return f"process {owner.pid} on {owner.host} runs {session.id}; stop it first" if owner is not None else None


async def _remove(tk: "Turnkeeper | Client", plan: _Plan) -> "list[Session]":
    """Delete family by family. One that others run meanwhile is added to those that are skipped."""
    gone: list[Session] = []
    with progress("Removing") as move:
        for done, family in enumerate(plan.families):
            move(done, len(plan.families), one_line(family.root.title))
            try:
                gone += await tk.remove(family.root.id)
            except NotFound:
                continue  # Others have deleted it.
            except Busy as busy:
                plan.skipped.append(Skipped(family.root, str(busy)))
    return gone


def _ask(roots: "Sequence[Session]", children: int) -> None:
    """Ask for confirmation. Raises Forbidden without it."""
    also = f" and {plural(children, 'child', 'children')}" if children else ""
    named = f"{roots[0].id} ({one_line(roots[0].title)})"
    what = named if len(roots) == 1 else plural(len(roots), "session")
    confirm(
        f"Remove {what}{also} for ever?",
        no_terminal="there is no terminal to ask on, so nothing was removed; add --yes to remove it",
        refused="nothing was removed",
    )


def _lines(screen: Screen, verb: str, sessions: "Sequence[Session]") -> str:
    return "\n".join(
        f"{verb} {screen.paint(one.id, 'cyan')}  {one_line(one.title)}  {screen.path(one.directory)}"
        for one in sessions
    )

"""Commands that read one session: show, messages, todo."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer, answer_items, note_damaged, remark
from turnkeeper.cli.request_lines import open_requests
from turnkeeper.cli.screen import TODO_MARKS, Screen, fields, harmless, one_line, plural, token_kinds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnkeeper.api import Turnkeeper
    from turnkeeper.cli.transcript import Undone
    from turnkeeper.client import Client
    from turnkeeper.core.view import ViewState
    from turnkeeper.model.permission import PermissionRequest
    from turnkeeper.model.question import QuestionRequest
    from turnkeeper.model.session import Session
    from turnkeeper.model.todo import Todo


async def show(id: names.SessionName, /, *, at: names.Seq = None, options: Options) -> None:
    """Show a session: title, directory, times, usage, cost.

    The cost is that of the session itself; that of its Child Sessions is added
    behind it, and `session tree` shows each. With --json the answer is the
    session as the HTTP API has it.

    For example:
      turnkeeper session show calm-otter
      turnkeeper session show calm-otter --at 12
      turnkeeper session show ses_e1f51c506ffe --json | jq .cost
    """
    if at is not None:
        options.require_store("--at")
    state: ViewState | None = None
    below: Sequence[Session] = ()
    async with options.sessions(read_only=True) as tk:
        session_id = await names.session(tk, id)
        store = local_store(tk)
        if store is not None and at is not None:
            then = await store.at(session_id, at)
            session, state = await then.session(), then.view
        else:
            session = await tk.get(session_id)
            state = await store.store.queries.state(session_id) if store is not None else None
            below = () if options.json else await tk.children(session_id, recursive=True)
    answer(options, session, lambda screen: _session(screen, session, state, below))


async def messages(
    id: names.SessionName,
    /,
    *,
    limit: names.Limit = 20,
    before: Annotated[str | None, Parameter(metavar="CURSOR", help="The messages before this cursor.")] = None,
    after: Annotated[str | None, Parameter(metavar="CURSOR", help="The messages after this cursor.")] = None,
    context: Annotated[bool, Parameter(help="Also System Messages: the updates of the context.")] = False,
    at: names.Seq = None,
    options: Options,
) -> int:
    """Show the newest messages of a session as a transcript, oldest first.

    With --json the answer is {"items": [{"info", "parts"}], "sessionID", "slug",
    "older": CURSOR, "newer": CURSOR}. Give "older" to --before and "newer" to
    --after; the last page has none. Damaged messages and parts are left out and
    named on standard error and in "damaged"; then the exit code is 1.

    For example:
      turnkeeper session messages calm-otter
      turnkeeper session messages calm-otter --limit 2 --context
      turnkeeper session messages calm-otter --at 12
      turnkeeper session messages calm-otter --json | jq '.items[].info.role'
    """
    from turnkeeper.cli.transcript import transcript
    from turnkeeper.model.message import SystemMessage

    for name, is_given in (("--context", context), ("--after", after is not None), ("--at", at is not None)):
        if is_given:
            options.require_store(name)
    async with options.sessions(read_only=True) as tk:
        session_id = await names.session(tk, id)
        store = local_store(tk)
        if store is not None and at is not None:
            then = await store.at(session_id, at)
            session = await then.session()
            page = await then.messages(limit=limit, before=before, after=after)
            asked: Sequence[PermissionRequest | QuestionRequest] = await then.requests()
        else:
            session = await tk.get(session_id)
            page = await tk.messages(session_id, limit=limit, before=before, after=after)
            asked = () if options.json else await _requests_of(tk, session)
        undone = None if options.json else await pending_undo(tk, session)
    if not context:
        page = page.but(items=tuple(one for one in page.items if not isinstance(one.info, SystemMessage)))
    answer_items(
        options,
        page.items,
        lambda screen: transcript(screen, page.items, {one.tool: one for one in asked}, undone),
        empty="There are no messages here.",
        sessionID=session.id,
        slug=session.slug,
        older=page.older,
        newer=page.newer,
        damaged=page.damaged or None,
    )
    for cursor, age, option in ((page.older, "older", "--before"), (page.newer, "newer", "--after")):
        if cursor is not None:
            remark(options, f"There are {age} ones: add {option} {cursor}")
    return note_damaged(page.damaged)


async def pending_undo(tk: "Turnkeeper | Client", session: "Session") -> "Undone | None":
    """The beginning of a pending undo of a session."""
    from turnkeeper.cli.transcript import Undone
    from turnkeeper.model.refusal import NotFound

    revert = session.revert
    if revert is None:
        return None
    try:
        begin = (await tk.message(session.id, revert.message_id)).info
    except NotFound:
        return None
    return Undone(begin, is_inside=revert.part_id is not None or revert.keeps_message)


async def todo(id: names.SessionName, /, *, options: Options) -> None:
    """Show the task list of a session.

    With --json the answer is {"items": [{"content", "status", "priority"}]}.

    For example:
      turnkeeper session todo calm-otter
    """
    async with options.sessions(read_only=True) as tk:
        todos = await tk.todos(await names.session(tk, id))
    text = "The task list is empty."
    answer_items(options, todos, lambda screen: "\n".join(_todo(screen, one) for one in todos), empty=text)


async def _requests_of(
    tk: "Turnkeeper | Client", session: "Session"
) -> "Sequence[PermissionRequest | QuestionRequest]":
    return [one for one in await open_requests(tk, session.directory) if one.session_id == session.id]


def _session(screen: Screen, session: "Session", state: "ViewState | None", below: "Sequence[Session]") -> str:
    moment, children = session.time, sum(one.parent_id == session.id for one in below)
    size = f"{state.messages:,} with {plural(state.parts, 'part')}, in {plural(state.seq, 'event')}" if state else ""
    rows = [
        ("Title", screen.paint(one_line(session.title), "bold")),
        ("Session", screen.paint(session.id, "cyan")),
        ("Slug", harmless(session.slug)),
        ("Directory", screen.path(session.directory)),
        ("Project", harmless(session.project_id)),
        ("Parent", harmless(session.parent_id or "")),
        ("Fork of", _origin(session)),
        ("Imported from", _imported(session)),
        ("Agent", harmless(session.agent or "")),
        ("Model", harmless(f"{session.model.provider_id}/{session.model.id}") if session.model else ""),
        ("Created", f"{screen.date(moment.created)}  {screen.paint(screen.ago(moment.created), 'dim')}"),
        ("Updated", f"{screen.date(moment.updated)}  {screen.paint(screen.ago(moment.updated), 'dim')}"),
        ("Archived", screen.paint(screen.date(moment.archived), "yellow") if moment.archived is not None else ""),
        ("Messages", size),
        ("Children", f"{children:,}" if children else ""),
        ("Cost", _cost(session, below)),
        ("Tokens", ", ".join(f"{count:,} {kind}" for kind, count in token_kinds(session.tokens).items() if count)),
        ("Changed", _changed(session) if session.revert is None else ""),
        ("Undone", screen.paint(undone_words(session), "yellow")),
        ("Shared at", harmless(session.share.url) if session.share else ""),
    ]
    return fields(screen, rows)


def _cost(session: "Session", below: "Sequence[Session]") -> str:
    from turnkeeper.core.family import total_cost

    total = total_cost(session, below)
    own = f"${session.cost:,.4f}" if session.cost or total else ""
    return f"{own}, with child sessions ${total:,.4f}" if below and total else own


def _origin(session: "Session") -> str:
    if session.origin is None:
        return ""
    before = f", up to {session.origin.message_id}" if session.origin.message_id else ""
    then = f", as it was after event {session.origin.seq}" if session.origin.seq is not None else ""
    return harmless(f"{session.origin.session_id}{before}{then}")


def _imported(session: "Session") -> str:
    from turnkeeper.interop.imported import imported_from, program_of

    facts = imported_from(session)
    about = [facts.get("session"), facts.get("gitBranch") and f"branch {facts['gitBranch']}"]
    named = ", ".join(str(one) for one in about if one)
    return harmless(f"{program_of(session)}: {named}") if program_of(session) else ""


def _changed(session: "Session") -> str:
    if session.summary is None or not session.summary.files:
        return ""
    changed = session.summary
    return f"{plural(changed.files, 'file')}, +{changed.additions:,} -{changed.deletions:,} lines"


def undone_words(session: "Session") -> str:
    """The description of a pending undo and how it ends; empty if there is none."""
    if session.revert is None:
        return ""
    what = f" ({changed})" if (changed := _changed(session)) else ""
    return (
        f"from {harmless(session.revert.message_id)} on{what}; `session redo` brings it back, the next prompt makes it "
        "final"
    )


def _todo(screen: Screen, todo: "Todo") -> str:
    mark = TODO_MARKS.get(todo.status, "○")
    is_over = todo.status in ("completed", "cancelled")
    priority = screen.paint("  high", "yellow") if todo.priority == "high" and not is_over else ""
    return f"{mark} {screen.paint(one_line(todo.content), *(['dim'] if is_over else []))}{priority}"

"""Further routes for the web page: sessions, timeline, context, spending, tree, blame, recall, search, asks."""

from pathlib import Path
from typing import Annotated

import msgspec

from turnkeeper.core.blame import Blame
from turnkeeper.core.recall import RecallPage
from turnkeeper.core.stored_changes import stored_change
from turnkeeper.model.file_change import FileChange
from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.moments import moment
from turnkeeper.server.names import SessionName
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.routes.view import MomentQuery
from turnkeeper.sessions.context import ContextReport, report
from turnkeeper.sessions.overview import Overview
from turnkeeper.sessions.overview import overview as all_sessions
from turnkeeper.sessions.search import Found
from turnkeeper.sessions.search import search as found_words
from turnkeeper.sessions.spending import Spending, spending
from turnkeeper.sessions.timeline import Timeline, timeline
from turnkeeper.sessions.tree import Tree, tree
from turnkeeper.workspace import files
from turnkeeper.workspace.project import identify


class BlameQuery(Value):
    """A file of the session's project: a path below it, or a whole path."""

    file: Annotated[str, msgspec.Meta(min_length=1, max_length=4096)]


class RecallQuery(Value):
    """Which characters of the text to return."""

    offset: Annotated[int, msgspec.Meta(ge=0, le=2**53)] = 0
    limit: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 100_000


class SearchQuery(Value):
    """Words to look for, in all sessions or in one."""

    words: Annotated[str, msgspec.Meta(max_length=500)]
    session: SessionName | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 30


class OverviewQuery(Value):
    """``cursor`` is ``older`` of the previous page."""

    limit: Annotated[int, msgspec.Meta(ge=1, le=200)] = 60
    cursor: str | None = None


class AllAsks(Value, omit_defaults=False):
    """Everything that waits for the user, in all sessions."""

    permissions: tuple[PermissionRequest, ...]
    questions: tuple[QuestionRequest, ...]


async def overview(call: HttpRequest[OverviewQuery, None]) -> Overview:
    """Sessions of all projects in pages, newest activity first, each with its status and cost and its descendants."""
    return await all_sessions(call.turnkeeper.store, limit=call.query.limit, after=call.query.cursor)


async def events(call: PlainRequest) -> Timeline:
    """The turns and epochs of a session, and what else stands out in its log; each with its seq."""
    return await timeline(call.turnkeeper.store, call.session_id)


async def context(call: HttpRequest[MomentQuery, None]) -> ContextReport:
    """The System Context of a session, and how much of each request could be reused; now, or after an event."""
    view, _ = await moment(call, call.query.at)
    return await report(call.turnkeeper.store, view)


async def ledger(call: HttpRequest[MomentQuery, None]) -> Spending:
    """What a session has cost: the rows of its ledger, and their sums by model and purpose; now, or after an event.

    After an event it is without Child Sessions.
    """
    _, queries = await moment(call, call.query.at)
    return await spending(queries, call.session_id)


async def changes(call: HttpRequest[MomentQuery, None]) -> tuple[FileChange, ...]:
    """The files that a session changed, without what is undone; now, or after an event."""
    _, queries = await moment(call, call.query.at)
    if (await queries.session(call.session_id)).revert is None:
        return tuple(map(stored_change, await queries.diffs(call.session_id)))
    return await call.turnkeeper.changes(call.session_id, at=call.query.at)


async def relatives(call: PlainRequest) -> Tree:
    """The parents, Child Sessions and forks of a session."""
    return await tree(call.turnkeeper.store, call.session_id)


async def blame(call: HttpRequest[BlameQuery, None]) -> Blame:
    """Which session, turn and tool call last wrote each line of a file of the session's project."""
    session = await call.turnkeeper.get(call.session_id)
    if "\0" in call.query.file:
        raise Invalid("the name of a file has no NUL in it")
    place = await identify(session.directory)
    # Outside of a repository the worktree is the root of the disk.
    top = place.worktree if place.vcs else Path(session.directory)
    file = files.real(Path(session.directory, call.query.file))
    if not file.is_relative_to(files.real(top)):
        raise Invalid(f"{call.query.file!r} is not in the project of the session")
    return await call.turnkeeper.blame(file)


async def recall(call: HttpRequest[RecallQuery, None]) -> RecallPage:
    """A text of a session by its recall handle, also one that requests leave out."""
    wanted = call.query
    return await call.turnkeeper.recall(
        call.session_id, call.params["handle"], offset=wanted.offset, limit=wanted.limit
    )


async def search(call: HttpRequest[SearchQuery, None]) -> list[Found]:
    """Messages and titles that contain all of these words, newest first, with the words around them."""
    wanted = call.query
    return await found_words(
        call.turnkeeper.store, wanted.words, session_id=wanted.session, limit=wanted.limit, damaged=[]
    )


async def asks(call: PlainRequest) -> AllAsks:
    """Every permission request and question that waits for the user, of all directories."""
    permissions, questions = await call.turnkeeper.permissions(), await call.turnkeeper.questions()
    return AllAsks(permissions=public(tuple(permissions)), questions=public(tuple(questions)))


ROUTES = (
    route("GET", "/tk/sessions", "turnkeeper.sessions", overview),
    route("GET", "/tk/session/{sessionID}/timeline", "turnkeeper.session.timeline", events, NotFound),
    route("GET", "/tk/session/{sessionID}/context", "turnkeeper.session.context", context, NotFound),
    route("GET", "/tk/session/{sessionID}/ledger", "turnkeeper.session.ledger", ledger, NotFound),
    route("GET", "/tk/session/{sessionID}/changes", "turnkeeper.session.changes", changes, NotFound),
    route("GET", "/tk/session/{sessionID}/tree", "turnkeeper.session.tree", relatives, NotFound),
    route("GET", "/tk/session/{sessionID}/blame", "turnkeeper.session.blame", blame, NotFound),
    route("GET", "/tk/session/{sessionID}/recall/{handle}", "turnkeeper.session.recall", recall, NotFound),
    route("GET", "/tk/search", "turnkeeper.search", search, NotFound),
    route("GET", "/tk/asks", "turnkeeper.asks", asks),
)

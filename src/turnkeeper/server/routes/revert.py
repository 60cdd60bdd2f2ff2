"""Reverts of both generations: set history and files aside from a message on, bring them back, or remove them."""

from typing import Annotated

from msgspec import Meta

from turnkeeper.model.refusal import Busy, Conflict, NotFound
from turnkeeper.model.restore import Reverted
from turnkeeper.model.session import Revert, Session
from turnkeeper.model.value import Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.names import MessageName
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route


class RevertBody(Value):
    """From where on history and files are set aside: a message, or a part of one."""

    message_id: MessageName
    part_id: Annotated[str, Meta(pattern="^prt")] | None = None


class StageBody(Value):
    """The last message that stays, and whether files are put back."""

    message_id: MessageName
    files: bool = True


class UndoBody(Value):
    """The message from which on is undone, by default the last prompt. ``dry_run``: nothing is done yet."""

    message_id: MessageName | None = None
    dry_run: bool = False


class RedoBody(Value):
    """``dry_run``: nothing is done yet."""

    dry_run: bool = False


class StagedRevert(Value):
    """A revert that is pending."""

    data: Revert


async def revert(call: HttpRequest[None, RevertBody]) -> Session:
    """Set history and files aside. Nothing changes if there is no such message, as clients expect."""
    session = await call.turnkeeper.get(call.session_id)
    try:
        done = await call.turnkeeper.revert(call.session_id, call.body.message_id, part_id=call.body.part_id)
    except NotFound:
        return public(session)
    return public(done.session)


async def unrevert(call: PlainRequest) -> Session:
    """Bring back what was set aside."""
    return public((await call.turnkeeper.unrevert(call.session_id)).session)


async def undo(call: HttpRequest[None, UndoBody]) -> Reverted:
    """Undo the last prompt, or only say what would become of each file."""
    given = call.body
    done = await call.turnkeeper.undo(call.session_id, message_id=given.message_id, dry_run=given.dry_run)
    return done.but(session=public(done.session))


async def redo(call: HttpRequest[None, RedoBody]) -> Reverted:
    """Bring back the first prompt that was undone, or only say what would become of each file."""
    done = await call.turnkeeper.redo(call.session_id, dry_run=call.body.dry_run)
    return done.but(session=public(done.session))


async def stage(call: HttpRequest[None, StageBody]) -> StagedRevert:
    """Set aside what comes after a message."""
    await call.turnkeeper.get(call.session_id)
    try:
        done = await call.turnkeeper.stage_revert(call.session_id, call.body.message_id, files=call.body.files)
    except NotFound as error:
        raise Missing("Message", call.body.message_id) from error
    assert done.session.revert is not None, "one was just staged"
    return StagedRevert(data=public(done.session.revert))


async def clear(call: PlainRequest) -> None:
    """Bring back what was set aside."""
    await call.turnkeeper.unrevert(call.session_id)


async def commit(call: PlainRequest) -> None:
    """Remove what was set aside for good. The message stays."""
    await call.turnkeeper.commit_revert(call.session_id)


ROUTES = (
    route("POST", "/session/{sessionID}/revert", "session.revert", revert, Busy, Conflict, NotFound),
    route("POST", "/session/{sessionID}/unrevert", "session.unrevert", unrevert, Busy, Conflict, NotFound),
    route("POST", "/session/{sessionID}/undo", "turnkeeper.session.undo", undo, Busy, Conflict, NotFound),
    route("POST", "/session/{sessionID}/redo", "turnkeeper.session.redo", redo, Busy, Conflict, NotFound),
    route(
        "POST",
        "/api/session/{sessionID}/revert/stage",
        "v2.session.revert.stage",
        stage,
        Busy,
        Conflict,
        NotFound,
    ),
    route("POST", "/api/session/{sessionID}/revert/clear", "v2.session.revert.clear", clear, Busy, Conflict, NotFound),
    route(
        "POST", "/api/session/{sessionID}/revert/commit", "v2.session.revert.commit", commit, Busy, Conflict, NotFound
    ),
)

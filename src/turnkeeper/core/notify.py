"""Notifications of the first generation of the API, derived from the changes of an event.

The server derives the notifications of the second generation (``server/v2/live.py``).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias, assert_never

from turnkeeper.core import changes as c
from turnkeeper.core.blobs import lower, lower_json
from turnkeeper.core.changes import Change
from turnkeeper.core.entry import Recorded, event_id
from turnkeeper.core.view import OpenAsk, OpenTurn, PermissionAsk, QuestionAsk
from turnkeeper.model.failure import UnknownData, UnknownFailure
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import KINDS, Delta, Notification
from turnkeeper.model.parts import Part, ReasoningPart
from turnkeeper.model.permission import PermissionRequest
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.session import Session
from turnkeeper.model.status import Idle, Status
from turnkeeper.model.value import Value

Said: TypeAlias = tuple[str, dict[str, object]]


def notify(session: Session, recorded: Recorded, changes: Iterable[Change], link: str = "") -> list[Notification]:
    """The notifications of one event, in the order of its changes. ``session`` is the session after the event.

    ``link`` is the hash of the event's entry; notification ids are derived from it.
    """
    seq, time, _ = recorded
    said = [one for change in changes for one in _of_change(change, time)]
    return [
        _notification(session, seq, kind, body, id=event_id(recorded, link, nth), time=time)
        for nth, (kind, body) in enumerate(said)
    ]


def grown(session: Session, turn: OpenTurn | None, changes: Iterable[Change]) -> list[Delta]:
    """The text that an event adds to open parts, for subscribers in other processes than the one that streamed it."""
    return [
        Delta(
            session_id=session.id,
            directory=session.directory,
            message_id=change.message_id,
            part_id=change.part_id,
            field="text",
            delta=change.text,
            offset=change.offset,
            kind="reasoning" if isinstance(turn.parts.get(change.part_id), ReasoningPart) else "text",
        )
        for change in changes
        if isinstance(change, c.PartGrown) and turn is not None
    ]


def spelt_out(notification: Notification, texts: Mapping[str, str]) -> Notification:
    """The notification with blobs in place of their marks, for subscribers without access to the store."""
    properties = {name: _spelt_out(value, texts) for name, value in notification.properties.items()}
    return notification.but(properties=properties)


def _spelt_out(value: object, texts: Mapping[str, str]) -> object:
    if isinstance(value, Value):
        return lower(value, texts)
    if isinstance(value, tuple):
        return tuple(_spelt_out(item, texts) for item in value)
    return lower_json(value, texts)


def deleted(session: Session, seq: int = 0) -> Notification:
    """The last notification of a session: it was removed."""
    return _notification(session, seq, "session.deleted", {"info": session})


def open_part(session: Session, turn: OpenTurn, part: Part) -> list[Notification]:
    """An open part with what is known of its text, for subscribers that were not told when it began."""
    return [_notification(session, 0, kind, body) for kind, body in _message(turn.message, [part], 0)]


def open_turn(session: Session, status: Status, messages: Iterable[MessageWithParts]) -> list[Notification]:
    """The status and the messages of a running turn, for subscribers that were not told when it began."""
    said: list[Said] = [("session.status", {"status": status})]
    for one in messages:
        said += _message(one.info, one.parts, 0)
    return [_notification(session, 0, kind, body) for kind, body in said]


def asked(session: Session, ask: OpenAsk) -> Notification:
    """A request that waits for an answer, for a client that was not connected when it was made."""
    return _notification(session, 0, *_asked(ask))


def _notification(
    session: Session, seq: int, kind: str, body: dict[str, object], *, id: str = "", time: int = 0
) -> Notification:
    return KINDS.get(kind, Notification)(
        id=id,
        time=time,
        type=kind,
        session_id=session.id,
        directory=session.directory,
        seq=seq,
        properties={"sessionID": session.id, **body},
        project_id=session.project_id,
    )


def _of_change(change: Change, time: int) -> Iterator[Said]:
    match change:
        case c.SessionPut(session=session, is_new=is_new):
            yield ("session.created" if is_new else "session.updated"), {"info": session}
        case c.MessagePut(message=message, parts=parts):
            yield from _message(message, parts, time)
        case c.ContextPut(message=message):
            yield from _message(message, (), time)
        case c.PromptPut(prompt=prompt):
            # Clients show a prompt from the moment it is safe, also one that waits behind a running turn.
            message = prompt.message if prompt.message.seq else prompt.message.but(seq=prompt.seq)
            yield from _message(message, prompt.parts, time)
        case c.PromptGone(message_id=message_id):
            yield "message.removed", {"messageID": message_id}
        case c.TurnOpened(message=message):
            yield from _message(message, (), time)
            yield from _error(message)
        case c.TurnClosed(message=message):
            yield from _message(message, (), time)
            yield from _error(message)
            if message.summary and message.error is None:
                yield "session.compacted", {}
        case c.MessageGone(message_id=message_id, part_ids=ids):
            for part_id in ids:
                yield "message.part.removed", {"messageID": message_id, "partID": part_id}
            yield "message.removed", {"messageID": message_id}
        case c.PartPut(part=part):
            yield "message.part.updated", {"part": part, "time": time}
        case c.PartGone(message_id=message_id, part_id=part_id):
            yield "message.part.removed", {"messageID": message_id, "partID": part_id}
        case c.PartsRejected(reason=reason, is_running=is_running):
            if is_running:
                yield "session.error", {"error": UnknownFailure(data=UnknownData(message=reason))}
        case c.AskPut(ask=ask):
            yield _asked(ask)
        case c.AskAnswered(ask=ask) | c.AskGone(ask=ask):
            yield _answered(ask)
        case c.TodosPut(todos=todos):
            yield "todo.updated", {"todos": todos}
        case c.DiffsPut(diffs=diffs):
            if diffs is not None:
                yield "session.diff", {"diff": diffs}
        case c.StatusPut(status=status):
            yield "session.status", {"status": status}
            if isinstance(status, Idle):
                yield "session.idle", {}
        case (
            c.DirectoryPut() | c.AgentPut() | c.ModelPut() | c.RevertPut() | c.RevertGone() | c.Spent() | c.PartGrown()
        ):
            pass  # Part of the session record, or sent as a delta: while it was read, and by ``grown``.
        case _:
            assert_never(change)


def _asked(ask: OpenAsk) -> Said:
    request = ask.request
    body: dict[str, object] = {"id": request.id}
    match request:
        case PermissionRequest():
            body |= {"permission": request.permission, "patterns": request.patterns}
            body |= {"metadata": request.metadata, "always": request.always, "tool": request.tool}
            return "permission.asked", body
        case QuestionRequest():
            return "question.asked", body | {"questions": request.questions, "tool": request.tool}


def _answered(ask: OpenAsk) -> Said:
    """That an ask needs no answer any more. One that was taken back unanswered counts as rejected."""
    body: dict[str, object] = {"requestID": ask.request.id}
    match ask:
        case PermissionAsk(reply=reply):
            return "permission.replied", body | {"reply": reply.answer if reply is not None else "reject"}
        case QuestionAsk(reply=QuestionReply(answers=answers)) if answers is not None:
            return "question.replied", body | {"answers": answers}
        case QuestionAsk():
            return "question.rejected", body


def _message(message: Message, parts: Iterable[Part], time: int) -> Iterator[Said]:
    yield "message.updated", {"info": message}
    for part in parts:
        yield "message.part.updated", {"part": part, "time": time}


def _error(message: AssistantMessage) -> Iterator[Said]:
    if message.error is not None:
        yield "session.error", {"error": message.error}

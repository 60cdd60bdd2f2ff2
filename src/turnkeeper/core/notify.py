"""Notifications of the first generation of the API, derived from an event and the views around it.

The server derives those of the second generation (``server/v2/live.py``).
"""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.core.blobs import lower, lower_json
from turnkeeper.core.entry import Recorded, event_id
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.failure import UnknownData, UnknownFailure
from turnkeeper.model.message import Message
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.status import Idle
from turnkeeper.model.value import Value

Said: TypeAlias = tuple[str, dict[str, object]]


def notify(before: SessionView | None, recorded: Recorded, after: SessionView, link: str = "") -> list[Notification]:
    """The notifications of one event, in the order clients expect: what changed, then the session if it changed too.

    ``link`` is the hash of its entry, from which their ids are derived.
    """
    said = _of_event(before, recorded)
    if before is None:
        said.insert(0, ("session.created", {"info": after.session}))
    elif before.session is not after.session and before.session != after.session:
        said.append(("session.updated", {"info": after.session}))
    seq, time, _ = recorded
    return [
        _notification(after.session, seq, kind, body, id=event_id(recorded, link, nth), time=time)
        for nth, (kind, body) in enumerate(said)
    ]


def spelt_out(notification: Notification, texts: Mapping[str, str]) -> Notification:
    """The notification with blobs in the place of their marks, for subscribers who have no store to ask."""
    properties = {name: _spelt_out(value, texts) for name, value in notification.properties.items()}
    return notification.but(properties=properties)


def _spelt_out(value: object, texts: Mapping[str, str]) -> object:
    if isinstance(value, Value):
        return lower(value, texts)
    if isinstance(value, tuple):
        return tuple(_spelt_out(item, texts) for item in value)
    return lower_json(value, texts)


def deleted(session: Session, seq: int = 0) -> Notification:
    """The last thing told of a session."""
    return _notification(session, seq, "session.deleted", {"info": session})


def _notification(
    session: Session, seq: int, kind: str, body: dict[str, object], *, id: str = "", time: int = 0
) -> Notification:
    return Notification(
        id=id,
        time=time,
        type=kind,
        session_id=session.id,
        directory=session.directory,
        seq=seq,
        properties={"sessionID": session.id, **body},
        project_id=session.project_id,
    )


def _of_event(before: SessionView | None, recorded: Recorded) -> list[Said]:
    seq, time, event = recorded
    match event:
        case e.MessageRecorded(message=message, parts=parts):
            return [_message(message, seq), *(_part(part, time) for part in parts)]
        case e.PromptAdmitted(message=message, parts=parts):
            # Clients show a prompt from the moment it is safe, also one that waits behind a running turn.
            return [_message(message, seq), *(_part(part, time) for part in parts)]
        case e.PromptWithdrawn(message_id=message_id):
            return [("message.removed", {"messageID": message_id})]
        case e.PromptPromoted(message_id=message_id) if before is not None:
            prompt = next(p for p in before.inbox if p.message.id == message_id)
            return [_message(prompt.message, seq), *(_part(part, time) for part in prompt.parts)]
        case e.TurnStarted(message=message) | e.TurnEnded(message=message):
            if isinstance(event, e.TurnEnded) and before is not None and before.turn is not None:
                seq = before.turn.message.seq
            more: list[Said] = [("session.error", {"error": message.error})] if message.error is not None else []
            if isinstance(event, e.TurnEnded) and message.summary and message.error is None:
                more.append(("session.compacted", {}))
            return [_message(message, seq), *more]
        case e.ContextAdmitted(message=system):
            return [_message(system, seq)]
        case e.MessageRemoved(message_id=message_id, part_ids=ids):
            gone: list[Said] = [
                ("message.part.removed", {"messageID": message_id, "partID": part_id}) for part_id in ids
            ]
            return [*gone, ("message.removed", {"messageID": message_id})]
        case e.PartRecorded(part=part):
            return [_part(part, time)]
        case e.PartRemoved(message_id=message_id, part_id=part_id):
            return [("message.part.removed", {"messageID": message_id, "partID": part_id})]
        case e.PartsQuarantined(reason=reason) if before is not None and not isinstance(before.status, Idle):
            return [("session.error", {"error": UnknownFailure(data=UnknownData(message=reason))})]
        case e.TodosSet(todos=todos):
            return [("todo.updated", {"todos": todos})]
        case e.SummaryRecorded(diffs=diffs) if diffs is not None:
            return [("session.diff", {"diff": diffs})]
        case e.StatusChanged(status=status) if before is None or before.status != status:
            idle: list[Said] = [("session.idle", {})] if isinstance(status, Idle) else []
            return [("session.status", {"status": status}), *idle]
        case _:
            return []


def _message(message: Message, seq: int) -> Said:
    return ("message.updated", {"info": message if message.seq else message.but(seq=seq)})


def _part(part: Part, time: int) -> Said:
    return ("message.part.updated", {"part": part, "time": time})

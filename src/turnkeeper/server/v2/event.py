"""Events of the second generation, ``session.next.*``: a pure projection of the log, entry by entry.

The events of an entry depend only on its changes. A live stream has the changes from the journal and a replay folds
them from the log, so both give equal events with equal numbers.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, TypeAlias, assert_never

from turnkeeper.core import changes as c
from turnkeeper.core.changes import Change
from turnkeeper.core.entry import Recorded, digest, event_id
from turnkeeper.model.event import Delivery
from turnkeeper.model.identifier import pack
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part
from turnkeeper.server.public import public
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.part_event import NamedEvent, part_events
from turnkeeper.server.v2.shape import NUMBERS_PER_ENTRY, number

Reason: TypeAlias = Literal["auto", "manual"]


class NextEvent(Notification):
    """An event of the second generation. ``number`` is its position among the events of its session."""

    number: int
    version: int = 1


def compaction_parent(changes: Iterable[Change]) -> str | None:
    """The message that requested the compaction which these changes complete; None if they complete none."""
    for change in changes:
        match change:
            case c.TurnClosed(message=message) | c.MessagePut(message=AssistantMessage() as message, is_new=True):
                if message.summary and message.error is None and message.time.completed is not None:
                    return message.parent_id
            case _:
                pass
    return None


def next_events(
    recorded: Recorded, changes: Iterable[Change], session: tuple[str, str, str | None], reason: Reason
) -> list[NextEvent]:
    """The events of an entry, in order. ``session`` is its id, its directory and its project.

    ``reason`` is the reason of the compaction that the entry completes, if it completes one (``compaction_parent``).
    At most NUMBERS_PER_ENTRY events are made; the messages of the session have the rest.
    """
    session_id, directory, project_id = session
    seq, time, _ = recorded
    found = (one for change in changes for one in _events(change, recorded, reason))
    numbered = list(zip(range(NUMBERS_PER_ENTRY), found, strict=False))
    # Event ids differ from those of the first generation. They do not use the entry's hash, which a replay of a page of
    # the log does not have.
    link = digest(f"{session_id}/{seq}".encode()) if numbered else ""
    return [
        NextEvent(
            type=f"session.next.{kind}",
            session_id=session_id,
            directory=directory,
            project_id=project_id,
            seq=seq,
            time=time,
            number=number(seq, nth),
            version=2 if kind in ("step.ended", "step.failed") else 1,
            id=event_id(recorded, link, NUMBERS_PER_ENTRY + nth),
            properties={"timestamp": time, "sessionID": session_id, **body},
        )
        for nth, (kind, body) in numbered
    ]


def switch_id(time: int, seq: int) -> str:
    """The id of the message that shows a switch of agent or model. It contains the seq of its entry."""
    return f"msg_{pack(time, seq & 0xFFF, False)}{seq:014d}"


def _events(change: Change, recorded: Recorded, reason: Reason) -> Iterator[NamedEvent]:
    match change:
        case c.PromptPut(prompt=prompt):
            yield "prompt.admitted", _prompt(prompt.message.id, prompt.parts, prompt.delivery)
        case c.MessagePut(message=message, parts=parts, is_new=is_new, delivery=delivery):
            if delivery is not None:
                yield "prompted", _prompt(message.id, parts, delivery)
            elif is_new:
                yield from _message(message, parts, reason)
        case c.ContextPut(message=message):
            yield "context.updated", {"messageID": message.id, "text": shape.text_of(message)}
        case c.TurnOpened(message=message, is_asked=is_asked):
            if is_asked and not message.summary:
                yield _started(message)
        case c.PartPut(part=part, turn=turn):
            if turn is not None and not turn.message.summary:
                yield from part_events(turn.message.id, turn.parts, part)
        case c.TurnClosed(message=message, turn=turn):
            yield from _ended(message, list(turn.parts.values()), reason)
        case c.AgentPut(agent=agent, is_for_prompt=is_for_prompt):
            if agent is not None and not is_for_prompt:
                yield "agent.switched", {"messageID": switch_id(recorded.time, recorded.seq), "agent": agent}
        case c.ModelPut(model=model, is_for_prompt=is_for_prompt):
            if model is not None and not is_for_prompt:
                yield "model.switched", {"messageID": switch_id(recorded.time, recorded.seq), "model": model}
        case c.DirectoryPut(directory=directory):
            yield "moved", {"location": {"directory": directory}}
        case c.RevertPut(revert=revert):
            yield "revert.staged", {"revert": public(revert)}
        case c.RevertGone(removed_from=None):
            yield "revert.cleared", {}
        case c.RevertGone(removed_from=message_id):
            yield "revert.committed", {"messageID": message_id}
        case (
            c.SessionPut()
            | c.DiffsPut()
            | c.TodosPut()
            | c.StatusPut()
            | c.Spent()
            | c.PromptGone()
            | c.MessageGone()
            | c.PartGrown()
            | c.PartGone()
            | c.PartsRejected()
            | c.AskPut()
            | c.AskAnswered()
            | c.AskGone()
        ):
            return  # The second generation has no event for these.
        case _:
            assert_never(change)


def _prompt(message_id: str, parts: Sequence[Part], delivery: Delivery) -> dict[str, object]:
    return {"messageID": message_id, "prompt": shape.prompt_of(parts), "delivery": delivery}


def _message(message: object, parts: Sequence[Part], reason: Reason) -> Iterator[NamedEvent]:
    """The events of a message that was recorded whole: by the runtime, a fork or an import."""
    if isinstance(message, UserMessage):
        if (mark := shape.compaction_of(parts)) is not None:
            yield "compaction.started", {"messageID": message.id, "reason": "auto" if mark.auto else "manual"}
        elif shape.is_introduction(parts):
            return
        elif shape.is_synthetic(parts):
            texts = [getattr(part, "text", "") for part in parts]
            yield "synthetic", {"messageID": message.id, "text": "\n".join(texts)}
        else:
            yield "prompted", _prompt(message.id, parts, "steer")
    elif isinstance(message, AssistantMessage):
        if not message.summary and not shape.is_shell(parts):
            yield _started(message)
        if not message.summary:
            for nth, part in enumerate(parts):
                yield from part_events(message.id, {one.id: one for one in parts[:nth]}, part)
        if message.time.completed is not None:
            yield from _ended(message, parts, reason)


def _started(message: AssistantMessage) -> NamedEvent:
    body: dict[str, object] = {
        "assistantMessageID": message.id,
        "agent": message.agent,
        "model": shape.model_of(message),
    }
    return "step.started", body


def _ended(message: AssistantMessage, parts: Sequence[Part], reason: Reason) -> Iterator[NamedEvent]:
    if message.summary:
        if message.error is None:
            body: dict[str, object] = {
                "messageID": message.parent_id,
                "reason": reason,
                "text": shape.said(parts),
                "recent": "",
            }
            yield "compaction.ended", body
        return
    if shape.is_shell(parts):
        return
    whose = {"assistantMessageID": message.id}
    if message.error is not None:
        yield "step.failed", {**whose, "error": shape.error_of(message.error)}
        return
    tokens = shape.usage(message.tokens)
    yield "step.ended", {**whose, "finish": message.finish or "unknown", "cost": message.cost, "tokens": tokens}

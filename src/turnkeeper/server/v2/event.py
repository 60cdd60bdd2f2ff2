"""Events of the second generation, ``session.next.*``: a pure projection of the log, entry by entry.

What an entry is told as depends on the entry and on what was open before it (``Past``), and on nothing else: told
again from the log, it is the same events under the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from turnkeeper.core.entry import Recorded, digest, event_id
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Delivery, Event
from turnkeeper.model.identifier import pack
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.part_event import Told, part_events
from turnkeeper.server.v2.shape import NUMBERS_PER_ENTRY, number

Reason: TypeAlias = Literal["auto", "manual"]


class NextEvent(Notification):
    """One event of the second generation. ``number`` is its place among those of its session."""

    number: int
    version: int = 1


class Waiting(msgspec.Struct, frozen=True):
    """A prompt in the inbox."""

    message: UserMessage
    parts: Sequence[Part]
    delivery: Delivery


class Past(msgspec.Struct, frozen=True):
    """What was open before an entry."""

    turn: AssistantMessage | None = None
    parts: Mapping[str, Part] = msgspec.field(default_factory=dict)
    inbox: Mapping[str, Waiting] = msgspec.field(default_factory=dict)
    reason: Reason = "auto"
    """Why the newest compaction began."""
    admitted: UserMessage | None = None
    """The prompt that the entry before admitted: what is selected for it belongs to it and is no switch."""

    @classmethod
    def of(cls, view: SessionView | None, before: "Past | None" = None) -> "Past":
        """What a view has open; ``before`` is what is remembered of the same session."""
        known = before or cls()
        if view is None:
            return known
        inbox = {one.message.id: Waiting(one.message, one.parts, one.delivery) for one in view.inbox}
        turn = view.turn
        return replace(
            known,
            turn=turn.message if turn is not None else None,
            parts=turn.parts if turn is not None else {},
            inbox=inbox,
        )

    def after(self, event: Event) -> "Past":
        """What is open after one more event, for those who have no view."""
        known = self.remembering(event)
        match event:
            case e.TurnStarted(message=message):
                return replace(known, turn=message, parts={})
            case e.TurnEnded():
                return replace(known, turn=None, parts={})
            case e.MessageRemoved(message_id=name) if self.turn is not None and self.turn.id == name:
                return replace(known, turn=None, parts={})
            case e.PartRecorded(part=part) if self.turn is not None and self.turn.id == part.message_id:
                return replace(known, parts={**self.parts, part.id: part})
            case e.PartRemoved(part_id=gone) if gone in self.parts:
                return replace(known, parts={name: part for name, part in self.parts.items() if name != gone})
            case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
                return replace(known, inbox={**self.inbox, message.id: Waiting(message, parts, delivery)})
            case e.PromptPromoted(message_id=name) | e.PromptWithdrawn(message_id=name):
                return replace(known, inbox={key: one for key, one in self.inbox.items() if key != name})
            case _:
                return known

    def remembering(self, event: Event) -> "Past":
        """The same with what no view holds: why a compaction began, and whether a prompt was just admitted."""
        reason = self.reason
        if isinstance(event, e.MessageRecorded) and (mark := shape.compaction_of(event.parts)) is not None:
            reason = "auto" if mark.auto else "manual"
        admitted = event.message if isinstance(event, e.PromptAdmitted) else None
        if self.admitted is not None and is_for(self.admitted, event):
            admitted = self.admitted
        return replace(self, reason=reason, admitted=admitted)


def is_for(prompt: UserMessage | None, event: Event) -> bool:
    """Whether a selection is that of a prompt which was admitted just before, and no switch of its own."""
    match event:
        case e.AgentSelected(agent=agent):
            return prompt is not None and prompt.agent == agent
        case e.ModelSelected(model=model) if prompt is not None and model is not None:
            return (prompt.model.provider_id, prompt.model.model_id) == (model.provider_id, model.id)
        case _:
            return False


def next_events(past: Past, recorded: Recorded, session: tuple[str, str, str | None]) -> list[NextEvent]:
    """What an entry is told as, in order. ``session`` is its id, its directory and its project.

    An entry that would be more than its share of numbers is told as far as they reach; messages have the rest.
    """
    session_id, directory, project_id = session
    seq, time, _ = recorded
    told = list(zip(range(NUMBERS_PER_ENTRY), _told(past, recorded), strict=False))
    # Not the ids under which the first generation tells of the same entry; and who reads a log page by page has the
    # hash of no entry.
    link = digest(f"{session_id}/{seq}".encode()) if told else ""
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
        for nth, (kind, body) in told
    ]


def switch_id(time: int, seq: int) -> str:
    """The id of the message that a switch of agent or model is shown as. It holds the place of its entry."""
    return f"msg_{pack(time, seq & 0xFFF, False)}{seq:014d}"


def _told(past: Past, recorded: Recorded) -> Iterator[Told]:
    seq, time, event = recorded
    match event:
        case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
            yield "prompt.admitted", _prompt(message.id, parts, delivery)
        case e.PromptPromoted(message_id=name) if name in past.inbox:
            waiting = past.inbox[name]
            yield "prompted", _prompt(name, waiting.parts, waiting.delivery)
        case e.MessageRecorded(message=message, parts=parts) if not message.seq:
            yield from _message(past, message, parts)
        case e.ContextAdmitted(message=message):
            yield "context.updated", {"messageID": message.id, "text": shape.text_of(message)}
        case e.TurnStarted(message=message, prefix=prefix) if prefix is not None and not message.summary:
            yield _started(message)
        case e.PartRecorded(part=part) if past.turn is not None and past.turn.id == part.message_id:
            if not past.turn.summary:
                yield from part_events(past.turn.id, past.parts, part)
        case e.TurnEnded(message=message):
            yield from _ended(past, message, list(past.parts.values()))
        case e.AgentSelected(agent=agent) if agent is not None and not is_for(past.admitted, event):
            yield "agent.switched", {"messageID": switch_id(time, seq), "agent": agent}
        case e.ModelSelected(model=model) if model is not None and not is_for(past.admitted, event):
            ref = shape.ModelRef(id=model.id, provider_id=model.provider_id, variant=model.variant)
            yield "model.switched", {"messageID": switch_id(time, seq), "model": ref}
        case e.SessionMoved(directory=directory):
            yield "moved", {"location": {"directory": directory}}
        case e.RevertStaged(revert=revert):
            yield "revert.staged", {"revert": revert}
        case e.RevertCleared():
            yield "revert.cleared", {}
        case e.RevertCommitted(message_id=name):
            yield "revert.committed", {"messageID": name}
        case _:
            return


def _prompt(message_id: str, parts: Sequence[Part], delivery: Delivery) -> dict[str, object]:
    return {"messageID": message_id, "prompt": shape.prompt_of(parts), "delivery": delivery}


def _message(past: Past, message: object, parts: Sequence[Part]) -> Iterator[Told]:
    """A message that came whole: said by the runtime, or copied by a fork or an import."""
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
            yield from _ended(past, message, parts)


def _started(message: AssistantMessage) -> Told:
    body: dict[str, object] = {
        "assistantMessageID": message.id,
        "agent": message.agent,
        "model": shape.model_of(message),
    }
    return "step.started", body


def _ended(past: Past, message: AssistantMessage, parts: Sequence[Part]) -> Iterator[Told]:
    if message.summary:
        if message.error is None:
            body: dict[str, object] = {
                "messageID": message.parent_id,
                "reason": past.reason,
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

"""Events of the second generation, ``session.next.*``: a pure projection of the log, entry by entry.

The events of an entry depend on the entry and on ``Past``, the state of the session before it, and on nothing else. A
live stream takes ``Past`` from the view before the entry, a replay folds it from the log; both give the same events
under the same numbers.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal, TypeAlias

import msgspec
from msgspec.structs import replace

from turnkeeper.core.entry import Recorded, digest, event_id
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Delivery, Event
from turnkeeper.model.identifier import pack
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part, ReasoningPart, TextPart
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.part_event import Told, part_events
from turnkeeper.server.v2.shape import NUMBERS_PER_ENTRY, number

Reason: TypeAlias = Literal["auto", "manual"]

SELECTIONS_MAX: Final = 2
"""An admission is followed by at most so many selections of its own: of an agent and of a model."""


class NextEvent(Notification):
    """One event of the second generation. ``number`` is its place among those of its session."""

    number: int
    version: int = 1


class Waiting(msgspec.Struct, frozen=True):
    """A prompt in the inbox; ``seq`` is the place of its admission in the log."""

    seq: int
    message: UserMessage
    parts: Sequence[Part]
    delivery: Delivery


class Past(msgspec.Struct, frozen=True):
    """What was open before an entry."""

    turn: AssistantMessage | None = None
    parts: Mapping[str, Part] = msgspec.field(default_factory=dict)
    inbox: Mapping[str, Waiting] = msgspec.field(default_factory=dict)

    @classmethod
    def of(cls, view: SessionView | None) -> "Past":
        """The state that a view holds."""
        if view is None:
            return cls()
        inbox = {one.message.id: Waiting(one.seq, one.message, one.parts, one.delivery) for one in view.inbox}
        turn = view.turn
        return cls(turn.message, turn.parts, inbox) if turn is not None else cls(inbox=inbox)

    def after(self, recorded: Recorded) -> "Past":
        """The state after one more entry, for a replay, which has no view."""
        seq, _, event = recorded
        turn_id = self.turn.id if self.turn is not None else None
        match event:
            case e.TurnStarted(message=message):
                return replace(self, turn=message, parts={})
            case e.TurnEnded():
                return replace(self, turn=None, parts={})
            case e.MessageRemoved(message_id=name) if name == turn_id:
                return replace(self, turn=None, parts={})
            case e.MessageRecorded(message=message, parts=parts) if (
                isinstance(message, AssistantMessage) and message.id == turn_id
            ):
                return replace(self, turn=message, parts={**self.parts, **{part.id: part for part in parts}})
            case e.PartRecorded(part=part) if part.message_id == turn_id:
                return replace(self, parts={**self.parts, part.id: part})
            case e.PartExtended(part_id=name, text=text):
                known = self.parts.get(name)
                if not isinstance(known, TextPart | ReasoningPart):
                    return self
                return replace(self, parts={**self.parts, name: known.but(text=known.text + text)})
            case e.PartRemoved(part_id=gone) if gone in self.parts:
                return replace(self, parts={name: part for name, part in self.parts.items() if name != gone})
            case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
                return replace(self, inbox={**self.inbox, message.id: Waiting(seq, message, parts, delivery)})
            case e.PromptPromoted(message_id=name) | e.PromptWithdrawn(message_id=name):
                return replace(self, inbox={key: one for key, one in self.inbox.items() if key != name})
            case _:
                return self

    def is_switch(self, recorded: Recorded) -> bool:
        """Whether a selection is a switch of its own, and not part of the admission of a waiting prompt."""
        newest = max(self.inbox.values(), key=lambda one: one.seq, default=None)
        is_near = newest is not None and recorded.seq - newest.seq <= SELECTIONS_MAX
        return newest is None or not is_near or not _is_for(newest.message, recorded.event)


def compaction_parent(event: Event) -> str | None:
    """The message that asked for the compaction which this event completes; None for any other event."""
    match event:
        case e.TurnEnded(message=message):
            pass
        case e.MessageRecorded(message=AssistantMessage() as message) if not message.seq:
            pass
        case _:
            return None
    is_complete = message.summary and message.error is None and message.time.completed is not None
    return message.parent_id if is_complete else None


def _is_for(prompt: UserMessage, event: Event) -> bool:
    """Whether a selection is what a prompt asks for."""
    match event:
        case e.AgentSelected(agent=agent):
            return prompt.agent == agent
        case e.ModelSelected(model=model) if model is not None:
            return (prompt.model.provider_id, prompt.model.model_id) == (model.provider_id, model.id)
        case _:
            return False


def next_events(
    past: Past, recorded: Recorded, session: tuple[str, str, str | None], reason: Reason
) -> list[NextEvent]:
    """The events of an entry, in order. ``session`` is its id, its directory and its project.

    ``reason`` is why the compaction began that the entry completes, if it completes one (``compaction_parent``).
    An entry that would be more than its share of numbers is told as far as they reach; messages have the rest.
    """
    session_id, directory, project_id = session
    seq, time, _ = recorded
    told = list(zip(range(NUMBERS_PER_ENTRY), _told(past, recorded, reason), strict=False))
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


def _told(past: Past, recorded: Recorded, reason: Reason) -> Iterator[Told]:
    seq, time, event = recorded
    match event:
        case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
            yield "prompt.admitted", _prompt(message.id, parts, delivery)
        case e.PromptPromoted(message_id=name) if name in past.inbox:
            waiting = past.inbox[name]
            yield "prompted", _prompt(name, waiting.parts, waiting.delivery)
        case e.MessageRecorded(message=message, parts=parts) if not message.seq:
            yield from _message(message, parts, reason)
        case e.ContextAdmitted(message=message):
            yield "context.updated", {"messageID": message.id, "text": shape.text_of(message)}
        case e.TurnStarted(message=message, prefix=prefix) if prefix is not None and not message.summary:
            yield _started(message)
        case e.PartRecorded(part=part) if past.turn is not None and past.turn.id == part.message_id:
            if not past.turn.summary:
                yield from part_events(past.turn.id, past.parts, part)
        case e.TurnEnded(message=message):
            yield from _ended(message, list(past.parts.values()), reason)
        case e.AgentSelected(agent=agent) if agent is not None and past.is_switch(recorded):
            yield "agent.switched", {"messageID": switch_id(time, seq), "agent": agent}
        case e.ModelSelected(model=model) if model is not None and past.is_switch(recorded):
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


def _message(message: object, parts: Sequence[Part], reason: Reason) -> Iterator[Told]:
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
            yield from _ended(message, parts, reason)


def _started(message: AssistantMessage) -> Told:
    body: dict[str, object] = {
        "assistantMessageID": message.id,
        "agent": message.agent,
        "model": shape.model_of(message),
    }
    return "step.started", body


def _ended(message: AssistantMessage, parts: Sequence[Part], reason: Reason) -> Iterator[Told]:
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

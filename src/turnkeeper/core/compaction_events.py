"""The events of a compaction: the marker that requests it, its Summary, and the prompts repeated after it."""

from collections.abc import Sequence
from typing import Protocol

from turnkeeper.core.agents import COMPACTION
from turnkeeper.core.compaction import Split, without_media
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.turn_ends import Ending
from turnkeeper.model.event import CompactingSet, Event, MessageRecorded
from turnkeeper.model.message import AssistantMessage, MessageTime, ModelChoice, UserMessage
from turnkeeper.model.parts import CompactionPart, Part, TextPart
from turnkeeper.model.parts.base import Span


class Ids(Protocol):
    """A source of new ids."""

    def message_id(self) -> str: ...
    def part_id(self) -> str: ...


def a_marker(user: UserMessage, ids: Ids, now: int, *, auto: bool, overflow: bool = False) -> MessageRecorded:
    """The user message that requests a compaction, with the agent and model of ``user``."""
    message = UserMessage(
        id=ids.message_id(),
        session_id=user.session_id,
        time=MessageTime(created=now),
        agent=user.agent,
        model=user.model,
        format=user.format,
        system=None,
        tools=user.tools,
    )
    part = CompactionPart(
        id=ids.part_id(),
        session_id=user.session_id,
        message_id=message.id,
        auto=auto,
        overflow=True if overflow else None,
    )
    return MessageRecorded(message=message, parts=(part,))


def summary_by(message: AssistantMessage, model: ModelChoice) -> AssistantMessage:
    """The message of a turn, changed into a Summary by this model."""
    return message.but(
        agent=COMPACTION,
        mode=COMPACTION,
        summary=True,
        provider_id=model.provider_id,
        model_id=model.model_id,
        variant=model.variant,
    )


def compacted(
    message: AssistantMessage,
    text: str,
    problem: str | None,
    marker: Sequence[Part],
    following: Sequence[Event],
    *,
    part_id: str,
    now: int,
) -> Ending:
    """The ending of a turn that wrote a Summary. ``problem`` is why a digest replaces the model's Summary."""
    part = TextPart(
        id=part_id,
        session_id=message.session_id,
        message_id=message.id,
        text=text,
        time=Span(start=message.time.created, end=now),
        metadata={"digest": True, "problem": problem} if problem is not None else None,
    )
    return Ending(finish="stop", parts=(part, *marker), after=(CompactingSet(at=None), *following))


def following(
    user: UserMessage, mark: CompactionPart, split: Split, words: str | None, ids: Ids, now: int
) -> list[Event]:
    """The messages after the Summary: the unanswered prompts, else a prompt with ``words``, if given."""
    if split.pending:
        return [_again(entry, ids, now, strip=bool(mark.overflow)) for entry in split.pending]
    if words is None:
        return []
    message = _copied(user, ids, now)
    part = TextPart(
        id=ids.part_id(),
        session_id=user.session_id,
        message_id=message.id,
        text=words,
        synthetic=True,
        metadata={"compaction_continue": True},
    )
    return [MessageRecorded(message=message, parts=(part,))]


def _again(entry: HistoryItem, ids: Ids, now: int, *, strip: bool) -> Event:
    """The event that repeats a prompt under new ids; ``strip`` replaces its media by text."""
    assert isinstance(entry.message, UserMessage), "prompts are the user's"
    message = _copied(entry.message, ids, now)
    parts = [without_media(part) if strip else part for part in entry.parts]
    copies = [part.but(id=ids.part_id(), message_id=message.id, seq=0, nth=0) for part in parts]
    return MessageRecorded(message=message, parts=tuple(copies))


def _copied(user: UserMessage, ids: Ids, now: int) -> UserMessage:
    return user.but(id=ids.message_id(), time=MessageTime(created=now), seq=0, summary=None, extra=None)

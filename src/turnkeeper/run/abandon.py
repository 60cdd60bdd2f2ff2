"""Abandon: close the turn that a dead process left open. Text is kept, calls are settled and never run again."""

from turnkeeper.core.transcribe import interrupted
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import CompactingSet, Event, MessageRemoved, PartRecorded, TurnEnded
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.parts import Part, ReasoningPart, RetryPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.run.pen import Pen

LOST = "the process that ran this turn is gone"


async def abandon(pen: Pen, view: SessionView, now: int) -> None:
    """Close the open turn, in one append."""
    await pen.append(*closing(view, now))


def closing(view: SessionView, now: int) -> list[Event]:
    """The events that close a turn nobody runs any more.

    A turn that had neither said nor called anything is taken back whole: its prompt is unanswered again and may
    safely be asked anew. Otherwise what there is stays, marked as interrupted.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is closed"
    ended = TurnEnded(
        message=turn.message.but(
            seq=0,
            error=AbortedFailure(data=MessageData(message=LOST)),
            time=turn.message.time.but(completed=now),
        )
    )
    if not any(_is_output(part) for part in turn.parts.values()):
        removed = MessageRemoved(message_id=turn.message.id, seq=turn.message.seq, part_ids=tuple(turn.parts))
        return [ended, removed, *_uncompacting(view)]
    closed = [PartRecorded(part=part) for one in turn.parts.values() if (part := _closed(one, now)) is not None]
    return [*closed, ended, *_uncompacting(view)]


def _uncompacting(view: SessionView) -> list[Event]:
    """Nobody compacts any more."""
    return [CompactingSet(at=None)] if view.session.time.compacting is not None else []


def _is_output(part: Part) -> bool:
    match part:
        case StepStartPart() | RetryPart() | TextPart(text="") | ReasoningPart(text="", metadata=None):
            return False
        case _:
            return True


def _closed(part: Part, now: int) -> Part | None:
    """A part as it must be once its turn is over; None if it is so already."""
    match part:
        case ToolPart(state=ToolPending() | ToolRunning()):
            return part.but(state=interrupted(part, now))
        case TextPart(time=time) if time is not None and time.end is None:
            return part.but(time=time.but(end=now))
        case ReasoningPart(time=time) if time.end is None:
            return part.but(time=time.but(end=now))
        case _:
            return None

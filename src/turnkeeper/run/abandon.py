"""Abandon: close the turn that a dead process left open. Text is kept, calls are settled and never run again."""

from collections.abc import Sequence

from turnkeeper.core.transcribe import interrupted
from turnkeeper.core.usage import add_costs
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.model.event import CompactingSet, Event, MessageRemoved, PartRecorded, TurnEnded, UsageRecorded
from turnkeeper.model.failure import AbortedFailure, MessageData
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.parts import Part, ReasoningPart, RetryPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.model.status import Retrying
from turnkeeper.run.pen import Pen

LOST = "the process that ran this turn is gone"


async def abandon(pen: Pen, view: SessionView, now: int) -> None:
    """Close the open turn, in one append."""
    assert view.turn is not None, "only an open turn is closed"
    await pen.append(*closing(view, now, billed=await pen.billed(view.turn.message.id)))


def closing(view: SessionView, now: int, *, billed: Sequence[LedgerRow] = ()) -> list[Event]:
    """The events that close a turn nobody runs any more. ``billed`` are the rows of the ledger that it has.

    A turn that had neither said nor called anything is taken back whole: its prompt is unanswered again and may
    safely be asked anew. Otherwise what there is stays, marked as interrupted. What it had cost until then is paid.
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
        return [*_bill(view, turn, billed), ended, removed, *_uncompacting(view)]
    closed = [PartRecorded(part=part) for one in turn.parts.values() if (part := _closed(one, now)) is not None]
    return [*closed, *_bill(view, turn, billed), ended, *_uncompacting(view)]


def _bill(view: SessionView, turn: OpenTurn, billed: Sequence[LedgerRow]) -> list[Event]:
    """The row of the ledger for the attempt that was under way, with what its provider had counted."""
    message = turn.message
    if message.summary or isinstance(view.status, Retrying) or _is_command(turn):
        return []
    row = UsageRecorded(
        purpose="turn",
        provider_id=message.provider_id,
        model_id=message.model_id,
        message_id=message.id,
        attempt=len(billed) + 1,
        tokens=message.tokens,
        cost=add_costs(message.cost, *(-row.cost for row in billed)),
    )
    return [row]


def _is_command(turn: OpenTurn) -> bool:
    """Whether the turn is a command that the user ran: a call that no model made."""
    kinds = set(map(type, turn.parts.values()))
    return ToolPart in kinds and StepStartPart not in kinds


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

"""Both ends of a turn: the message that opens it, and the events that close it.

| The turn | Error | Finish | Recorded before the end | After the end |
|---|---|---|---|---|
| has an answer | none, or the failure of the answer | the provider's reason | the mark of the step | a remedy |
| has a Summary | none | stop | the Summary, the marker | repeated prompts |
| ran the user's command | none | none | the call | |
| was stopped, by its user or an outage of the store | aborted | none | the call of a command | |
| raised an exception | unknown | none | | |
| was left by a dead process | aborted | none | its open parts, closed | its removal if it has no output |
| was left with calls that wait for the user | stays open | | its other parts, closed, the bill and the mark | |
| has been resumed, and its calls are settled | none | tool-calls | | |
| has been resumed, and the Child Session of a call was cut off | aborted | none | | |
"""

from collections.abc import Callable, Sequence

from turnkeeper.core.asks import is_suspended, is_waiting, waiting_calls
from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.next_action import DETACHED, PAUSED
from turnkeeper.core.transcribe import interrupted
from turnkeeper.core.usage import add_costs
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.model.event import (
    CompactingSet,
    Event,
    MessageRecorded,
    MessageRemoved,
    PartRecorded,
    TurnEnded,
    UsageRecorded,
)
from turnkeeper.model.failure import AbortedFailure, Failure, MessageData, UnknownData, UnknownFailure
from turnkeeper.model.message import AssistantMessage, AssistantTime, TurnPath, UserMessage
from turnkeeper.model.parts import Part, ReasoningPart, RetryPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolError, ToolPending, ToolRunning
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.status import Retrying
from turnkeeper.model.stream import FinishStep
from turnkeeper.model.value import Json, Value

LOST = "the process that ran this turn is gone"
CUT_OFF = "the process that ran a child session is gone"
OUTAGE = " because the store could not be written"
"""Said of a turn that neither its user nor the end of its process stopped."""
RESUMED = "tool-calls"
"""How the answer of a suspended turn finishes: with calls whose results are owed to the model."""


def open_turn(user: UserMessage, directory: str, worktree: str, *, id: str, now: int) -> AssistantMessage:
    """The empty assistant message with which a turn begins."""
    return AssistantMessage(
        id=id,
        session_id=user.session_id,
        time=AssistantTime(created=now),
        parent_id=user.id,
        model_id=user.model.model_id,
        provider_id=user.model.provider_id,
        variant=user.model.variant,
        mode=user.agent,
        agent=user.agent,
        path=TurnPath(cwd=directory, root=worktree),
        cost=0,
        tokens=ZERO_TOKENS,
    )


class Ending(Value):
    """How a turn ended. ``reason`` is the provider's finish reason, for the mark of the step; None without a mark."""

    failure: Failure | None = None
    finish: str | None = None
    reason: str | None = None
    structured: Json = None
    files: TurnFiles | None = None
    parts: tuple[Part, ...] = ()
    after: tuple[Event, ...] = ()


def answered(finish: FinishStep | None, failure: Failure | None, structured: Json = None) -> Ending:
    """The ending of a turn after its last attempt. ``failure`` is the failure of its answer, if any."""
    reason = finish.reason if finish is not None else None
    if failure is not None:
        return Ending(failure=failure, finish=reason or "error", reason=reason, structured=structured)
    is_paused = finish is not None and finish.is_paused
    return Ending(finish=PAUSED if is_paused else reason, reason=reason, structured=structured)


def refused(reason: str) -> Ending:
    """The ending of a turn whose request cannot be made."""
    return Ending(failure=UnknownFailure(data=UnknownData(message=reason)))


def stopped_open(
    turn: OpenTurn,
    error: BaseException,
    now: int,
    *,
    files: TurnFiles | None = None,
    part_id: Callable[[], str] | None = None,
    is_cut_off: bool = False,
) -> list[Event]:
    """The events that end a suspended turn whose calls were stopped while they ran again."""
    calls = (_closed(part, now) for part in turn.parts.values())
    closed = [part for part in calls if part is not None]
    ending = broken_off(error, "turn", *closed, is_cut_off=is_cut_off).but(files=files)
    return close_turn(turn.message, ending, now, spent=turn.message.cost, part_id=part_id)


def broken_off(error: BaseException, what: str, *parts: Part, is_cut_off: bool = False) -> Ending:
    """The ending of a turn that was cancelled or raised an exception. ``is_cut_off``: by an outage of the store."""
    if isinstance(error, Exception):
        return refused(f"{type(error).__name__}: {error}").but(parts=parts)
    message = f"the {what} was stopped" + OUTAGE * is_cut_off
    return Ending(failure=AbortedFailure(data=MessageData(message=message)), parts=parts)


def close_turn(
    message: AssistantMessage,
    ending: Ending,
    now: int,
    *,
    bills: Sequence[UsageRecorded] = (),
    spent: float = 0,
    part_id: Callable[[], str] | None = None,
) -> list[Event]:
    """The events that close a turn. ``part_id`` makes the id of the step mark.

    ``bills`` are ledger rows to append; ``spent`` is the cost of the rows that were appended before.
    """
    ended = message.but(
        seq=0,
        error=ending.failure,
        finish=ending.finish,
        structured=ending.structured,
        cost=add_costs(spent, *(bill.cost for bill in bills)),
        tokens=bills[-1].tokens if bills else message.tokens,
        time=message.time.but(completed=now),
    )
    marks: list[Part] = []
    if part_id is not None:
        if ending.reason is not None:
            marks.append(_step_finish(ended, ending.reason, part_id(), ending.files))
        if ending.files is not None:
            marks += ending.files.patch(message, part_id)
    recorded = [PartRecorded(part=part) for part in (*ending.parts, *marks)]
    return [*bills, *recorded, TurnEnded(message=ended), *ending.after]


def leave_turn(view: SessionView, now: int, *, part_id: Callable[[], str], billed: Sequence[float] = ()) -> list[Event]:
    """The events for an open turn that no process runs any more. ``billed`` are the costs of its attempts so far.

    Calls that wait for the user stay as they are, and the turn stays open for them: it is suspended. All else is
    closed, and the answer is paid for and marked as ended, once. Without such calls the turn is closed.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is left"
    if not waiting_calls(view):
        return close_lost_turn(view, now, billed=billed)
    bills = _lost_bill(view, turn, billed)
    return suspend_turn(
        view, now, bills=bills, spent=add_costs(*billed) if bills else turn.message.cost, part_id=part_id
    )


def suspend_turn(
    view: SessionView,
    now: int,
    *,
    bills: Sequence[UsageRecorded],
    spent: float,
    part_id: Callable[[], str],
    files: TurnFiles | None = None,
) -> list[Event]:
    """The events that close all of a turn but the calls that wait for the user.

    ``bills`` are rows that the ledger does not have yet, ``spent`` is the cost of those that it has. ``files`` is what
    the settled calls did; the calls that wait have a patch of their own.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is suspended"
    others = (_closed(part, now) for part in turn.parts.values() if not is_waiting(view, part))
    settled: list[Event] = [PartRecorded(part=part) for part in others if part is not None]
    if is_suspended(turn):
        return settled
    message = turn.message.but(
        cost=add_costs(spent, *(bill.cost for bill in bills)), tokens=bills[-1].tokens if bills else turn.message.tokens
    )
    marks = [_step_finish(message, RESUMED, part_id(), files)]
    patch = files.patch(message, part_id) if files is not None else []
    recorded = [PartRecorded(part=part) for part in (*marks, *patch)]
    return [*bills, *settled, MessageRecorded(message=message), *recorded]


def close_resumed_turn(
    view: SessionView,
    now: int,
    *,
    files: TurnFiles | None = None,
    part_id: Callable[[], str] | None = None,
    may_be_cut_off: bool = True,
) -> list[Event]:
    """The events that end a turn whose waiting calls were run after its process was gone.

    ``may_be_cut_off``: if a Child Session was cut off, its result does not count, and the turn ends as aborted.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is resumed"
    ending = Ending(finish=RESUMED, files=files)
    if may_be_cut_off and any(map(_is_detached, turn.parts.values())):
        ending = Ending(failure=AbortedFailure(data=MessageData(message=CUT_OFF)), files=files)
    return close_turn(turn.message, ending, now, spent=turn.message.cost, part_id=part_id)


def is_without_output(view: SessionView) -> bool:
    """Whether the open turn has no output yet."""
    return view.turn is not None and not any(map(_is_output, view.turn.parts.values()))


def close_lost_turn(view: SessionView, now: int, *, billed: Sequence[float] = ()) -> list[Event]:
    """The events that close the turn of a dead process. ``billed`` are the costs of the attempts in the ledger.

    A turn without output is removed, so that its prompt is unanswered again. Otherwise its text stays and its open
    calls are settled as interrupted; they do not run again. Its cost so far is recorded.
    """
    turn = view.turn
    assert turn is not None, "only an open turn is closed"
    bills = _lost_bill(view, turn, billed)
    spent = add_costs(*billed) if bills else turn.message.cost
    after: tuple[Event, ...] = (CompactingSet(at=None),) if view.session.time.compacting is not None else ()
    settled: list[Event] = []
    if is_without_output(view):
        message = turn.message
        after = (MessageRemoved(message_id=message.id, seq=message.seq, part_ids=tuple(turn.parts)), *after)
    else:
        closed = (_closed(part, now) for part in turn.parts.values())
        settled = [PartRecorded(part=part) for part in closed if part is not None]
    ending = Ending(failure=AbortedFailure(data=MessageData(message=LOST)), after=after)
    return [*settled, *close_turn(turn.message, ending, now, bills=bills, spent=spent)]


def _step_finish(
    message: AssistantMessage, reason: str, part_id: str, files: TurnFiles | None = None
) -> StepFinishPart:
    return StepFinishPart(
        id=part_id,
        session_id=message.session_id,
        message_id=message.id,
        reason=reason,
        snapshot=files.after if files is not None else None,
        cost=message.cost,
        tokens=message.tokens,
    )


def _lost_bill(view: SessionView, turn: OpenTurn, billed: Sequence[float]) -> list[UsageRecorded]:
    """The ledger row of the attempt that was under way, with the tokens that its provider had counted."""
    message = turn.message
    if message.summary or isinstance(view.status, Retrying) or _is_command(turn) or is_suspended(turn):
        return []
    row = UsageRecorded(
        purpose="turn",
        provider_id=message.provider_id,
        model_id=message.model_id,
        message_id=message.id,
        attempt=len(billed) + 1,
        tokens=message.tokens,
        # The cost of an attempt that reported usage with its failure is in the ledger, not in the message.
        cost=max(add_costs(message.cost, *(-cost for cost in billed)), 0),
    )
    return [row]


def _is_detached(part: Part) -> bool:
    """Whether a part is a call whose Child Session was stopped."""
    state = part.state if isinstance(part, ToolPart) else None
    return isinstance(state, ToolError) and bool((state.metadata or {}).get(DETACHED))


def _is_command(turn: OpenTurn) -> bool:
    """Whether the turn is a command that the user ran: a call that no model made."""
    kinds = set(map(type, turn.parts.values()))
    return ToolPart in kinds and StepStartPart not in kinds


def _is_output(part: Part) -> bool:
    match part:
        case StepStartPart() | RetryPart() | TextPart(text="") | ReasoningPart(text="", metadata=None):
            return False
        case _:
            return True


def _closed(part: Part, now: int) -> Part | None:
    """An open part, closed; None for a part that is not open."""
    match part:
        case ToolPart(state=ToolPending() | ToolRunning()):
            return part.but(state=interrupted(part, now))
        case TextPart(time=time) if time is not None and time.end is None:
            return part.but(time=time.but(end=now))
        case ReasoningPart(time=time) if time.end is None:
            return part.but(time=time.but(end=now))
        case _:
            return None

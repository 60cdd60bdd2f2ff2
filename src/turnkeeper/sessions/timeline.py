"""Timeline of a session: its turns, its epochs, and what else a reader looks for in a log; each with its seq."""

from collections.abc import AsyncIterator
from typing import Literal, TypeAlias

from turnkeeper.core.entry import Recorded
from turnkeeper.core.prefix import reuse_percent
from turnkeeper.core.turn_ends import CUT_OFF, LOST
from turnkeeper.model import event as e
from turnkeeper.model.context import EpochReason, Prefix
from turnkeeper.model.failure import AbortedFailure, Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.session import Tokens
from turnkeeper.model.status import Retrying
from turnkeeper.model.value import Value
from turnkeeper.store.store import Store

PAGE = 500
"""How many events are read at once."""

MarkKind: TypeAlias = Literal[
    "prompt",
    "ask",
    "retry",
    "failed",
    "stopped",
    "cut off",
    "pruned",
    "left out",
    "compaction",
    "context",
    "undo",
    "redo",
    "undo kept",
    "removed",
]


class TimelineTurn(Value):
    """A turn. ``end`` is None while it is open; ``percent`` is how much of its request repeats the one before."""

    message_id: str
    seq: int
    time: int
    model: str
    end: int | None = None
    completed: int | None = None
    tokens: Tokens
    cost: int | float
    is_summary: bool = False
    percent: int | None = None
    cause: str | None = None
    error: str | None = None


class TimelineEpoch(Value):
    """The start of an epoch."""

    number: int
    seq: int
    time: int
    reason: EpochReason
    model: str


class TimelineMark(Value):
    """An event that stands out, in a few words."""

    seq: int
    time: int
    kind: MarkKind
    text: str = ""
    message_id: str | None = None


class Timeline(Value):
    """The timeline after event ``seq``."""

    seq: int
    turns: tuple[TimelineTurn, ...]
    epochs: tuple[TimelineEpoch, ...]
    marks: tuple[TimelineMark, ...]


async def timeline(store: Store, session_id: str) -> Timeline:
    """The timeline of a session. Raises NotFound."""
    await store.queries.state(session_id)
    turns: dict[str, TimelineTurn] = {}
    epochs: list[TimelineEpoch] = []
    marks: list[TimelineMark] = []
    last = 0
    async for recorded in events(store, session_id):
        last, time, event = recorded
        match event:
            case e.TurnStarted(message=message, prefix=prefix):
                turns[message.id] = _begun(last, message, prefix)
            case e.TurnEnded(message=message) if message.id in turns:
                turns[message.id] = _ended(turns[message.id], last, message)
            case e.EpochStarted(epoch=epoch):
                model = f"{epoch.provider_id}/{epoch.model_id}"
                epochs.append(TimelineEpoch(number=epoch.number, seq=last, time=time, reason=epoch.reason, model=model))
            case _:
                pass
        if (mark := _mark(recorded)) is not None:
            marks.append(mark)
    return Timeline(seq=last, turns=tuple(turns.values()), epochs=tuple(epochs), marks=tuple(marks))


async def events(store: Store, session_id: str, *, until: int | None = None) -> AsyncIterator[Recorded]:
    """The events of a session, or those up to the event ``until``. The log is read in pages."""
    after = 0
    while found := await store.journal.read(session_id, after=after, limit=PAGE):
        for recorded in found:
            if until is not None and recorded.seq > until:
                return
            yield recorded
        after = found[-1].seq


def _begun(seq: int, message: AssistantMessage, prefix: Prefix | None) -> TimelineTurn:
    return TimelineTurn(
        message_id=message.id,
        seq=seq,
        time=message.time.created,
        model=f"{message.provider_id}/{message.model_id}",
        tokens=message.tokens,
        cost=message.cost,
        is_summary=bool(message.summary),
        percent=reuse_percent(prefix) if prefix is not None else None,
        cause=prefix.cause if prefix is not None else None,
    )


def _ended(turn: TimelineTurn, seq: int, message: AssistantMessage) -> TimelineTurn:
    return turn.but(
        end=seq,
        completed=message.time.completed,
        tokens=message.tokens,
        cost=message.cost,
        error=_words(message.error) if message.error is not None else None,
    )


def _words(failure: Failure) -> str:
    return str(getattr(failure.data, "message", "")) or str(type(failure).__struct_config__.tag)


def _mark(recorded: Recorded) -> TimelineMark | None:
    """The mark of an event on the timeline; None for an event that gets none."""
    found = _kind(recorded.event)
    if found is None:
        return None
    kind, text, message_id = found
    return TimelineMark(seq=recorded.seq, time=recorded.time, kind=kind, text=text, message_id=message_id)


def _kind(event: e.Event) -> tuple[MarkKind, str, str | None] | None:
    match event:
        case e.PromptPromoted(message_id=message_id):
            return "prompt", "", message_id
        case e.PermissionAsked(request=asked):
            return "ask", f"{asked.permission}: {', '.join(asked.patterns)}"[:200], asked.tool.message_id
        case e.QuestionAsked(request=question):
            return "ask", question.questions[0].question[:200] if question.questions else "", question.tool.message_id
        case e.StatusChanged(status=Retrying(attempt=attempt, message=message)):
            return "retry", f"attempt {attempt}: {message}"[:200], None
        case e.TurnEnded(message=AssistantMessage(error=AbortedFailure(data=data), id=id)):
            return ("cut off" if data.message in (CUT_OFF, LOST) else "stopped"), data.message, id
        case e.TurnEnded(message=AssistantMessage(error=failure, id=id)) if failure is not None:
            return "failed", _words(failure)[:200], id
        case e.TurnEnded(message=AssistantMessage(summary=True, id=id)):
            return "compaction", "", id
        case e.OutputsPruned(part_ids=parts, tokens=tokens):
            return "pruned", f"{len(parts)} outputs, about {tokens} tokens", None
        case e.PartsQuarantined(message_id=message_id, reason=reason):
            return "left out", reason[:200], message_id
        case e.ContextAdmitted(message=message):
            return "context", ", ".join(update.key for update in message.updates)[:200], message.id
        case e.RevertStaged(revert=revert):
            return "undo", "", revert.message_id
        case e.RevertCleared():
            return "redo", "", None
        case e.RevertCommitted(message_id=message_id):
            return "undo kept", "", message_id
        case e.MessageRemoved(message_id=message_id):
            return "removed", "", message_id
        case _:
            return None

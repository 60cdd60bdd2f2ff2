"""The next action of a session, decided from its view and history. The first matching row wins.

| The session shows | Action | Why |
|---|---|---|
| an open turn whose only open calls wait for the user | Rest | they decide; nothing else can go on before |
| the same, with an ask left to answer, and nobody here to answer it | Rest | it is not answered in the user's name |
| the same, and one of them has its answer, or the user resumes it | ResumeTurn | the calls run again |
| the same, and one of them waits for a Child Session that can go on or is done | ResumeTurn | it takes the result |
| an open turn, though no turn runs here | Abandon | a dead process left it; never run a side effect twice |
| a compaction marker without a Summary | Compact | it makes room for the next request |
| steering prompts in the inbox | Promote | all of them join the next boundary |
| a subtask that was not run | RunSubtask | the user asked for it, not the model |
| a tool call that the user refused | Rest | nothing runs until the next prompt, a queued one too |
| a command that the user ran | Rest | the model reads it with the next prompt |
| an unanswered user message, or calls that were settled | RunTurn | the model owes an answer |
| a failed turn, and a quarantine of what made it fail | RunTurn | once more without it |
| an empty or unknown finish, not too often | RunTurn | some providers end a stream without content |
| an answer that the provider paused, not too often | RunTurn | the provider continues it on the next request |
| a structured answer missing, tries left | RunTurn | the caller asked for JSON |
| a queued prompt | Promote the first | one at a time, when the session would otherwise rest |
| anything else | Rest | |
"""

from collections.abc import Callable, Collection
from itertools import takewhile
from typing import TypeAlias

from turnkeeper.core.asks import turn_state
from turnkeeper.core.history import History, HistoryItem, compaction_of
from turnkeeper.core.limits import EMPTY_TURNS_MAX, PAUSED_TURNS_MAX, STEERS_MAX
from turnkeeper.core.lowering import DELEGATED
from turnkeeper.core.subtasks import pending_subtask
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, PromptPromoted
from turnkeeper.model.message import AssistantMessage, JsonSchemaFormat, UserMessage
from turnkeeper.model.parts import FilePart, Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.value import Value


class Abandon(Value):
    """Close the turn a dead process left open."""


class ResumeTurn(Value):
    """Run the waiting calls of the open turn again, with the answers that there are, and end the turn."""


class Promote(Value):
    """Make these prompts part of the history, in this order."""

    message_ids: tuple[str, ...]


class Compact(Value):
    """Carry out the compaction that this user message asks for."""

    marker: HistoryItem


class RunTurn(Value):
    """Send a request to the model. ``step`` counts turns since the last user message.

    ``tries`` counts failed tries at a structured answer; ``tries_left`` is None if no structured answer is wanted.
    """

    user: HistoryItem
    step: int
    tries: int = 0
    tries_left: int | None = None


class RunSubtask(Value):
    """Hand a subtask of this user message to a Child Session."""

    user: HistoryItem
    part: SubtaskPart


class Rest(Value):
    """Nothing to do."""

    reason: str


Action: TypeAlias = Abandon | ResumeTurn | Promote | Compact | RunTurn | RunSubtask | Rest


def next_action(
    view: SessionView,
    history: History,
    *,
    resume: bool = False,
    is_attended: bool = True,
    held: Collection[str] = (),
) -> Action:
    """The next action. ``resume``: the user wants one more turn although the last one failed or was stopped.

    ``is_attended``: what waits for the user can be answered while this process runs the session. ``held`` are the Child
    Sessions of the open turn that wait for the user.
    """
    if view.turn is not None:
        return _left_open(view, held, resume=resume, is_attended=is_attended)
    user, turns = _since_user(history)
    if (marker := _unanswered_marker(user, turns, resume=resume)) is not None:
        return Compact(marker=marker)
    steers = [prompt.message.id for prompt in view.inbox if prompt.delivery == "steer"]
    if steers:
        return Promote(message_ids=tuple(steers[:STEERS_MAX]))
    if (subtask := pending_subtask(history)) is not None:
        return RunSubtask(user=subtask.user, part=subtask.part)
    owed = _owed(user, turns, resume=resume or _is_remedied(view, history))
    if isinstance(owed, RunTurn):
        return owed
    queued = [prompt for prompt in view.inbox if prompt.delivery == "queue"]
    # Prompts that waited when the user refused a call may build on it. One that was sent later releases them.
    if queued and (owed.reason != REFUSED or queued[-1].seq > view.turn_ended):
        return Promote(message_ids=(queued[0].message.id,))
    return owed


def _left_open(
    view: SessionView, held: Collection[str], *, resume: bool, is_attended: bool
) -> Abandon | ResumeTurn | Rest:
    match turn_state(view, held):
        case "lost":
            return Abandon()
        case _ if not is_attended and (held or any(ask.reply is None for ask in view.asks)):
            return Rest(reason=WAITS)
        case "waits":
            return ResumeTurn() if resume else Rest(reason=WAITS)
        case "answered":
            return ResumeTurn()


def promotion(action: Promote, view: SessionView) -> list[Event]:
    """The events of a Promote: one for each prompt that is still in the inbox, none while a turn is open."""
    waiting = {prompt.message.id for prompt in view.inbox} if view.turn is None else set()
    return [PromptPromoted(message_id=message_id) for message_id in action.message_ids if message_id in waiting]


def _unanswered_marker(user: HistoryItem | None, turns: list[HistoryItem], *, resume: bool) -> HistoryItem | None:
    """The marker of a compaction that has not begun; with ``resume``, also the marker of a failed one."""
    if user is None or compaction_of(user) is None:
        return None
    if not turns:
        return user
    last = turns[-1].message
    return user if resume and isinstance(last, AssistantMessage) and last.error is not None else None


def _is_remedied(view: SessionView, history: History) -> bool:
    """Whether parts were quarantined since the last turn failed."""
    remedy = view.rewritten
    last = history.entries[-1].message if history.entries else None
    return remedy is not None and remedy.is_remedy and last is not None and remedy.seq > last.seq


REFUSED = "the user refused a tool"
WAITS = "it waits for an answer of the user"
STRUCTURED_TOOL = "StructuredOutput"
PAUSED = "pause"
"""The finish of an answer that the provider continues on the next request."""
DETACHED = "detached"
"""Metadata key of a call whose Child Session was stopped while the session itself went on; the model is told."""
DISABLED = "disabled"
"""Metadata key of a call in the last step, which has no tools; no further step answers the call."""


def _owed(user: HistoryItem | None, turns: list[HistoryItem], *, resume: bool) -> RunTurn | Rest:
    """Whether the model owes an answer to the newest user message."""
    if user is None:
        return Rest(reason="nobody has spoken")
    if is_command(user):
        return Rest(reason="the user ran a command")
    turn = _turn(user, turns)
    if not turns:
        return turn
    last = turns[-1]
    message = last.message
    assert isinstance(message, AssistantMessage), "turns are assistant messages"
    if message.error is not None:
        return turn if resume else Rest(reason=f"the last turn failed: {type(message.error).__name__}")
    if any(is_refused(part) for part in last.parts):
        return turn if resume else Rest(reason=REFUSED)
    if message.structured is not None or message.summary:
        return Rest(reason="answered")
    if any(is_continuable(part) for part in last.parts):
        return turn
    if _is_empty(last) and _streak(turns, _is_empty) <= EMPTY_TURNS_MAX:
        return turn
    if _is_paused(last) and _streak(turns, _is_paused) <= PAUSED_TURNS_MAX:
        return turn
    if turn.tries_left is not None and turn.tries_left >= 0:
        return turn
    return Rest(reason="the model said nothing" if _is_empty(last) else "answered")


def _turn(user: HistoryItem, turns: list[HistoryItem]) -> RunTurn:
    message, step = user.message, len(turns) + 1
    if not isinstance(message, UserMessage) or not isinstance(message.format, JsonSchemaFormat):
        return RunTurn(user=user, step=step)
    tries = sum(_missed(turn) for turn in turns)
    return RunTurn(user=user, step=step, tries=tries, tries_left=message.format.retry_count - tries)


def _missed(turn: HistoryItem) -> bool:
    """Whether a turn was a failed try at a structured answer: text only, or an answer that violates the schema."""
    answers = [part for part in turn.parts if isinstance(part, ToolPart) and part.tool == STRUCTURED_TOOL]
    if answers:
        return all(isinstance(part.state, ToolError) for part in answers)
    return not any(is_continuable(part) for part in turn.parts)


def last_user(history: History) -> HistoryItem | None:
    """The newest user message."""
    return next((entry for entry in reversed(history.entries) if isinstance(entry.message, UserMessage)), None)


def last_turn(history: History) -> HistoryItem | None:
    """The newest turn, also a failed one."""
    return next((entry for entry in reversed(history.entries) if isinstance(entry.message, AssistantMessage)), None)


def is_command(user: HistoryItem) -> bool:
    """Whether a user message only records a command that the user ran; also in histories of opencode."""
    return bool(user.parts) and all(
        isinstance(part, TextPart) and bool(part.synthetic) and part.text == DELEGATED for part in user.parts
    )


def _since_user(history: History) -> tuple[HistoryItem | None, list[HistoryItem]]:
    """The newest user message, and the turns after it, oldest first."""
    turns: list[HistoryItem] = []
    for entry in reversed(history.entries):
        if isinstance(entry.message, AssistantMessage):
            turns.append(entry)
        elif isinstance(entry.message, UserMessage):
            return entry, turns[::-1]
    return None, turns[::-1]


def is_continuable(part: Part) -> bool:
    """Whether the model must be sent a part's result: that of a settled call that is not hosted."""
    if not isinstance(part, ToolPart) or part.is_hosted:
        return False
    match part.state:
        case ToolCompleted(metadata=metadata):
            return metadata.get("structured") is not True
        case ToolError(metadata=metadata):
            given = metadata or {}
            return not given.get(DISABLED) and (not given.get("interrupted") or bool(given.get(DETACHED)))
        case _:
            return False


def is_refused(part: Part) -> bool:
    """Whether the user refused a call without feedback for the model."""
    state = part.state if isinstance(part, ToolPart) else None
    return isinstance(state, ToolError) and bool((state.metadata or {}).get("rejected"))


def _is_empty(turn: HistoryItem) -> bool:
    """Whether a turn ended without text, file or call; a finish by length or content filter does not count."""
    message = turn.message
    assert isinstance(message, AssistantMessage), "turns are assistant messages"
    if message.finish in ("length", "content-filter"):
        return False
    return not any(
        isinstance(part, ToolPart | FilePart) or (isinstance(part, TextPart | ReasoningPart) and part.text.strip())
        for part in turn.parts
    )


def _is_paused(turn: HistoryItem) -> bool:
    return isinstance(turn.message, AssistantMessage) and turn.message.finish == PAUSED


def _streak(turns: list[HistoryItem], is_one: Callable[[HistoryItem], bool]) -> int:
    """The number of newest turns in a row for which ``is_one`` holds."""
    return sum(1 for _ in takewhile(is_one, reversed(turns)))

"""Attempts at one turn: their usage and cost, and whether another attempt follows.

| The attempt | What follows |
|---|---|
| was answered | the turn ends with the answer, or with the failure that its answer shows |
| failed after a tool call began | the turn ends, and the loop goes on: another attempt would run the call twice |
| failed with a retryable failure, attempts left | another attempt; its parts are removed, its ledger row stays |
| failed otherwise | the turn ends with the failure |
"""

from collections.abc import Callable, Iterable

from turnkeeper.core.failures import finish_failure, refusal
from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.limits import RETRIES_MAX, USAGE_MS
from turnkeeper.core.next_action import STRUCTURED_TOOL
from turnkeeper.core.retry import retryable
from turnkeeper.core.transcribe import Scribe, ScribeOutput
from turnkeeper.core.turn_ends import Ending, answered, close_turn, suspend_turn
from turnkeeper.core.usage import add_costs, bill
from turnkeeper.core.view import SessionView
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, MessageRecorded, PartRecorded, PartRemoved, UsageRecorded
from turnkeeper.model.failure import (
    ApiData,
    ApiFailure,
    Failure,
    NoData,
    OutputLengthFailure,
    StructuredOutputData,
    StructuredOutputFailure,
)
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import RetryPart, StepStartPart
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.session import ZERO_TOKENS, Tokens
from turnkeeper.model.stream import StreamEvent, Usage
from turnkeeper.model.value import Json, Value


class Retry(Value):
    """Another attempt follows. ``words`` is the reason that users are shown."""

    failure: Failure
    words: str


class Attempts:
    """The attempts at one turn: the Scribe of the newest attempt, and the costs of all."""

    def __init__(
        self,
        message: AssistantMessage,
        model: ModelInfo,
        directory: str,
        part_id: Callable[[], str],
        *,
        tries: int = 0,
        tries_left: int | None = None,
        is_last: bool = False,
        snapshot: Callable[[], str | None] = lambda: None,
    ) -> None:
        """``tries`` and ``tries_left`` count tries at a structured answer. ``is_last``: all other calls are refused.

        ``snapshot`` is the snapshot before the turn's calls, once it is known.
        """
        self.message, self._model, self._directory, self._part_id = message, model, directory, part_id
        self._snapshot = snapshot
        self._tries, self._tries_left, self._is_last = tries, tries_left, is_last
        self.number = self._billed = 0
        """The number of the newest attempt, and of the newest attempt with a row in the ledger."""
        self._spent: float = 0
        self._counted: Usage | None = None
        self._counted_at = 0
        """The recorded usage of this attempt, and the time of recording."""
        self.scribe = self._new_scribe()

    def placed(self, seq: int) -> None:
        """Set the ``seq`` of the turn's message."""
        self.message = self.message.but(seq=seq)

    def begin(self) -> None:
        """Begin the next attempt."""
        self.number += 1
        self.scribe = self._new_scribe()

    def may_wait(self, held: Iterable[Event]) -> bool:
        """Whether the append of these events may be delayed: until the first text of an answer, or until its end.

        Token counts may, too: they were tried at once, and are still held if the disk is full.
        """
        if self.scribe.finish is not None and not self.scribe.has_begun_tools:
            return True
        return all(
            isinstance(one, MessageRecorded) or (isinstance(one, PartRecorded) and isinstance(one.part, StepStartPart))
            for one in held
        )

    def feed(self, batch: Iterable[StreamEvent], now: int) -> list[ScribeOutput]:
        """The Scribe's output for a batch, with newly counted tokens. Counts alone are left to ``newly_counted``."""
        said = self.scribe.feed(batch, now)
        return [*said, *self.newly_counted(now)] if said else []

    def newly_counted(self, now: int) -> list[Event]:
        """The message with the newest token counts of the provider, so that a killed process leaves them on record.

        An answer that has ended without calls is billed at once. Calls may run, or wait for the user, for a long time.
        """
        usage, scribe = self.scribe.usage, self.scribe
        if usage is None or usage == self._counted:
            return []
        is_over = scribe.finish is not None or scribe.failure is not None
        is_due = scribe.has_begun_tools if is_over else now - self._counted_at >= USAGE_MS
        if not is_due:
            return []
        self._counted, self._counted_at = usage, now
        row = self._priced(usage)
        return [self._amended(row.tokens, row.cost)]

    def outcome(self, structured: Json) -> Retry | Ending:
        """The decision after the newest attempt, whose answer was read to its end, with its JSON in ``structured``."""
        scribe = self.scribe
        failure = scribe.failure or (finish_failure(scribe.finish) if scribe.finish is not None else None)
        if failure is None:
            return answered(scribe.finish, self._verdict(structured), structured)
        if scribe.has_begun_tools:
            return Ending(failure=self._given_up(structured), finish="error", reason="error", structured=structured)
        words = retryable(failure)
        if words is not None and self.number <= RETRIES_MAX:
            return Retry(failure=failure, words=words)
        return answered(scribe.finish, failure, structured)

    def take_back(self, retry: Retry, unwritten: Iterable[Event], now: int) -> list[Event]:
        """The events that remove the parts of a failed attempt. ``unwritten`` events were not appended to the log."""
        error = retry.failure
        if not isinstance(error, ApiFailure):
            error = ApiFailure(data=ApiData(message=retry.words, is_retryable=True))
        mark = RetryPart(
            id=self._part_id(),
            session_id=self.message.session_id,
            message_id=self.message.id,
            attempt=self.number,
            error=error,
            time=RetryTime(created=now),
        )
        unknown = {one.part.id for one in unwritten if isinstance(one, PartRecorded)}
        recorded = [part_id for part_id in self.scribe.recorded if part_id not in unknown]
        gone = [PartRemoved(message_id=self.message.id, part_id=part_id) for part_id in recorded]
        bills = self._bill()
        self._spent = add_costs(self._spent, *(row.cost for row in bills))
        reset = [self._amended(ZERO_TOKENS, 0)] if self._counted is not None else []
        self._counted, self._counted_at = None, 0
        self.scribe = self._new_scribe()
        return [*bills, *reset, *gone, PartRecorded(part=mark)]

    def close(self, ending: Ending, now: int) -> list[Event]:
        """The events that close the turn, with the ledger row of its newest attempt."""
        bills = self._bill()
        return close_turn(self.message, ending, now, bills=bills, spent=self._spent, part_id=self._part_id)

    def suspend(self, view: SessionView, now: int, files: TurnFiles | None) -> list[Event]:
        """The events that close the turn but for its waiting calls, with the bill of its newest attempt."""
        return suspend_turn(view, now, bills=self._bill(), spent=self._spent, part_id=self._part_id, files=files)

    def _verdict(self, structured: Json) -> Failure | None:
        """The failure that a complete answer shows; None if it shows none."""
        finish, scribe = self.scribe.finish, self.scribe
        if finish is not None and finish.reason == "content-filter":
            return refusal(finish.metadata)
        if finish is not None and finish.reason == "length" and not scribe.has_output:
            return OutputLengthFailure(data=NoData())
        return self._given_up(structured)

    def _given_up(self, structured: Json) -> Failure | None:
        """The failure of the last try at a structured answer; None if there is an answer or another try."""
        if structured is not None or self._tries_left is None or self._tries_left > 0:
            return None
        scribe = self.scribe
        if scribe.has_begun_tools and not self._is_last and not scribe.has_called(STRUCTURED_TOOL):
            return None  # Calls of other tools are still owed their results.
        data = StructuredOutputData(message="the model gave no answer that fits the schema", retries=self._tries)
        return StructuredOutputFailure(data=data)

    def _bill(self) -> list[UsageRecorded]:
        """The ledger row of this attempt; empty if the attempt has its row."""
        if self._billed == self.number:
            return []
        self._billed = self.number
        return [self._priced(self.scribe.usage)]

    def _priced(self, usage: Usage | None) -> UsageRecorded:
        finish = self.scribe.finish
        metadata = finish.metadata if finish is not None else None
        message_id, attempt = self.message.id, self.number
        return bill("turn", self._model, usage, message_id=message_id, attempt=attempt, metadata=metadata)

    def _amended(self, tokens: Tokens, dollars: float) -> MessageRecorded:
        """The open message with the tokens of this attempt and the cost of all attempts."""
        return MessageRecorded(message=self.message.but(tokens=tokens, cost=add_costs(self._spent, dollars)))

    def _new_scribe(self) -> Scribe:
        return Scribe(self.message, self._directory, self._part_id, self._snapshot)

"""One provider turn: request, stream, record, settle; with retries, and closed whatever happens."""

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import aclosing

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.failures import finish_failure, refusal
from turnkeeper.core.limits import CHECKPOINT_MS, RETRIES_MAX, USAGE_MS
from turnkeeper.core.next_action import PAUSED
from turnkeeper.core.retry import delay, retryable
from turnkeeper.core.transcribe import Act, Scribe
from turnkeeper.core.usage import add_costs, cost, step_tokens
from turnkeeper.mint import Mint
from turnkeeper.model.context import Prefix
from turnkeeper.model.event import (
    Event,
    MessageRecorded,
    PartRecorded,
    PartRemoved,
    TurnEnded,
    TurnStarted,
    UsageRecorded,
)
from turnkeeper.model.failure import (
    AbortedFailure,
    ApiData,
    ApiFailure,
    Failure,
    MessageData,
    NoData,
    OutputLengthFailure,
    StructuredOutputData,
    StructuredOutputFailure,
    UnknownData,
    UnknownFailure,
)
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import RetryPart, StepFinishPart, StepStartPart, ToolPart
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.session import ZERO_TOKENS, Tokens
from turnkeeper.model.status import BUSY, Retrying
from turnkeeper.model.stream import StreamEvent, Usage
from turnkeeper.model.value import Json
from turnkeeper.providers.provider import Provider
from turnkeeper.run.pen import Pen

Settle = Callable[[ToolPart, Callable[[], bool]], Coroutine[None, None, None]]
"""Runs one call and records what came of it; also when it is cancelled.

The second argument says whether the turn ends with it: then its result may be written with the end.
"""


class Surroundings(msgspec.Struct, frozen=True):
    """What a turn needs of the world: each injected, so that whole runs can be simulated from a seed."""

    mint: Mint
    publish: Callable[[Delta], None]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]


class Turn:
    """One turn, from ``TurnStarted`` to ``TurnEnded``."""

    def __init__(
        self,
        pen: Pen,
        world: Surroundings,
        provider: Provider,
        request: ModelRequest,
        message: AssistantMessage,
        directory: str,
        settle: Settle,
        *,
        structured: Callable[[], Json] = lambda: None,
        tries: int | None = None,
        retries: int = 0,
        prefix: Prefix | None = None,
        remedy: Callable[[Failure], Sequence[Event]] = lambda failure: (),
    ) -> None:
        """``remedy`` gives what is recorded with a failure so that the loop can do better: a compaction, say."""
        self._pen, self._world, self._provider, self._request = pen, world, provider, request
        self._message, self._directory, self._settle = message, directory, settle
        self._structured, self._tries, self._retries, self._prefix = structured, tries, retries, prefix
        self._remedy = remedy
        self._scribe = self._new_scribe()
        self._writing = anyio.Lock(fast_acquire=True)
        self._held: list[Event] = []
        """What is to be appended with the next fact, because a fact of its own would tell nobody anything."""
        self._cost: float = 0
        self._attempt = self._billed = 0
        """The number of the attempt under way, and of the newest one that is in the ledger."""
        self._seq = 0
        """The place of the turn in the log."""
        self._counted: Usage | None = None
        self._counted_at = 0
        """What is on record of the usage of this attempt, and since when."""
        self._is_read, self._open_calls = False, 0
        """Whether the answer was read to its end, and how many of its calls are not settled yet."""

    async def run(self) -> None:
        """Run the turn. Whatever happens, the log has its end."""
        view = await self._pen.append(TurnStarted(message=self._message, prefix=self._prefix), at="attempt")
        self._seq = view.seq
        try:
            while await self._try():
                pass
        except BaseException as error:
            # Cancelled, or a bug: what is open is closed before it goes on, in a scope nobody can cancel.
            with anyio.CancelScope(shield=True):
                await self._broken(error)
            raise

    async def _try(self) -> bool:
        """One attempt; whether there should be another."""
        self._attempt += 1
        self._scribe = self._new_scribe()
        self._is_read = False
        await self._stream()
        finish = self._scribe.finish
        failure = self._scribe.failure or (finish_failure(finish) if finish is not None else None)
        if failure is None:
            self._end(self._verdict())
        elif self._scribe.has_begun_tools:
            # A tool has run: asking again would run it twice. Its results are in the history; the loop goes on.
            self._end(None, finish="error")
        elif (words := retryable(failure)) is not None and self._attempt <= RETRIES_MAX:
            await self._wait_to_retry(failure, words)
            return True
        else:
            self._end(failure)
        return False

    async def _stream(self) -> None:
        """Take in the answer. Calls start as soon as they are recorded; all are settled when this returns."""
        is_ticking = False
        try:
            async with anyio.create_task_group() as calls:
                ticker = anyio.CancelScope()
                try:
                    async with aclosing(self._provider.stream(self._request)) as answer:
                        async for batch in answer:
                            await self._take(batch, calls)
                            if not is_ticking and self._scribe.has_open:
                                is_ticking = True
                                calls.start_soon(self._save_regularly, ticker)
                    await self._write(lambda: self._scribe.close(self._now()))
                    self._is_read = True
                finally:
                    if is_ticking:
                        ticker.cancel()
        except BaseExceptionGroup as group:
            raise _first(group) from group

    async def _take(self, batch: Sequence[StreamEvent], calls: TaskGroup) -> None:
        await self._write(lambda: [*self._scribe.feed(batch, self._now()), *self._newly_counted()])
        for call in self._scribe.calls():
            self._open_calls += 1
            calls.start_soon(self._run, call, name=f"{call.tool} {call.call_id}")

    async def _run(self, call: ToolPart) -> None:
        try:
            await self._settle(call, lambda: self._is_read and self._open_calls == 1)
        finally:
            self._open_calls -= 1

    def _newly_counted(self) -> list[Event]:
        """The message with what the provider has counted until now: if this process is killed, that was paid, too."""
        usage, now = self._scribe.usage, self._now()
        is_over = self._scribe.finish is not None or self._scribe.failure is not None
        if is_over or usage is None or usage == self._counted or now - self._counted_at < USAGE_MS:
            return []
        self._counted, self._counted_at = usage, now
        tokens, dollars = self._price(usage)
        return [self._amended(tokens, dollars)]

    def _amended(self, tokens: Tokens, dollars: float) -> MessageRecorded:
        """The open message with what this attempt has taken until now, and what all attempts have cost."""
        taken = self._message.but(seq=self._seq, tokens=tokens, cost=add_costs(self._cost, dollars))
        return MessageRecorded(message=taken)

    async def _save_regularly(self, scope: anyio.CancelScope) -> None:
        """Text must not wait for more text to become durable."""
        with scope:
            while True:
                await self._world.sleep(CHECKPOINT_MS / 1000)
                await self._write(lambda: self._scribe.checkpoint(self._now(), age_ms=CHECKPOINT_MS // 2))

    async def _write(self, acts: Callable[[], Sequence[Act]]) -> None:
        """Ask the scribe, then do what it says, one after the other: what it says builds on what was said before."""
        async with self._writing:
            await self._do(acts())

    async def _do(self, acts: Sequence[Act]) -> None:
        """Append events and publish deltas in their order; neighbouring events share one append."""
        for act in acts:
            if not isinstance(act, Delta):
                self._held.append(act)
                continue
            await self._append_held()
            self._world.publish(act)
        if not self._may_hold():
            await self._append_held()

    async def _append_held(self) -> None:
        if self._held:
            events, self._held = self._held, []
            await self._pen.append(*events, at="record")

    def _may_hold(self) -> bool:
        """Whether what is held may wait: for the first word of an answer, or for its end, which comes at once."""
        if self._scribe.finish is not None and not self._scribe.has_begun_tools:
            return True
        return all(isinstance(one, PartRecorded) and isinstance(one.part, StepStartPart) for one in self._held)

    async def _wait_to_retry(self, failure: Failure, words: str) -> None:
        """Record that it is tried again, take back what the failed attempt said, and wait."""
        now = self._now()
        wait = delay(self._attempt, failure, now=now, rand=self._world.random())
        error = failure if isinstance(failure, ApiFailure) else _as_api(words)
        retry = RetryPart(
            id=self._world.mint.part_id(),
            session_id=self._message.session_id,
            message_id=self._message.id,
            attempt=self._attempt,
            error=error,
            time=RetryTime(created=now),
        )
        kept = {one.part.id for one in self._held if isinstance(one, PartRecorded)}
        self._held = []
        gone = [
            PartRemoved(message_id=self._message.id, part_id=part_id)
            for part_id in self._scribe.recorded
            if part_id not in kept  # Never recorded.
        ]
        bill = self._bill()
        self._cost = add_costs(self._cost, *(row.cost for row in bill))
        reset = [self._amended(ZERO_TOKENS, 0)] if self._counted is not None else []
        self._counted, self._counted_at = None, 0
        await self._pen.append(*bill, *reset, *gone, PartRecorded(part=retry))
        self._scribe = self._new_scribe()
        await self._pen.status(Retrying(attempt=self._attempt, message=words, next=now + wait))
        await self._world.sleep(wait / 1000)
        await self._pen.status(BUSY)

    def _bill(self) -> list[UsageRecorded]:
        """The row of the ledger for this attempt, whatever came of it; none if it has one."""
        if self._billed == self._attempt:
            return []
        self._billed = self._attempt
        tokens, dollars = self._price(self._scribe.usage)
        row = UsageRecorded(
            purpose="turn",
            provider_id=self._message.provider_id,
            model_id=self._message.model_id,
            message_id=self._message.id,
            attempt=self._attempt,
            tokens=tokens,
            cost=dollars,
        )
        return [row]

    def _price(self, usage: Usage | None) -> tuple[Tokens, float]:
        """The tokens of this attempt, and what they cost; none if the provider counted nothing."""
        if usage is None:
            return ZERO_TOKENS, 0
        metadata = self._scribe.finish.metadata if self._scribe.finish is not None else None
        tokens = step_tokens(usage, metadata)
        return tokens, float(cost(tokens, usage, self._request.model, metadata))

    def _verdict(self) -> Failure | None:
        """What is wrong with an answer that arrived whole."""
        finish = self._scribe.finish
        if finish is not None and finish.reason == "content-filter":
            return refusal(finish.metadata)
        if finish is not None and finish.reason == "length" and not self._scribe.has_output:
            return OutputLengthFailure(data=NoData())
        if self._tries is not None and self._tries <= 0 and self._structured() is None:
            return self._unstructured()
        return None

    def _unstructured(self) -> Failure | None:
        """No structured answer and no try left; calls of other tools are still owed their results."""
        if self._scribe.has_begun_tools:
            return None
        data = StructuredOutputData(message="the model gave no answer that fits the schema", retries=self._retries)
        return StructuredOutputFailure(data=data)

    def _end(self, failure: Failure | None, *, finish: str | None = None) -> None:
        """The attempt's bill, the step's own mark and the message as it will stay: one fact."""
        reason = finish or (self._scribe.finish.reason if self._scribe.finish is not None else None)
        is_paused = failure is None and self._scribe.finish is not None and self._scribe.finish.is_paused
        message = self._message.but(
            error=failure,
            structured=self._structured(),
            finish="error" if failure is not None and reason is None else PAUSED if is_paused else reason,
        )
        self._close(message, reason, *(self._remedy(failure) if failure is not None else ()))

    async def _broken(self, error: BaseException) -> None:
        """Close what is open and end the turn: stopped by the user, or by a bug of ours."""
        await self._write(lambda: self._scribe.close(self._now()))
        failure: Failure
        if isinstance(error, Exception):
            failure = UnknownFailure(data=UnknownData(message=f"{type(error).__name__}: {error}"))
        else:
            failure = AbortedFailure(data=MessageData(message="the turn was stopped"))
        self._close(self._message.but(error=failure), None)
        await self._pen.flush()

    def _close(self, message: AssistantMessage, reason: str | None, *remedy: Event) -> None:
        """Hold the end: it is written with what is done next, be that the next turn's begin or the session's rest."""
        bill = self._bill()
        message = message.but(
            cost=add_costs(self._cost, *(row.cost for row in bill)),
            tokens=bill[-1].tokens if bill else ZERO_TOKENS,
            time=message.time.but(completed=self._now()),
        )
        mark = [PartRecorded(part=self._step_finish(message, reason))] if reason is not None else []
        held, self._held = self._held, []
        self._pen.hold(*held, *bill, *mark, TurnEnded(message=message), *remedy, at="end")

    def _step_finish(self, message: AssistantMessage, reason: str) -> StepFinishPart:
        return StepFinishPart(
            id=self._world.mint.part_id(),
            session_id=message.session_id,
            message_id=message.id,
            reason=reason,
            cost=message.cost,
            tokens=message.tokens,
        )

    def _new_scribe(self) -> Scribe:
        return Scribe(self._message, self._directory, self._world.mint.part_id)

    def _now(self) -> int:
        return self._world.mint.now()


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """What went wrong first: callers know exceptions, not groups of them."""
    first = group.exceptions[0]
    return _first(first) if isinstance(first, BaseExceptionGroup) else first


def _as_api(words: str) -> ApiFailure:
    return ApiFailure(data=ApiData(message=words, is_retryable=True))

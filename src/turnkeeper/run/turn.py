"""One provider turn: request, stream, record, settle; with retries, and always closed.

``TurnStarted`` is appended before the model is asked. ``TurnEnded`` is held by the writer: it is appended with what the
loop does next, the begin of the next turn or the session's rest.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.attempts import Attempts, Retry
from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.limits import CHECKPOINT_MS, SNAPSHOT_END_S
from turnkeeper.core.retry import delay
from turnkeeper.core.transcribe import ScribeOutput, interrupted
from turnkeeper.core.turn_ends import Ending, broken_off, is_without_output
from turnkeeper.core.turn_request import PreparedRequest
from turnkeeper.mint import Mint
from turnkeeper.model.event import Event, PartRecorded, TurnStarted
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.status import BUSY, Retrying
from turnkeeper.model.stream import StreamEvent, ToolInputStart
from turnkeeper.outside_code import StrayExit
from turnkeeper.plugins.hooks import TEXT_COMPLETE
from turnkeeper.plugins.payloads import TextCompleteInput, TextCompleteOutput
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.providers.answer_stream import answer_stream
from turnkeeper.providers.provider import Provider
from turnkeeper.run.abandon import first_error
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.settle import Settlement
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.text.surrogates import clean


class Surroundings(msgspec.Struct, frozen=True):
    """The effects that a turn depends on: each injected, so that whole runs can be simulated from a seed."""

    mint: Mint
    publish: Callable[[Delta], None]
    sleep: Callable[[float], Awaitable[None]]
    random: Callable[[], float]
    is_interrupted: Callable[[str], bool] = lambda session_id: True
    """Whether a session is stopped by its user. Else its process is ending, and leaves calls that wait to another."""
    is_cut_off: Callable[[str, BaseException], bool] = lambda session_id, error: False
    """Whether a run of a session that ends with this error was stopped by the store."""


class Turn:
    """One turn, from ``TurnStarted`` to ``TurnEnded``."""

    def __init__(
        self,
        writer: FencedWriter,
        world: Surroundings,
        provider: Provider,
        sent: PreparedRequest,
        message: AssistantMessage,
        settlement: Settlement,
        plugins: PluginSet,
        remedy: Callable[[Failure], Sequence[Event]],
    ) -> None:
        """``remedy`` gives the events that are recorded with a failure so that the next turn does better."""
        self._writer, self._world, self._provider, self._sent = writer, world, provider, sent
        self._settlement, self._snapshots, self._remedy = settlement, settlement.snapshots, remedy
        self._plugins = plugins
        self._snapshots.record = self._record_snapshot
        inputs = sent.inputs
        self._attempts = Attempts(
            message,
            inputs.model,
            inputs.view.session.directory,
            world.mint.part_id,
            tries=inputs.action.tries,
            tries_left=inputs.action.tries_left,
            is_last=inputs.is_last,
            snapshot=lambda: self._snapshots.before,
        )
        self._writing = anyio.Lock(fast_acquire=True)
        self.files: TurnFiles | None = None
        """The changes of the turn to the files of the project, once it has ended."""
        self._is_read, self._open_calls = False, 0
        """Whether the answer was read to its end, and how many of its calls are not settled yet."""

    async def run(self) -> None:
        """Run the turn to its end, which the writer then holds. The end of a cancelled or broken turn is in the log."""
        started = TurnStarted(message=self._attempts.message, prefix=self._sent.prefix)
        view = await self._writer.append(started, at="attempt")
        self._attempts.placed(view.seq)
        self._snapshots.begin()
        try:
            while isinstance(outcome := await self._attempt(), Retry):
                await self._wait_to_retry(outcome)
            self._end(outcome.but(files=await self._snapshots.finish()))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                try:
                    await self._write(lambda: self._attempts.scribe.close(self._now()))
                finally:  # Held also if the store takes no writes now.
                    await self._break_off(error)
                await self._writer.flush(at="leave")
            raise

    async def _break_off(self, error: BaseException) -> None:
        """Hold the end of a turn that was stopped; of one whose process is ending, all but the calls that wait.

        If the store stopped it before anything was said, it stays open: whoever runs the session next asks it again.
        """
        files: TurnFiles | None = None
        is_cut_off = self._world.is_cut_off(self._writer.session_id, error)
        if is_cut_off and is_without_output(await self._writer.view()):
            return
        with anyio.move_on_after(SNAPSHOT_END_S):
            files = await self._snapshots.finish()
        now = self._now()
        never_begun = [call.but(state=interrupted(call, now)) for call in self._attempts.scribe.calls()]
        left = self._settlement.left_waiting
        if left and (is_cut_off or isinstance(error, anyio.get_cancelled_exc_class())):
            self._writer.hold(*(PartRecorded(part=part) for part in never_begun))
            self._writer.hold(*self._attempts.suspend(await self._writer.view(), now, files))
        else:
            never_begun += [call.but(state=interrupted(call, now)) for call in left]
            self._end(broken_off(error, "turn", *never_begun, is_cut_off=is_cut_off).but(files=files))

    def _end(self, ending: Ending) -> None:
        """Hold ``TurnEnded``, with the bill and the step's mark before it and a remedy after it."""
        self.files = ending.files
        remedy = tuple(self._remedy(ending.failure)) if ending.failure is not None else ()
        self._writer.hold(*self._attempts.scribe.snapshot_known())
        self._writer.hold(*self._attempts.close(ending.but(after=remedy), self._now()), at="end")

    async def _attempt(self) -> Retry | Ending:
        """Take in one answer. Calls start as soon as they are recorded; all are settled when this returns."""
        self._attempts.begin()
        self._is_read = is_ticking = False
        try:
            async with anyio.create_task_group() as calls:
                ticker = anyio.CancelScope()
                try:
                    async with aclosing(answer_stream(self._provider, self._sent.request)) as answer:
                        async for batch in answer:
                            await self._take(batch, calls)
                            if not is_ticking and self._attempts.scribe.has_open:
                                is_ticking = True
                                calls.start_soon(self._save_regularly, ticker)
                    await self._write(lambda: self._attempts.scribe.close(self._now()))
                    self._is_read = True
                finally:
                    ticker.cancel()
        except BaseExceptionGroup as group:
            raise first_error(group) from group
        if calls.cancel_scope.cancel_called:
            raise StrayExit("a call was cancelled, though nothing had cancelled the turn")
        return self._attempts.outcome(self._settlement.structured)

    async def _take(self, batch: Sequence[StreamEvent], calls: TaskGroup) -> None:
        attempts = self._attempts
        for event in batch:
            if isinstance(event, ToolInputStart):
                self._settlement.expect(event.name)
        await self._write(lambda: attempts.feed(batch, self._now()))
        if counted := attempts.newly_counted(self._now()):
            self._writer.hold(*counted)
            with suppress(StoreUnavailable):  # They stay held: a call that runs is not stopped for them.
                await self._writer.flush(at="record")
        for call in attempts.scribe.calls():
            self._open_calls += 1
            calls.start_soon(self._run, call, name=f"{call.tool} {call.call_id}")

    async def _run(self, call: ToolPart) -> None:
        try:
            await self._settlement.settle(call, self._may_hold_result)
        finally:
            self._open_calls -= 1

    def _may_hold_result(self) -> bool:
        """Whether the result of a call may wait for the end of the turn, which then follows at once."""
        return self._is_read and self._open_calls == 1 and not self._snapshots.needs_last

    async def _record_snapshot(self) -> None:
        """Make the first snapshot durable: undo needs it, also if this process dies."""
        with suppress(StoreUnavailable):  # It stays held, and the call's result comes after it.
            await self._write(self._attempts.scribe.snapshot_known)
            await self._writer.flush(at="record")

    async def _save_regularly(self, scope: anyio.CancelScope) -> None:
        """Make text durable that no more text follows."""
        with scope:
            while True:
                await self._world.sleep(CHECKPOINT_MS / 1000)
                await self._write(lambda: self._attempts.scribe.checkpoint(self._now(), age_ms=CHECKPOINT_MS // 2))

    async def _write(self, acts: Callable[[], Sequence[ScribeOutput]]) -> None:
        """Append the Scribe's events and publish its deltas, in order; neighbouring events share one append.

        One caller at a time: what the Scribe says builds on what it said before.
        """
        async with self._writing:
            left = iter(acts())
            try:
                for act in left:
                    if isinstance(act, Delta):
                        await self._writer.flush(at="record")
                        self._world.publish(act)
                    else:
                        await self._hold(act)
            finally:
                # If the store takes no writes now: the Scribe says each event only once.
                self._writer.hold(*(act for act in left if not isinstance(act, Delta)))
            if not self._attempts.may_wait(self._writer.held):
                await self._writer.flush(at="record")

    async def _hold(self, event: Event) -> None:
        """Hold an event of the Scribe: a text that has ended as plugins change it."""
        try:
            match event:
                case PartRecorded(part=TextPart(time=Span(end=int())) as part) if self._plugins.has(TEXT_COMPLETE.name):
                    event = PartRecorded(part=await self._completed(part))
        finally:
            # If it is stopped meanwhile, the text is recorded as it is: the Scribe says it only once.
            self._writer.hold(event)

    async def _completed(self, part: TextPart) -> TextPart:
        asked = TextCompleteInput(session_id=part.session_id, message_id=part.message_id, part_id=part.id)
        given = TextCompleteOutput(text=part.text)
        changed = await self._plugins.trigger(TEXT_COMPLETE, asked, given, session_id=part.session_id)
        return part.but(text=clean(changed.output.text)) if changed.by else part

    async def _wait_to_retry(self, retry: Retry) -> None:
        """Record that there is another attempt, take back what the failed one said, and wait."""
        now, number = self._now(), self._attempts.number
        wait = delay(number, retry.failure, now=now, rand=self._world.random())
        await self._writer.append(*self._attempts.take_back(retry, self._writer.drop_held(), now))
        await self._writer.status(Retrying(attempt=number, message=retry.words, next=now + wait))
        await self._world.sleep(wait / 1000)
        await self._writer.status(BUSY)

    def _now(self) -> int:
        return self._world.mint.now()

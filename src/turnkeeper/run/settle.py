"""Settle one tool call: permission, doom loop, run, bound, record. Recorded also when it is stopped half-way."""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import Final

import anyio
import msgspec

from turnkeeper.core.limits import CALLS_PARALLEL_MAX, ENTRY_DEPTH_MAX, PROGRESS_MS
from turnkeeper.core.lowering import LEFT
from turnkeeper.core.next_action import DETACHED
from turnkeeper.core.permission import Allow, Deny, decide
from turnkeeper.core.sandbox import Confinement
from turnkeeper.core.settling import AnswerTaken, Refused, Runs, begun, completed, failed, judge_call, reported, waited
from turnkeeper.core.storable import storable
from turnkeeper.core.transcribe import interrupted
from turnkeeper.mint import Mint
from turnkeeper.model.event import Event, PartRecorded, TodosSet
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolRunning, ToolState
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.question import Question
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Json, JsonObject
from turnkeeper.outside_code import contained
from turnkeeper.plugins import calls
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.run.abandon import StartsTasks, first_error, run_or_abandon
from turnkeeper.run.asking import Asking, WaitingCall
from turnkeeper.run.call_requests import CallRequests
from turnkeeper.run.discovery import Discovery
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.text.surrogates import clean_object
from turnkeeper.tools.delegation import Delegation
from turnkeeper.tools.output import Bounds, settled
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import Denied, Interrupted, Recall, Rejected, ToolContext, ToolFailure
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.jobs import Jobs

BASH: Final = "bash"


class Settlement(msgspec.Struct):
    """Settles the calls of one turn."""

    writer: FencedWriter
    tasks: StartsTasks
    """Outlives the turn: a tool that ignores an interrupt is left in it."""
    mint: Mint
    toolbox: Toolbox
    directory: Path
    worktree: Path
    rules: Ruleset
    asking: Asking
    todos: Callable[[], Awaitable[tuple[Todo, ...]]]
    discovery: Discovery
    snapshots: TurnSnapshots
    earlier: Sequence[Part]
    """The newest calls since the user spoke, in which a doom loop is looked for."""
    bounds: Bounds
    """The limits that the results of the turn share."""
    recall: Recall
    environ: Mapping[str, str]
    """The environment of commands."""
    services: ToolServices
    confine: Callable[[Ruleset, Sequence[Rule]], Confinement | None]
    """How the kernel confines commands under these rules and approvals."""
    jobs: Jobs | None
    """The background jobs of this process."""
    plan: Path
    """The plan file of the session."""
    handed_over: Callable[[str, str], Awaitable[list[Event]]]
    """The events by which another agent is given a prompt."""
    delegate: Callable[[WaitingCall, ToolPart], Delegation]
    """How a call hands its work to a Child Session."""
    plugins: PluginSet
    goes_on_when_rejected: bool
    """Whether the turn is continued after the user rejected a call without feedback."""
    is_interrupted: Callable[[], bool]
    """Whether the user stops the session. Else the process is ending, and calls that wait are left to another one."""
    is_last: bool = False
    """Whether the model was told to answer without tools."""
    schema: JsonObject | None = None
    left_waiting: list[ToolPart] = msgspec.field(default_factory=list)
    """Calls that stay open, for another process to run."""
    structured: Json = None
    """The structured answer, once it was given."""
    _room: anyio.Semaphore = msgspec.field(
        default_factory=lambda: anyio.Semaphore(CALLS_PARALLEL_MAX, fast_acquire=True)
    )
    _seen: list[Part] = msgspec.field(default_factory=list)

    async def settle(self, part: ToolPart, ends_turn: Callable[[], bool]) -> None:
        """Run one call that is recorded as running, and record its result; the last one with the turn's end."""
        await self._settle(self._begin(part), ends_turn)

    def expect(self, tool: str) -> None:
        """Prepare for a call that the model has begun to write."""
        if (prepare := self.toolbox.preparation(tool)) is not None:
            self.tasks.start_soon(prepare, name=f"prepare {tool}")

    async def resume(self, parts: Iterable[ToolPart], waiting: Collection[ToolPart]) -> None:
        """Run the waiting calls of a turn again, from their beginning. ``parts`` are all its calls, in order."""
        again = [self._begin(part) for part in parts]
        try:
            async with anyio.create_task_group() as group:
                for call in again:
                    if call.part in waiting:
                        call.part = begun(call.part, self.mint.now())
                        group.start_soon(self._settle, call, lambda: False)
        except BaseExceptionGroup as group_of_errors:
            raise first_error(group_of_errors) from group_of_errors

    def _begin(self, part: ToolPart) -> "_Call":
        call = _Call(self, part, [*self.earlier, *self._seen], len(self._seen))
        self._seen.append(part)
        return call

    async def _settle(self, call: "_Call", ends_turn: Callable[[], bool]) -> None:
        crash_point("run.tool-begin")
        try:
            async with self._room, self._snapshots_of(call):
                name = f"{call.part.tool} {call.part.call_id}"
                state = await run_or_abandon(self.tasks, call.run, name=name, left=call.leave)
        except anyio.get_cancelled_exc_class():
            if call.waits and not self.is_interrupted():
                self.left_waiting.append(call.part)
            else:
                await call.finish(call.interrupted(), lambda: False)
            raise
        except Exception:
            # The call has not begun, as the store cannot be read. It ends the turn, and a call is never left behind it.
            await call.finish(call.interrupted(), lambda: False)
            raise
        await call.finish(state, ends_turn)

    def _snapshots_of(self, call: "_Call") -> AbstractAsyncContextManager[None]:
        """Encloses a call: with snapshots, if it may change files."""
        return self.snapshots.call(call.part.id, is_command=call.is_command) if call.may_write else nullcontext()


class _Call(WaitingCall):
    """One call while it is settled."""

    def __init__(self, turn: Settlement, part: ToolPart, earlier: Sequence[Part], number: int) -> None:
        self._turn, self.part, self._earlier, self._number = turn, part, earlier, number
        self._reported = 0
        self._is_left = False
        self._read: list[Path] = []
        self._following: list[Event] = []
        tool = turn.toolbox.find(part.tool)
        self.restarts = tool is None or tool.asks_first
        self.may_write = tool is None or not tool.read_only
        self.is_command = tool is None or not tool.names_files

    def is_stopped(self) -> bool:
        """Whether the user stops the session."""
        return self._turn.is_interrupted()

    def leave(self) -> None:
        """Note that the tool has not ended though it was interrupted. From now on it can neither ask nor record."""
        self._is_left = True

    def interrupted(self) -> ToolState:
        """The state of the call if it is stopped now."""
        state = interrupted(self.part, self._now())
        return state.but(error=LEFT, metadata={**(state.metadata or {}), "left": True}) if self._is_left else state

    async def finish(self, state: ToolState, ends_turn: Callable[[], bool]) -> None:
        """Record what came of the call, with what follows from it: one append, so neither is lost alone."""
        is_done = isinstance(state, ToolCompleted)
        after = [*self._turn.discovery.near(self._read), *self._following] if is_done else []
        self.part = self.part.but(state=state)
        self._turn.writer.hold(PartRecorded(part=self.part), *after, at="settle")
        if not ends_turn():
            with suppress(StoreUnavailable):  # The result stays held, and the next append brings it.
                await self._turn.writer.flush()

    async def run(self) -> ToolState:
        turn = self._turn
        try:
            match judge_call(self.part, self._earlier, self._number, schema=turn.schema, is_last=turn.is_last):
                case Refused(text=text, metadata=metadata):
                    return self._failed(text, metadata)
                case AnswerTaken():
                    turn.structured = self.part.state.input
                    title, metadata = "Structured answer", {"structured": True}
                    return completed(self.part, self._now(), "The answer was taken.", title=title, metadata=metadata)
                case Runs(is_doom_loop=is_doom_loop):
                    with contained():
                        return await self._run(is_doom_loop)
        except Rejected as refusal:
            # Without a word from the user the session rests; with one the model goes on by it.
            goes_on = bool(refusal.feedback) or turn.goes_on_when_rejected
            return self._failed(str(refusal), {} if goes_on else {"rejected": True})
        except Interrupted as stop:
            return self._failed(str(stop), {"interrupted": True, DETACHED: True})
        except ToolFailure as failure:
            return self._failed(str(failure), {})
        except Exception as error:
            # A tool may come from anywhere; its bugs are the model's to work around, not the session's end.
            return self._failed(f"The tool failed: {type(error).__name__}: {error}".removesuffix(": "), {})

    async def _run(self, is_doom_loop: bool) -> ToolState:
        part, turn = self.part, self._turn
        if is_doom_loop and not await self._delegation.is_begun():
            await self._ask("doom_loop", (part.tool,), always=(part.tool,), metadata={"input": dict(part.state.input)})
        plugged = calls.PluggedCall(turn.plugins, part.tool, part.session_id, part.call_id)
        given, changed_by = await plugged.arguments(part.state.input)
        context = self._context()
        if part.tool == BASH:
            environ = await plugged.environ(turn.environ, turn.directory)
            context = msgspec.structs.replace(context, environ=environ)
        after = partial(plugged.result, given)
        bound = await turn.toolbox.run(part.tool, given, context, turn.bounds, after)
        more = {"arguments": given, "changedBy": changed_by} if changed_by else {}
        done = settled(self.part, bound, turn.mint, more)
        storable(self.part.but(state=done), ToolPart, "its result", ENTRY_DEPTH_MAX)
        return done

    @property
    def _delegation(self) -> Delegation:
        return self._turn.delegate(self, self.part)

    def _context(self) -> ToolContext:
        turn = self._turn
        return ToolContext(
            directory=turn.directory,
            worktree=turn.worktree,
            session_id=self.part.session_id,
            message_id=self.part.message_id,
            call_id=self.part.call_id,
            ask=self._ask,
            question=self._question,
            progress=self._progress,
            todos=turn.todos,
            set_todos=self._set_todos,
            discovered=self._read.append,
            recall=turn.recall,
            environ=turn.environ,
            may=self._may,
            refuse_denied=self._refuse_denied,
            services=turn.services,
            confine=self._confine,
            jobs=turn.jobs,
            delegation=self._delegation,
            acts=self._acts,
            writes=turn.snapshots.wrote,
            hand_over=self._hand_over,
            plan=turn.plan,
        )

    async def _hand_over(self, agent: str, words: str) -> None:
        self._following = await self._turn.handed_over(agent, words)

    def _acts(self) -> None:
        self.restarts = False

    def _confine(self) -> Confinement | None:
        return self._turn.confine(self._turn.rules, self._turn.asking.approvals())

    def _may(self, permission: str, patterns: Sequence[str]) -> bool:
        return isinstance(decide(self._turn.rules, permission, patterns, self._turn.asking.approvals()), Allow)

    def _refuse_denied(self, permission: str, patterns: Sequence[str]) -> None:
        if isinstance(decision := decide(self._turn.rules, permission, patterns), Deny):
            raise Denied(decision)

    async def _ask(
        self, permission: str, patterns: Sequence[str], *, always: Sequence[str], metadata: JsonObject
    ) -> None:
        self._check_open()
        await self._requests.permission(permission, patterns, always, metadata)

    async def _question(self, questions: Sequence[Question]) -> tuple[tuple[str, ...], ...]:
        self._check_open()
        return await self._requests.answers(questions)

    @property
    def _requests(self) -> CallRequests:
        turn = self._turn
        return CallRequests(self, self.part, turn.rules, turn.asking, turn.plugins, turn.mint, self._waiting)

    @asynccontextmanager
    async def _waiting(self) -> AsyncIterator[None]:
        """Encloses a wait for the user. A call that may have acted before it counts as acting."""
        since = self._now()
        async with self._turn.snapshots.waiting(self.part.id) if self.restarts else nullcontext():
            yield
        self.part = waited(self.part, self._now() - since)

    async def _progress(self, *, title: str | None = None, metadata: JsonObject | None = None) -> None:
        """Keep what a running tool reports; recorded at most every PROGRESS_MS, for each record is a write."""
        state = self.part.state
        if not isinstance(state, ToolRunning):
            return
        given, _ = storable(clean_object(metadata or {}), dict[str, object], "its metadata")
        running = reported(state, title, given)
        self.part = self.part.but(state=running)
        now = self._now()
        if now - self._reported >= PROGRESS_MS:
            self._reported = now
            with suppress(StoreUnavailable):  # The call goes on: its result says more than its progress.
                await self._turn.writer.append(PartRecorded(part=self.part), at="settle")

    async def _set_todos(self, todos: tuple[Todo, ...]) -> None:
        self._check_open()
        await self._turn.writer.append(TodosSet(todos=todos))

    def _check_open(self) -> None:
        if self._is_left:
            raise ToolFailure("The call was interrupted.")

    def _failed(self, text: str, metadata: JsonObject) -> ToolState:
        return failed(self.part, self._now(), text, metadata)

    def _now(self) -> int:
        return self._turn.mint.now()

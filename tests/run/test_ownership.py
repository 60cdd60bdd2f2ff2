"""Who runs a session: one drain at a time, joined, woken, stopped and fenced."""

from pathlib import Path

import anyio
import pytest
from narrow import result_text, results_of

from turnkeeper.core.lowering import STOPPED
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.request import UserTurn
from turnkeeper.model.session import Session
from turnkeeper.model.status import BUSY, IDLE, Owner
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.taking import take_session
from turnkeeper.testing.harness import Play, StageOptions, a_tool, stage
from turnkeeper.tools.tool import ToolContext
from turnkeeper.workspace.owner import this_process

ON_DISK_TOO = pytest.mark.parametrize("engine", ["memory", "sqlite"])


class Works:
    """Drains that do what the test says, and remember that they were asked."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, bool]] = []
        self.gates: list[Gate] = []
        self.begun = anyio.Event()
        self.cleaned = 0
        self.cleanup = Gate()
        self.cleanup.open()
        self.failure: Exception | None = None

    async def drain(self, session_id: str, resume: bool) -> str:
        self.runs.append((session_id, resume))
        gate = Gate()
        self.gates.append(gate)
        self.begun.set()
        self.begun = anyio.Event()
        try:
            await gate.pass_through()
        finally:
            with anyio.CancelScope(shield=True):
                await self.cleanup.pass_through()
            self.cleaned += 1
        if self.failure is not None:
            raise self.failure
        return f"run {len(self.runs)}"

    async def reached(self, number: int) -> Gate:
        while len(self.gates) < number:
            await self.begun.wait()
        await self.gates[number - 1].wait_reached()
        return self.gates[number - 1]


async def test_runs_that_join_share_the_outcome() -> None:
    works = Works()
    outcomes: list[Outcome] = []
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)

        async def run() -> None:
            outcomes.append(await coordinator.run("a"))

        group.start_soon(run)
        first = await works.reached(1)
        group.start_soon(run)
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        first.open()
        (await works.reached(2)).open()  # Who joins asks for one more look, for they may know something new.
    assert outcomes == [Outcome(kind="rested", reason="run 2")] * 3
    assert works.runs == [("a", False)] * 2


async def test_wakes_that_come_during_a_drain_make_one_more(play: Play) -> None:
    works = Works()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        first = await works.reached(1)
        for _ in range(5):
            coordinator.wake("a")
        first.open()
        (await works.reached(2)).open()
        await coordinator.wait("a")
    assert len(works.runs) == 2


async def test_a_wake_that_races_with_a_failure_still_runs_once() -> None:
    works = Works()
    works.failure = RuntimeError("no")
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        first = await works.reached(1)
        coordinator.wake("a")
        outcomes: list[Outcome] = []

        async def wait() -> None:
            outcomes.append(await coordinator.wait("a"))

        group.start_soon(wait)
        await anyio.wait_all_tasks_blocked()
        first.open()
        second = await works.reached(2)
        assert outcomes == [Outcome(kind="crashed", reason="RuntimeError: no")]
        works.failure = None
        second.open()
        assert (await coordinator.wait("a")).kind == "rested"
    assert len(works.runs) == 2


async def test_an_interrupt_waits_until_all_is_settled_and_drops_the_wakes_before_it() -> None:
    works = Works()
    works.cleanup = Gate()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        await works.reached(1)
        coordinator.wake("a")
        stopped: list[bool] = []

        async def interrupt() -> None:
            stopped.append(await coordinator.interrupt("a"))

        group.start_soon(interrupt)
        await works.cleanup.wait_reached()
        assert stopped == []
        assert coordinator.active == {"a"}
        works.cleanup.open()
        await anyio.wait_all_tasks_blocked()
        assert (stopped, works.cleaned, coordinator.active) == ([True], 1, frozenset())
        assert await coordinator.interrupt("a") is False
    assert len(works.runs) == 1


async def test_a_wake_during_the_cleanup_of_an_interrupt_runs_afterwards() -> None:
    works = Works()
    works.cleanup = Gate()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        await works.reached(1)
        group.start_soon(coordinator.interrupt, "a")
        await works.cleanup.wait_reached()
        coordinator.wake("a")
        works.cleanup.open()
        (await works.reached(2)).open()
        assert (await coordinator.wait("a")).kind == "rested"
    assert len(works.runs) == 2


async def test_a_run_asked_for_while_a_drain_is_stopped_waits_and_begins_afresh() -> None:
    works = Works()
    works.cleanup = Gate()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        await works.reached(1)
        group.start_soon(coordinator.interrupt, "a")
        await works.cleanup.wait_reached()
        outcomes: list[Outcome] = []

        async def run() -> None:
            outcomes.append(await coordinator.run("a", resume=True))

        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        works.cleanup.open()
        (await works.reached(2)).open()
        await coordinator.wait("a")
    assert works.runs == [("a", False), ("a", True)]
    assert outcomes == [Outcome(kind="rested", reason="run 2")]


async def test_who_stops_waiting_does_not_stop_the_drain() -> None:
    works = Works()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as callers:
                callers.start_soon(coordinator.run, "a")
                gate = await works.reached(1)
                scope.cancel()
        assert coordinator.active == {"a"}
        gate.open()
        assert (await coordinator.wait("a")).reason == "run 1"


async def test_sessions_do_not_wait_for_each_other() -> None:
    works = Works()
    async with anyio.create_task_group() as group:
        coordinator = Coordinator(group, works.drain)
        coordinator.wake("a")
        coordinator.wake("b")
        await works.reached(2)
        assert coordinator.active == {"a", "b"}
        for gate in works.gates:
            gate.open()


# The same with real sessions.


@ON_DISK_TOO
async def test_an_interrupted_turn_keeps_what_was_said_and_the_partial_output_of_its_tools(play: Play) -> None:
    started = Gate()

    async def shell(text: str, context: ToolContext) -> str:
        await context.progress(title="running", metadata={"output": "half of it"})
        await started.pass_through()
        return "never"

    script = Scripted().says("Running.").calls("shell").then().says("I see half of it.")
    async with play(script, tools=(a_tool("shell", shell),)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await started.wait_reached()
        assert await stage.tk.stop(session) is True
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        assert message.time.completed is not None
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolError)
        assert call.state.metadata == {"output": "half of it", "interrupted": True}
        assert await stage.is_sound(session)
        assert (await stage.tk.run(session)).reason.startswith("the last turn failed")
        await stage.ask(session, "What happened?")
        shown = script.requests[1].messages[2]
        assert (result_text(shown), results_of(shown)[0].is_error) == (f"half of it\n\n{STOPPED}", False)


async def test_a_tool_that_settles_itself_when_it_is_stopped_keeps_its_result(play: Play) -> None:
    started = Gate()

    async def patient(text: str, context: ToolContext) -> str:
        try:
            await started.pass_through()
        except anyio.get_cancelled_exc_class():
            return "stopped, but here is what I have"
        return "never"

    async with play(Scripted().calls("patient"), tools=(a_tool("patient", patient),)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await started.wait_reached()
        await stage.tk.stop(session)
        [(message, parts)] = await stage.turns(session)
        assert isinstance(message.error, AbortedFailure)
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert isinstance(call.state, ToolCompleted)
        assert call.state.output == "stopped, but here is what I have"


async def test_prompts_that_wait_survive_an_interrupt(play: Play) -> None:
    gate = Gate()
    script = Scripted().says("one").waits(gate).then().says("two").then().says("three")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "first")
        await gate.wait_reached()
        await stage.say(session, "queued", delivery="queue")
        await stage.tk.stop(session)
        view = await stage.tk.store.journal.view(session)
        assert len(view.inbox) == 1
        await stage.ask(session, "again")
        assert len(script.requests) == 3
        assert (await stage.tk.store.journal.view(session)).inbox == ()


async def test_resuming_asks_once_more_where_the_last_turn_was_stopped(play: Play) -> None:
    gate = Gate()
    script = Scripted().says("Half a ").waits(gate).then().says("whole sentence.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        await stage.tk.stop(session)
        assert (await stage.tk.run(session, resume=True)).reason == "answered"
        (stopped, parts), (_, answer) = await stage.turns(session)
        assert isinstance(stopped.error, AbortedFailure)
        assert [part.text for part in (*parts, *answer) if isinstance(part, TextPart)] == ["Half a ", "whole sentence."]


async def test_status_is_told_when_it_changes_and_only_then(play: Play) -> None:
    gate = Gate()
    async with play(Scripted().says("a").waits(gate).then().says("b")) as stage:
        session = await stage.session()
        async with stage.tk.subscribe(session_id=session) as notifications:
            await stage.say(session, "go")
            await gate.wait_reached()
            await stage.say(session, "more")
            gate.open()
            await stage.tk.wait(session)
            await stage.tk.run(session)  # Nothing to do: nothing to tell.
            await stage.tk.rename(session, "the end")
            told = []
            async for one in notifications:
                match one:
                    case Notification(type="session.status", properties={"status": status}):
                        told.append(status)
                    case Notification(type="session.updated", properties={"info": Session(title="the end")}):
                        break
        assert told == [BUSY, IDLE]


async def test_a_second_runtime_is_refused_while_the_first_runs_the_session(tmp_path: Path) -> None:
    url, gate = f"sqlite:{tmp_path}/store", Gate()
    script = Scripted().waits(gate).says("mine").then().says("yours")
    async with stage(url, tmp_path / "place", script) as first, stage(url, tmp_path / "place", script) as second:
        session = await first.session()
        await first.say(session, "go")
        await gate.wait_reached()
        refused = await second.tk.run(session)
        assert refused.kind == "refused"
        assert "is being run by process" in refused.reason
        await second.say(session, "from the other", resume=False)
        gate.open()
        await first.tk.wait(session)
        assert len(script.requests) == 2  # The owner took the other's prompt too.
        assert (await second.tk.run(session)).reason == "answered"
        assert await second.is_sound(session)


@ON_DISK_TOO
async def test_an_owner_that_was_replaced_cannot_write_and_stops(play: Play) -> None:
    gate = Gate()
    async with play(Scripted().says("one ").waits(gate).says("two")) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        journal = stage.tk.store.journal
        fence = await stage.tk.store.engine.fence(session) + 1
        elsewhere = Owner(host="elsewhere", pid=1, started="")
        await journal.append(session, e.StatusChanged(status=BUSY, owner=elsewhere), fence=fence)
        written = len(await stage.events(session))
        gate.open()
        outcome = await stage.tk.wait(session)
        assert outcome.kind == "refused"
        assert "took" in outcome.reason
        assert len(await stage.events(session)) == written
        assert (await journal.view(session)).owner == elsewhere


@ON_DISK_TOO
async def test_a_session_is_not_laid_down_over_what_came_meanwhile(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        store = stage.tk.store
        writer = await take_session(store, session, this_process())
        before = await store.journal.view(session)
        await stage.say(session, "wait!", resume=False)
        assert await writer.release(before.seq) is False
        assert await stage.tk.status(session) == BUSY
        assert await writer.release((await store.journal.view(session)).seq) is True
        assert await stage.tk.status(session) == IDLE


async def test_closing_the_store_stops_what_runs_and_leaves_it_settled(tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path}/store"
    gates = [Gate() for _ in range(3)]
    script = Scripted()
    for gate in gates:
        script.says("half").waits(gate).then()
    sessions = []
    async with stage(url, tmp_path / "place", script) as opened:
        for gate in gates:
            sessions.append(await opened.session())
            await opened.say(sessions[-1], "go")
            await gate.wait_reached()
    async with stage(url, tmp_path / "place", Scripted()) as again:
        for session in sessions:
            [(message, _)] = await again.turns(session)
            assert isinstance(message.error, AbortedFailure)
            assert await again.is_sound(session)


async def test_a_removed_session_is_stopped_first(tmp_path: Path) -> None:
    gate = Gate()
    script = Scripted().says("before").then().waits(gate).says("x").then().says("after")
    async with stage("memory:", tmp_path / "place", script, StageOptions()) as opened:
        session = await opened.session()
        await opened.ask(session, "one")
        await opened.say(session, "two")
        await gate.wait_reached()
        await opened.tk.remove(session)
        assert opened.tk.runtime.active == frozenset()
        again = await opened.session(id=session)
        assert again == session
        assert await opened.messages(session) == []
        await opened.ask(session, "Hello?")
        assert [type(message) for message in script.requests[-1].messages] == [UserTurn]

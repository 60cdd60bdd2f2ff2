"""A session is stopped from any process, and only the run that was meant."""

from pathlib import Path

import anyio
import pytest
from children import AGENTS, TOOLS_AND_TASK, BySession, a_task

from turnkeeper.mint import Mint
from turnkeeper.model.event import StatusChanged
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import BUSY, IDLE, Idle
from turnkeeper.model.value import encode
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.stop_requests import StopRequest
from turnkeeper.store import keys
from turnkeeper.testing.harness import StageOptions, stage
from turnkeeper.workspace.owner import this_process

PATIENCE_S = 120


async def test_a_session_is_stopped_by_a_process_that_does_not_run_it(tmp_path: Path) -> None:
    url, place, gate = f"sqlite:{tmp_path}/store", tmp_path / "place", Gate()
    script = Scripted().says("Half a ").waits(gate)
    async with stage(url, place, script) as first, stage(url, place, Scripted(), mint=Mint.fixed(seed=2)) as second:
        session = await first.session()
        await first.say(session, "go")
        await gate.wait_reached()
        with anyio.fail_after(PATIENCE_S):
            assert await second.tk.stop(session) is True
        assert first.tk.running == frozenset()
        [(message, _)] = await second.turns(session)
        assert isinstance(message.error, AbortedFailure)
        assert await second.is_sound(session)
        assert await second.tk.store.engine.scan(("stop",)) == []


async def test_a_session_that_rests_is_stopped_with_a_child_session_that_another_process_runs(tmp_path: Path) -> None:
    url, place, gate = f"sqlite:{tmp_path}/store", tmp_path / "place", Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one", background=True)).then().says("It runs."),
        one=Scripted().says("I am ").waits(gate),
    )
    options = StageOptions(config=AGENTS, tools=TOOLS_AND_TASK)
    async with (
        stage(url, place, model, options) as first,
        stage(url, place, Scripted(), options, mint=Mint.fixed(seed=2)) as second,
    ):
        session = await first.session()
        await first.say(session, "root: go")
        await gate.wait_reached()
        await first.tk.wait(session)
        [child] = await first.tk.children(session)
        with anyio.fail_after(PATIENCE_S):
            assert await second.tk.stop(session) is True
            await first.tk.wait_family(session)
        assert [await second.tk.status(one) for one in (session, child.id)] == [IDLE, IDLE]
        [(message, _)] = await second.turns(child.id)
        assert isinstance(message.error, AbortedFailure)
        # The session was stopped, so it is not told, and goes on with nothing.
        assert len(await second.turns(session)) == 2
        assert await second.tk.stop(session) is False
        assert await second.is_sound(session)


async def test_a_session_is_let_go_if_a_child_session_of_it_cannot_be_stopped(tmp_path: Path) -> None:
    url, place, gate = f"sqlite:{tmp_path}/store", tmp_path / "place", Gate()
    model = BySession(
        root=Scripted().calls("task", **a_task("one", background=True)).then().says("It runs."),
        one=Scripted().says("I am ").waits(gate),
    )
    options = StageOptions(config=AGENTS, tools=TOOLS_AND_TASK)
    async with stage(url, place, model, options) as first:
        session = await first.session()
        await first.say(session, "root: go")
        await gate.wait_reached()
        await first.tk.wait(session)
        [child] = await first.tk.children(session)
    async with stage(url, place, Scripted(), options, mint=Mint.fixed(seed=2)) as second:
        of_old_version = this_process().but(runtime="another", lease_s=0)
        await second.tk.store.journal.append(child.id, StatusChanged(status=BUSY, owner=of_old_version))
        with pytest.raises(Busy, match=child.id):
            await second.tk.stop(session)
        assert isinstance(await second.tk.status(session), Idle)


async def test_a_request_that_means_an_earlier_run_stops_nothing(tmp_path: Path) -> None:
    gate = Gate()
    async with stage("memory:", tmp_path / "place", Scripted().says("A whole ").waits(gate).says("word.")) as opened:
        session, engine = await opened.session(), opened.tk.store.engine
        await opened.say(session, "go")
        await gate.wait_reached()
        late = StopRequest(fence=await engine.fence(session) - 1)
        await engine.put({keys.stop_request(session): encode(late)})
        with anyio.fail_after(PATIENCE_S):
            while await engine.scan(("stop",)):
                await anyio.sleep(0)
        gate.open()
        assert (await opened.tk.wait(session)).reason == "answered"


@pytest.mark.parametrize("background", [False, True], ids=["a call waits", "in the background"])
@pytest.mark.parametrize("stopper", ["parent's", "child's", "neither"])
async def test_a_session_is_stopped_with_a_child_session_that_another_process_runs(
    tmp_path: Path, stopper: str, background: bool
) -> None:
    url, place, gate, held = f"sqlite:{tmp_path}/store", tmp_path / "place", Gate(), Gate()
    here = BySession(
        root=Scripted().calls("task", **a_task("one")).then().says("Done."), one=Scripted().says("I am done.")
    )
    there = BySession(one=Scripted().says("I am ").waits(held))
    options = StageOptions(config=AGENTS, tools=TOOLS_AND_TASK)
    async with (
        stage(url, place, here, options) as first,
        stage(url, place, there, options, mint=Mint.fixed(seed=2)) as second,
        stage(url, place, Scripted(), options, mint=Mint.fixed(seed=3)) as third,
    ):
        session = await first.session()
        await first.ask(session, "root: go")
        [child] = await first.tk.children(session)
        await second.say(child.id, "one: go on")
        await held.wait_reached()
        again = a_task("one", task_id=child.id, background=background)
        here.add(again=Scripted().calls("task", **again).then().says("It runs.").waits(gate).says("No more."))
        here.rename(session, "again")
        await first.say(session, "again: go")
        with anyio.fail_after(PATIENCE_S):
            while not (await third.tk.store.journal.view(child.id)).inbox:  # The prompt of the task.
                await anyio.sleep(0)
            if background:
                await gate.wait_reached()
            asked = {"parent's": first, "child's": second, "neither": third}[stopper]
            assert asked.tk.runtime.active == (
                {session} if asked is first else {child.id} if asked is second else set()
            )
            assert await asked.tk.stop(session) is True
            while first.tk.running or second.tk.running:
                await anyio.sleep(0)
        for one in (session, child.id):
            assert await third.tk.status(one) == IDLE
            assert isinstance((await third.turns(one))[-1][0].error, AbortedFailure)
            assert await third.is_sound(one)
        view = await third.tk.store.journal.view(session)
        assert (view.children, view.inbox) == ((), ())

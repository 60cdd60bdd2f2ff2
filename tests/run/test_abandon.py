"""An interrupt does not wait for what will not stop: the call is settled, and what it started is ended or named."""

import os
import select
import threading
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from anyio import to_thread

from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolError
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.abandon import run_or_abandon
from turnkeeper.testing.harness import Play, Stage, a_tool
from turnkeeper.tools import load
from turnkeeper.tools.custom import tool
from turnkeeper.tools.tool import ToolContext, ToolFailure

DEADLINE_S = 30


async def test_work_gives_its_result_or_raises_its_error() -> None:
    async def works() -> int:
        return 7

    async def fails() -> int:
        raise ValueError("no")

    async with anyio.create_task_group() as group:
        assert await run_or_abandon(group, works, name="works") == 7
        with pytest.raises(ValueError, match="no"):
            await run_or_abandon(group, fails, name="fails")


async def test_a_tool_that_ignores_an_interrupt_is_left_and_its_call_is_settled(play: Play) -> None:
    begun, release, ended = anyio.Event(), anyio.Event(), anyio.Event()
    refused: list[str] = []

    async def stubborn(text: str, context: ToolContext) -> str:
        begun.set()
        with anyio.CancelScope(shield=True):
            await release.wait()
            await context.progress(title="late", metadata={"output": "late"})
            try:
                await context.ask("mine", ["x"], always=[], metadata={})
            except ToolFailure as failure:
                refused.append(str(failure))
            ended.set()
        return "late"

    async with play(Scripted().calls("stubborn").then().says("Well."), tools=(a_tool("stubborn", stubborn),)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await begun.wait()
        assert await stage.tk.stop(session)
        assert await error_of(stage, session) == {"interrupted": True, "left": True}
        events = len(await stage.events(session))
        release.set()
        await ended.wait()
        assert refused == ["The call was interrupted."]
        assert len(await stage.events(session)) == events
        assert (await stage.ask(session, "And now?")).reason == "answered"
        assert await stage.is_sound(session)


async def test_a_coroutine_that_swallows_cancellation_is_reminded_and_does_not_keep_the_loop_busy() -> None:
    begun, release = anyio.Event(), anyio.Event()
    told = 0

    async def stubborn() -> None:
        nonlocal told
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except anyio.get_cancelled_exc_class():
                told += 1

    with anyio.fail_after(DEADLINE_S):
        async with anyio.create_task_group() as group:
            async with anyio.create_task_group() as callers:
                callers.start_soon(partial(run_or_abandon, group, stubborn, name="stubborn", grace_s=0))
                await begun.wait()
                callers.cancel_scope.cancel()
            before = told
            for _ in range(1000):
                await anyio.lowlevel.checkpoint()
            soon = told - before
            while told == before:  # It is not forgotten either.
                await anyio.sleep(0)
            release.set()
    assert soon < 100


async def test_a_command_that_ignores_the_request_to_end_does_not_hold_an_interrupt_up_and_is_killed(
    play: Play, tmp_path: Path
) -> None:
    script = Scripted().calls("bash", command="exec 9>alive; trap '' TERM; echo on >&9; sleep 100; sleep 100")
    async with play(script, tools=tuple(load(["bash"]))) as stage:
        session = await stage.session()
        directory = Path((await stage.tk.get(session)).directory)
        os.mkfifo(directory / "alive")
        alive = os.open(directory / "alive", os.O_RDONLY | os.O_NONBLOCK)
        await stage.say(session, "go")
        await anyio.wait_readable(alive)
        assert os.read(alive, 100) == b"on\n"
        assert await stage.tk.stop(session)
        state = await error_of(stage, session)
        assert (state["interrupted"], state["left"]) == (True, True)
        assert not select.select([alive], [], [], 0)[0], "the interrupt waited for the command"
        await anyio.wait_readable(alive)
        assert os.read(alive, 100) == b""
        os.close(alive)


async def test_the_jobs_of_a_session_end_when_it_is_interrupted_or_removed(play: Play) -> None:
    command = "exec 9>alive; echo on >&9; sleep 100"
    script = Scripted().calls("bash", command=command, background=True).then().says("Started.").forever()
    async with play(script, tools=tuple(load(["bash", "jobs"]))) as stage:
        session = await stage.session()
        directory = Path((await stage.tk.get(session)).directory)
        os.mkfifo(directory / "alive")
        alive = os.open(directory / "alive", os.O_RDONLY | os.O_NONBLOCK)
        await stage.ask(session, "go")
        await anyio.wait_readable(alive)
        assert os.read(alive, 100) == b"on\n"
        await stage.tk.stop(session)
        await anyio.wait_readable(alive)
        assert os.read(alive, 100) == b""
        os.close(alive)
        await stage.tk.remove(session)


async def error_of(stage: Stage, session: str) -> dict[str, object]:
    """The metadata of the call of the last turn, which was interrupted."""
    _, parts = (await stage.turns(session))[-1]
    [call] = [part for part in parts if isinstance(part, ToolPart)]
    assert isinstance(call.state, ToolError)
    return dict(call.state.metadata or {})


async def test_a_function_on_a_thread_that_is_interrupted_is_named_as_still_at_work(play: Play) -> None:
    begun, release, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def slow() -> str:
        """Wait."""
        begun.set()
        release.wait(DEADLINE_S)
        ended.set()
        return "late"

    async with play(Scripted().calls("slow").then().says("Well."), tools=(slow,)) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        assert await to_thread.run_sync(begun.wait, DEADLINE_S)
        assert await stage.tk.stop(session)
        assert await error_of(stage, session) == {"interrupted": True, "left": True}
        release.set()
        assert await to_thread.run_sync(ended.wait, DEADLINE_S)


async def test_a_store_is_closed_though_tools_go_on_and_they_are_named(
    play: Play, caplog: pytest.LogCaptureFixture
) -> None:
    begun, thread_begun = anyio.Event(), threading.Event()
    release, thread_release, ended = anyio.Event(), threading.Event(), anyio.Event()

    @tool
    async def deaf() -> str:
        """Swallow every cancellation."""
        begun.set()
        while not release.is_set():
            try:
                await release.wait()
            except anyio.get_cancelled_exc_class():
                continue
        ended.set()
        return "late"

    @tool
    def slow() -> str:
        """Wait on a thread."""
        thread_begun.set()
        thread_release.wait(2 * DEADLINE_S)
        return "late"

    try:
        with anyio.fail_after(DEADLINE_S):
            async with play(Scripted().calls("deaf").calls("slow").then().says("Well."), tools=(deaf, slow)) as stage:
                await stage.say(await stage.session(), "go")
                await begun.wait()
                assert await to_thread.run_sync(thread_begun.wait, DEADLINE_S)
        [warning] = [one.getMessage() for one in caplog.records if "go on until the program ends" in one.getMessage()]
        assert "deaf" in warning
        assert "slow" in warning
        assert not ended.is_set()
    finally:
        release.set()
        thread_release.set()
    with anyio.fail_after(DEADLINE_S):
        await ended.wait()

"""Stopping every session of a process: all at once, and not longer than it may take."""

from pathlib import Path

import anyio
import pytest

from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import EachSession, StageOptions, a_tool, stage
from turnkeeper.tools.tool import ToolContext

SESSIONS = 3
DEADLINE_S = 60
LIMIT_S = 15
"""A test that fails leaves no tool behind that never ends."""


class Reluctant:
    """A tool that is told to stop and goes on until it is let go."""

    def __init__(self) -> None:
        self.running = self.stopping = 0
        self.let_go = anyio.Event()
        self.changed = anyio.Event()

    async def __call__(self, text: str, context: ToolContext) -> str:
        self.running += 1
        self.tell()
        try:
            await anyio.sleep_forever()
        finally:
            self.stopping += 1
            self.tell()
            with anyio.move_on_after(LIMIT_S, shield=True):
                await self.let_go.wait()
        return "never"

    def tell(self) -> None:
        self.changed.set()
        self.changed = anyio.Event()

    async def all_run(self) -> None:
        while self.running < SESSIONS:
            await self.changed.wait()

    async def let_go_when_all_are_stopping(self) -> None:
        while self.stopping < SESSIONS:
            await self.changed.wait()
        self.let_go.set()


def options(tool: Reluctant) -> StageOptions:
    return StageOptions(tools=(a_tool("works", tool),))


def scripts() -> EachSession:
    return EachSession(lambda: Scripted().calls("works", text="a").then().says("Done."))


async def test_sessions_are_stopped_all_at_once(tmp_path: Path) -> None:
    tool = Reluctant()
    with anyio.fail_after(DEADLINE_S):
        async with stage("memory:", tmp_path, scripts(), options(tool)) as opened:
            for _ in range(SESSIONS):
                await opened.say(await opened.session(), "Go.")
            await tool.all_run()
            async with anyio.create_task_group() as group:
                group.start_soon(tool.let_go_when_all_are_stopping)
                await opened.tk.stop(timeout_s=LIMIT_S / 3)
                group.cancel_scope.cancel()
            assert opened.tk.running == frozenset()


async def test_stopping_ends_in_time_though_a_tool_does_not(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tool = Reluctant()
    with anyio.fail_after(DEADLINE_S):
        async with stage("memory:", tmp_path, scripts(), options(tool)) as opened:
            sessions = [await opened.session() for _ in range(SESSIONS)]
            for session in sessions:
                await opened.say(session, "Go.")
            await tool.all_run()
            await opened.tk.stop(timeout_s=0.1)
            assert opened.tk.running == frozenset(sessions)
            assert all(session in caplog.text for session in sessions)
            tool.let_go.set()

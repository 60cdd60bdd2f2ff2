"""Child Sessions and the end of a process: what waits goes on waiting, and what was done is found by the next one."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest
from children import AGENTS, TOOLS_AND_TASK, BySession, a_task, calls, texts
from narrow import of_type

from turnkeeper.core.next_action import WAITS
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model.event import StatusChanged
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.status import BUSY, IDLE, Idle
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import reject_all
from turnkeeper.testing.harness import Stage, StageOptions, stage
from turnkeeper.workspace.owner import this_process

DEADLINE_S = 60


class House:
    """A store on a disk that processes open one after the other."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._openings = count()

    @asynccontextmanager
    async def opened(self, provider: Provider, **given: Any) -> AsyncIterator[Stage]:
        """One process. It answers nothing by itself."""
        options = StageOptions(**{"ask": None, "question": None, "config": AGENTS, "tools": TOOLS_AND_TASK, **given})
        opening = next(self._openings)
        mint = Mint.fixed(FIXED_START_MS + opening * 1_000_000, opening)
        with anyio.fail_after(DEADLINE_S):
            url = f"sqlite:{self.directory}/store"
            async with stage(url, self.directory / "place", provider, options, mint=mint) as found:
                yield found

    async def left_asking(self) -> tuple[str, str]:
        """A session that a process left while a call of its Child Session asked; both sessions."""
        model = BySession(
            root=Scripted().calls("task", **a_task("one", agent="scout")), one=Scripted().calls("asks", text="may I?")
        )
        async with self.opened(model) as runtime:
            session = await runtime.session()
            async with runtime.tk.subscribe() as heard:
                await runtime.say(session, "root: go")
                async for one in heard:
                    if isinstance(one, Notification) and one.type == "permission.asked":
                        return session, one.session_id
        raise AssertionError("nothing was asked")

    async def left_working(self, *, background: bool = False) -> tuple[str, str]:
        """A session that a process left while its Child Session was answering."""
        gate = Gate()
        model = BySession(
            root=Scripted().calls("task", **a_task("one", background=background)).then().says("It runs."),
            one=Scripted().says("I am ").waits(gate),
        )
        async with self.opened(model) as runtime:
            session = await runtime.session()
            await runtime.say(session, "root: go")
            await gate.wait_reached()
            if background:
                await runtime.tk.wait(session)
            [child] = await runtime.tk.children(session)
            return session, child.id


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


async def test_an_ask_of_a_child_session_is_answered_after_the_process_and_the_parent_goes_on(house: House) -> None:
    session, child = await house.left_asking()
    model = BySession(root=Scripted().says("done"), one=Scripted().says("one is done"))
    async with house.opened(model) as runtime:
        await runtime.tk.recover()
        assert isinstance(await runtime.tk.status(session), Idle)
        [asked] = await runtime.tk.permissions()
        assert asked.session_id == child
        assert (await runtime.tk.run(session)).reason == WAITS
        await runtime.tk.reply(asked.id, "once")
        await runtime.tk.wait(child)
        await runtime.tk.wait(session)
        assert of_type(ToolCompleted, (await calls(runtime, session))[0]).output.splitlines()[2] == "one is done"
        assert (await texts(runtime, session))[-1] == "done"
        assert await runtime.is_sound(session)


async def test_where_nobody_can_answer_a_family_that_waits_goes_on_waiting(house: House) -> None:
    session, child = await house.left_asking()
    async with house.opened(BySession(), ask=reject_all) as runtime:
        await runtime.tk.recover("continue")
        assert (await runtime.tk.run(session, resume=True)).reason == WAITS
        assert [asked.session_id for asked in await runtime.tk.permissions()] == [child]


async def test_aborting_a_session_that_waits_closes_its_child_sessions(house: House) -> None:
    session, child = await house.left_asking()
    async with house.opened(BySession()) as runtime:
        assert await runtime.tk.stop(session)
        assert await runtime.tk.permissions() == []
        for one in (session, child):
            assert isinstance((await runtime.turns(one))[-1][0].error, AbortedFailure)
            assert await runtime.is_sound(one)


async def test_a_child_session_that_was_cut_off_is_reported_and_the_session_rests(house: House) -> None:
    session, child = await house.left_working()
    model = BySession(root=Scripted().says("I see."))
    async with house.opened(model) as runtime:
        await runtime.tk.recover("rest")
        [state] = await calls(runtime, session)
        assert (of_type(ToolError, state).metadata or {})["interrupted"] is True
        assert child in of_type(ToolError, state).error
        assert isinstance((await runtime.turns(session))[-1][0].error, AbortedFailure)
        assert model.requests == []
        await runtime.tk.run(session, resume=True)
        assert (await texts(runtime, session))[-1] == "I see."
        assert await runtime.is_sound(session)


async def test_a_session_whose_child_session_was_cut_off_is_resumed_at_once(house: House) -> None:
    session, child = await house.left_working()
    async with house.opened(BySession(root=Scripted().says("I see."))) as runtime:
        await runtime.tk.run(session, resume=True)
        [state] = await calls(runtime, session)
        assert child in of_type(ToolError, state).error
        assert (await texts(runtime, session))[-1] == "I see."
        assert await runtime.is_sound(session)


@pytest.mark.parametrize("is_owned", [False, True])
async def test_a_background_task_that_was_cut_off_is_reported_once(house: House, is_owned: bool) -> None:
    session, child = await house.left_working(background=True)
    async with house.opened(BySession(root=Scripted().says("I see."))) as runtime:
        if is_owned:  # The process died before it had released the session.
            dead = this_process().but(pid=2**22 + 1, started="long ago")
            await runtime.tk.store.journal.append(session, StatusChanged(status=BUSY, owner=dead))
        await runtime.tk.recover("rest")
        assert (await texts(runtime, session))[-1] == "I see."
        reported = [text for text in await texts(runtime, session) if text.startswith("<task")]
        assert [text.splitlines()[0] for text in reported] == [f'<task id="{child}" state="error">']
    async with house.opened(BySession()) as runtime:
        await runtime.tk.recover("continue")
        assert (await runtime.tk.store.journal.view(session)).children == ()
        assert await runtime.is_sound(session)


async def test_a_background_task_that_was_cut_off_does_not_count_as_rested(house: House) -> None:
    session, child = await house.left_working(background=True)
    async with house.opened(BySession(root=Scripted().says("I see."))) as runtime:
        outcome = await runtime.tk.wait_family(session)
        assert outcome.kind == "abandoned"
        assert child in outcome.reason
        assert f"resuming session {session}" in outcome.reason
        await runtime.tk.recover("rest")
        assert (await runtime.tk.wait_family(session)).kind == "rested"


async def test_a_background_task_whose_process_was_killed_does_not_count_as_rested(house: House) -> None:
    session, child = await house.left_working(background=True)
    async with house.opened(BySession(root=Scripted().says("I see."))) as runtime:
        dead = this_process().but(pid=2**22 + 1, started="long ago")
        await runtime.tk.store.journal.append(child, StatusChanged(status=BUSY, owner=dead))
        outcome = await runtime.tk.wait_family(session)
        assert (outcome.kind, child in outcome.reason) == ("abandoned", True)
        await runtime.tk.run(child, resume=False)
        assert (await runtime.tk.wait_family(session)).kind == "rested"
        assert (await texts(runtime, session))[-1] == "I see."


async def test_a_background_task_of_another_process_is_waited_for(house: House) -> None:
    session, child = await house.left_working(background=True)
    outcomes: list[str] = []
    async with house.opened(BySession(root=Scripted().says("I see."))) as runtime:
        living = this_process().but(runtime="another")
        await runtime.tk.store.journal.append(child, StatusChanged(status=BUSY, owner=living))

        async def wait() -> None:
            outcomes.append((await runtime.tk.wait_family(session)).kind)

        async with anyio.create_task_group() as group:
            group.start_soon(wait)
            await anyio.wait_all_tasks_blocked()
            assert outcomes == []
            await runtime.tk.store.journal.append(child, StatusChanged(status=IDLE))
        assert outcomes == ["abandoned"]


async def test_a_background_task_that_waits_for_the_user_is_not_waited_for(house: House) -> None:
    model = BySession(
        root=Scripted().calls("task", **a_task("one", agent="scout", background=True)).then().says("It runs."),
        one=Scripted().calls("asks", text="may I?"),
    )
    async with house.opened(model) as runtime:
        session = await runtime.session()
        async with runtime.tk.subscribe() as heard:
            await runtime.say(session, "root: go")
            async for one in heard:
                if isinstance(one, Notification) and one.type == "permission.asked":
                    break
    async with house.opened(BySession()) as runtime:
        await runtime.tk.recover()
        assert (await runtime.tk.wait_family(session)).kind == "rested"
        assert len(await runtime.tk.permissions()) == 1

"""The time limit of a call: how it ends, and when it does not run."""

from functools import partial

import anyio
import msgspec
import pytest
from desk import Desk

from turnkeeper.tools.time_limit import within
from turnkeeper.tools.tool import ToolContext, ToolFailure

LIMIT_S = 0.1


async def test_a_call_that_takes_longer_fails(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match=r"The tool slow took more than 0.1 s and was stopped\."):
        await within(LIMIT_S, "slow", desk.context(), lambda context: anyio.Event().wait())


async def test_waiting_for_the_user_does_not_count(desk: Desk) -> None:
    async def user(*given: object, **named: object) -> None:
        await anyio.sleep_until(anyio.current_time() + 2 * LIMIT_S)

    async def asks(context: ToolContext) -> str:
        await context.ask("mine", ["*"], always=[], metadata={})
        return "allowed"

    context = msgspec.structs.replace(desk.context(), ask=user)
    assert await within(LIMIT_S, "asks", context, asks) == "allowed"


async def test_two_questions_at_once_give_a_call_no_time_that_it_has_used(desk: Desk) -> None:
    used_s, limit_s = LIMIT_S / 2, 60.0
    answered = {"first": anyio.Event(), "second": anyio.Event()}

    async def user(permission: str, *given: object, **named: object) -> None:
        await answered[permission].wait()

    async def asks(context: ToolContext) -> float:
        await anyio.sleep_until(anyio.current_time() + used_s)
        async with anyio.create_task_group() as group:
            for permission in answered:
                group.start_soon(partial(context.ask, permission, ["*"], always=[], metadata={}))
            await anyio.wait_all_tasks_blocked()
            answered["first"].set()
            await anyio.wait_all_tasks_blocked()
            answered["second"].set()
        return anyio.current_effective_deadline() - anyio.current_time()

    left_s = await within(limit_s, "asks", msgspec.structs.replace(desk.context(), ask=user), asks)
    assert isinstance(left_s, float)
    assert left_s <= limit_s - used_s


async def test_without_a_limit_a_call_takes_as_long_as_it_takes(desk: Desk) -> None:
    async def done(context: ToolContext) -> str:
        return "done"

    assert await within(None, "any", desk.context(), done) == "done"

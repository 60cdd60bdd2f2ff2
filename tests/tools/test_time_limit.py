"""The time limit of a call: how it ends, and when it does not run."""

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


async def test_without_a_limit_a_call_takes_as_long_as_it_takes(desk: Desk) -> None:
    async def done(context: ToolContext) -> str:
        return "done"

    assert await within(None, "any", desk.context(), done) == "done"

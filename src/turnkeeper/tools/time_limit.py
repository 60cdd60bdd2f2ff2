"""The time limit of a call. It does not run while the call waits for the user."""

import math
from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import msgspec

from turnkeeper.tools.tool import ToolContext, ToolFailure


async def within(
    limit_s: float | None, name: str, context: ToolContext, call: Callable[[ToolContext], Awaitable[object]]
) -> object:
    """The result of a call, with a context that stops the clock. Raises ToolFailure at the limit; None: no limit."""
    if limit_s is None:
        return await call(context)
    scope = anyio.CancelScope(deadline=anyio.current_time() + limit_s)
    waits, left = 0, limit_s

    def stopping(ask: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def asked(*given: object, **named: object) -> object:
            nonlocal waits, left
            if not waits:
                left, scope.deadline = scope.deadline - anyio.current_time(), math.inf
            waits += 1
            try:
                return await ask(*given, **named)
            finally:
                waits -= 1
                if not waits:
                    scope.deadline = anyio.current_time() + left

        return asked

    with scope:
        timed = msgspec.structs.replace(context, ask=stopping(context.ask), question=stopping(context.question))
        return await call(timed)
    raise ToolFailure(f"The tool {name} took more than {limit_s:g} s and was stopped.")

"""Isolation: tools of plugins and of files run on threads of their own, within a time limit.

The callbacks of a ToolContext belong to the event loop of the program. An isolated tool has a context whose callbacks
run there and are awaited where the tool runs. Tools that a program gives to ``open`` are not isolated: they share
objects with the program that belong to its event loop.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec
from anyio.from_thread import BlockingPortal

from turnkeeper.core.limits import OUTSIDE_TOOL_S
from turnkeeper.core.recall import Recalled, RecallHit
from turnkeeper.outside_code.threads import OutsideThreads
from turnkeeper.tools.custom import FunctionCall
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.time_limit import within
from turnkeeper.tools.tool import AnyTool, Recall, ToolContext, ToolFailure, ToolOutput

OURS = "turnkeeper."


def isolated(tool: AnyTool, threads: OutsideThreads, limit_s: float = OUTSIDE_TOOL_S) -> AnyTool:
    """The tool, with its code on these threads. A built-in tool stays as it is: its code is ours."""
    execute = tool.execute
    if isinstance(execute, FunctionCall):
        call = partial(_call, threads)
        within_s = execute.timeout_s if execute.timeout_s is not None else limit_s
        return msgspec.structs.replace(tool, execute=msgspec.structs.replace(execute, call=call, timeout_s=within_s))
    if getattr(execute, "__module__", "").startswith(OURS):
        return tool

    async def run(arguments: object, context: ToolContext) -> ToolOutput:
        def bound(bridged: ToolContext) -> Callable[[], object]:
            return partial(execute, arguments, bridged)

        result = await within(limit_s, tool.name, context, lambda limited: _call(threads, bound, limited))
        if not isinstance(result, ToolOutput):
            raise ToolFailure(f"The tool {tool.name} returned {type(result).__name__}; it must return a ToolOutput.")
        return result

    return msgspec.structs.replace(tool, execute=run)


async def _call(
    threads: OutsideThreads, bound: Callable[[ToolContext], Callable[[], object]], context: ToolContext
) -> object:
    """Call on the threads the function that ``bound`` makes for the context."""
    failure: Exception | None = None
    result: object = None
    async with BlockingPortal() as portal:
        try:
            result = await threads.call(bound(_bridged(context, portal)), keeps_late=True)
        except Exception as error:
            # The tool may raise anything. Raised below, because here it would become an exception group.
            failure = error
        await portal.stop(cancel_remaining=True)  # Callbacks that the tool did not wait for.
    if failure is not None:
        raise failure
    return result


def _bridged(context: ToolContext, portal: BlockingPortal) -> ToolContext:
    """The context for another thread: its callbacks run on the event loop of the program."""

    def there(callback: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        async def bridged(*given: object, **named: object) -> object:
            return await asyncio.wrap_future(portal.start_task_soon(partial(callback, *given, **named)))

        return bridged

    return msgspec.structs.replace(
        context,
        ask=there(context.ask),
        question=there(context.question),
        progress=there(context.progress),
        todos=there(context.todos),
        set_todos=there(context.set_todos),
        hand_over=there(context.hand_over),
        recall=_BridgedRecall(there, context.recall),
        # What lives longer than the call belongs to the event loop of the program.
        services=ToolServices(),
        jobs=None,
        delegation=None,
    )


class _BridgedRecall:
    def __init__(self, there: Callable[..., Callable[..., Awaitable[Any]]], recall: Recall) -> None:
        self._find, self._search = there(recall.find), there(recall.search)

    async def find(self, handle: str) -> Recalled:
        found = await self._find(handle)
        assert isinstance(found, Recalled)
        return found

    async def search(self, query: str) -> Sequence[RecallHit]:
        return list(await self._search(query))

"""The offline provider gives what the rules say, and can be stopped."""

import anyio

from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.providers.catalog import OFFLINE
from turnkeeper.providers.offline import Offline
from turnkeeper.providers.offline.answers import respond
from turnkeeper.providers.provider import Provider

REQUEST = ModelRequest(model=OFFLINE, system=(), messages=(UserTurn(content=(Text(text="hello"),)),))


async def test_the_answer_is_streamed_as_the_rules_give_it() -> None:
    provider: Provider = Offline()
    assert [event async for events in provider.stream(REQUEST) for event in events] == respond(REQUEST)


async def test_a_reader_that_is_cancelled_ends_the_answer() -> None:
    seen = []

    async with anyio.create_task_group() as group:

        async def read() -> None:
            async for [event] in Offline().stream(REQUEST):
                seen.append(event)
                group.cancel_scope.cancel()

        group.start_soon(read)
    assert len(seen) == 1

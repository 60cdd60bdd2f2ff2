"""The answer of a provider, which may be code from outside."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.outside_code import contained
from turnkeeper.providers.provider import Provider


async def answer_stream(provider: Provider, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
    """The portions of an answer, as the provider gives them."""
    async with aclosing(provider.stream(request)) as answer:
        while True:
            with contained():
                batch = await anext(answer, None)
            if batch is None:
                return
            yield batch

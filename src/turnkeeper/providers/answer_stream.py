"""Validates the answers of providers, which may be plugins: each ends with a finish or an error and can be stored."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

import msgspec

from turnkeeper.core.failures import broken
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import FinishStep, StreamError, StreamEvent, ToolFailed
from turnkeeper.model.value import encode
from turnkeeper.outside_code import contained
from turnkeeper.providers.provider import Provider
from turnkeeper.text.surrogates import clean_json

INCOMPLETE = "The provider ended its answer without a finish or an error."


async def answer_stream(provider: Provider, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
    """The portions of an answer. An answer that stops without a finish ends with a retryable failure."""
    is_over = False
    async with aclosing(provider.stream(request)) as answer:
        while True:
            with contained():
                batch = await anext(answer, None)
            if batch is None:
                break
            is_over = is_over or any(isinstance(event, FinishStep | StreamError) for event in batch)
            yield [_storable(_explained(event, request)) for event in batch]
    if not is_over:
        yield [StreamError(failure=broken(INCOMPLETE, code="incomplete_stream", is_retryable=True))]


def _explained(event: StreamEvent, request: ModelRequest) -> StreamEvent:
    """The event; for a call of one of our tools with invalid JSON, the error contains the schema of the input."""
    if not isinstance(event, ToolFailed):
        return event
    schema = next((tool.schema for tool in request.tools if tool.name == event.name), None)
    if schema is None:
        return event
    return event.but(error=f"{event.error}\nIts arguments must fit this schema: {encode(schema).decode()}")


def _storable(event: StreamEvent) -> StreamEvent:
    """The event with lone surrogates replaced, which the store cannot encode."""
    try:
        encode(event)
    except UnicodeEncodeError:
        return msgspec.convert(clean_json(msgspec.to_builtins(event)), type(event))
    except (TypeError, ValueError, RecursionError):
        pass  # Other values that cannot be encoded are checked where they are used.
    return event

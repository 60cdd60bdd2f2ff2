"""Custom providers: adapts a function that answers requests to a Provider."""

import inspect
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from typing import TypeAlias

from anyio import to_thread

from turnkeeper.core.failures import broken
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.request import Call, ModelRequest
from turnkeeper.model.stream import Start, StartStep, StreamError, StreamEvent
from turnkeeper.providers.answer import AnswerStream
from turnkeeper.providers.provider import Provider

Piece: TypeAlias = str | Call
"""A piece of an answer: some text, or the call of a tool."""

AnswerFunction: TypeAlias = (
    Callable[[ModelRequest], Piece]
    | Callable[[ModelRequest], Awaitable[Piece]]
    | Callable[[ModelRequest], AsyncIterator[Piece]]
)


def provider(function: AnswerFunction) -> Provider:
    """Make a function a provider. It takes a ModelRequest, and returns or yields pieces: texts and calls of tools.

    It may be a plain function, which runs on a thread, a coroutine function or an asynchronous generator. What it
    raises fails the turn. For reasoning, usage and typed failures, implement ``Provider`` itself.
    """
    if not callable(function):
        raise Invalid(f"a provider is made of a function, not of {function!r:.80}")
    return _Custom(function)


class _Custom:
    def __init__(self, function: AnswerFunction) -> None:
        self._function = function

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer of the function."""
        yield [Start(), StartStep()]
        answer, calls, text_block = AnswerStream(), 0, ""
        try:
            async for piece in _pieces(await _given(self._function, request)):
                if isinstance(piece, Call):
                    answer.close_text(text_block)
                    text_block, calls = "", calls + 1
                    answer.call(piece.id or f"call_{calls}", piece.name, piece.input)
                else:
                    text_block = text_block or f"text-{calls}"
                    answer.text(text_block, piece)
                yield answer.take()
        except Exception as error:  # Code of the embedding program: any exception fails the turn, with its reason.
            said = f"The provider failed: {type(error).__name__}: {error}"
            yield [StreamError(failure=broken(said, code="", is_retryable=False))]
            return
        answer.finish("tool-calls" if calls else "stop")
        yield answer.take()


async def _given(function: AnswerFunction, request: ModelRequest) -> object:
    """The result of a function. A plain function may block, so it runs on a thread."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function):
        return function(request)
    return await to_thread.run_sync(function, request, abandon_on_cancel=True)


async def _pieces(found: object) -> AsyncIterator[Piece]:
    """The pieces of the result of a function."""
    if isinstance(found, AsyncIterator):
        async for piece in found:
            yield _piece(piece)
    else:
        yield _piece(await found if inspect.isawaitable(found) else found)


def _piece(found: object) -> Piece:
    if isinstance(found, str | Call):
        return found
    raise TypeError(f"it gave {type(found).__name__}, and a piece of an answer is text or a Call")

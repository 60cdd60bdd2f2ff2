"""One-shot requests to a model outside the turns of a session: for a title, a Summary or a check."""

from contextlib import aclosing

from turnkeeper.core.failures import finish_failure
from turnkeeper.model.failure import Failure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import FinishStep, StreamError, TextDelta, ToolCall, Usage, UsageCounted
from turnkeeper.model.value import Value
from turnkeeper.providers.answer_stream import answer_stream
from turnkeeper.providers.provider import Provider


class OneShotAnswer(Value):
    """The answer of a one-shot request."""

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    usage: Usage | None = None
    failure: Failure | None = None


async def ask(provider: Provider, request: ModelRequest) -> OneShotAnswer:
    """Send a request and collect the whole answer. A provider's error is in the answer and not raised."""
    pieces: list[str] = []
    answer = OneShotAnswer()
    async with aclosing(answer_stream(provider, request)) as stream:
        async for batch in stream:
            for event in batch:
                match event:
                    case TextDelta(text=more):
                        pieces.append(more)
                    case ToolCall():
                        answer = answer.but(calls=(*answer.calls, event))
                    case UsageCounted(usage=counted):
                        answer = answer.but(usage=counted)
                    case FinishStep(usage=counted):
                        answer = answer.but(usage=counted or answer.usage, failure=finish_failure(event))
                    case StreamError(usage=counted, failure=failure):
                        answer = answer.but(usage=counted or answer.usage, failure=failure)
                    case _:
                        pass
    return answer.but(text="".join(pieces))

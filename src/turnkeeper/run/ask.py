"""Ask a model something beside the turns of a session: a title, a Summary. One request, one text."""

from contextlib import aclosing
from typing import Literal

from turnkeeper.core.failures import finish_failure
from turnkeeper.core.usage import cost, step_tokens
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.failure import Failure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.stream import FinishStep, StreamError, TextDelta, ToolCall, Usage, UsageCounted
from turnkeeper.model.value import Value
from turnkeeper.providers.provider import Provider
from turnkeeper.run.answer_stream import answer_stream


class Answer(Value):
    """What came back. A model that called tools instead of answering has ``called``."""

    text: str = ""
    usage: Usage | None = None
    failure: Failure | None = None
    called: bool = False


async def ask(provider: Provider, request: ModelRequest) -> Answer:
    """Ask once and take in the whole answer. What a provider does wrong is in the answer, never raised."""
    pieces: list[str] = []
    answer = Answer()
    async with aclosing(answer_stream(provider, request)) as stream:
        async for batch in stream:
            for event in batch:
                match event:
                    case TextDelta(text=more):
                        pieces.append(more)
                    case ToolCall():
                        answer = answer.but(called=True)
                    case UsageCounted(usage=counted):
                        answer = answer.but(usage=counted)
                    case FinishStep(usage=counted):
                        answer = answer.but(usage=counted or answer.usage, failure=finish_failure(event))
                    case StreamError(usage=counted, failure=failure):
                        answer = answer.but(usage=counted or answer.usage, failure=failure)
                    case _:
                        pass
    return answer.but(text="".join(pieces))


def bill(
    model: ModelInfo,
    usage: Usage | None,
    purpose: Literal["title", "compaction"],
    *,
    message_id: str | None = None,
    attempt: int = 1,
) -> list[UsageRecorded]:
    """The row of the ledger for an answer. If nothing was counted, it only says that there was one."""
    tokens = step_tokens(usage) if usage is not None else ZERO_TOKENS
    return [
        UsageRecorded(
            purpose=purpose,
            provider_id=model.provider_id,
            model_id=model.id,
            message_id=message_id,
            attempt=attempt,
            tokens=tokens,
            cost=float(cost(tokens, usage, model)) if usage is not None else 0,
        )
    ]

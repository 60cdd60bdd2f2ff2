"""The answer to one prompt, taken from the history after it."""

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple, TypeVar

from turnkeeper.core.next_action import is_continuable, is_refused
from turnkeeper.core.usage import add_costs, add_tokens
from turnkeeper.model.answer import Answer
from turnkeeper.model.failure import Failure, UnknownData, UnknownFailure
from turnkeeper.model.message import AssistantMessage, ModelChoice, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolError
from turnkeeper.model.session import ZERO_TOKENS

T = TypeVar("T")


class AnswerTurn(NamedTuple):
    """One turn of an answer."""

    message: AssistantMessage
    parts: tuple[Part, ...]

    @property
    def text(self) -> str:
        """The text of the model."""
        return "".join(part.text for part in self.parts if isinstance(part, TextPart) and not part.ignored)

    @property
    def goes_on(self) -> bool:
        """Whether the turn is not complete, or the model is owed the result of a call, so that another turn follows."""
        message = self.message
        if message.time.completed is None:
            return True
        return message.error is None and message.structured is None and any(map(is_continuable, self.parts))


def turns_of(after: Sequence[MessageWithParts]) -> list[AnswerTurn]:
    """The turns that answer a prompt. ``after`` is the history after the prompt, oldest message first.

    They end before the next prompt, unless that was steered into an answer that was not complete. A compaction adds
    messages between the turns of an answer, which do not belong to it.
    """
    turns: list[AnswerTurn] = []
    for one in after:
        match one.info:
            case UserMessage() if turns and not turns[-1].goes_on:
                break
            case AssistantMessage(summary=summary) as message if not summary:
                turns.append(AnswerTurn(message, one.parts))
            case _:
                pass
    return turns


def is_newest(turns: Sequence[AnswerTurn], after: Sequence[MessageWithParts]) -> bool:
    """Whether no later prompt has turns, so that resuming the session continues these."""
    found = [one for one in after if isinstance(one.info, AssistantMessage) and not one.info.summary]
    return len(found) == len(turns)


def is_answered(turns: Sequence[AnswerTurn]) -> bool:
    """Whether the last turn is an answer, so that no provider need be asked again."""
    return bool(turns) and turns[-1].message.error is None and not turns[-1].goes_on


def answer_failure(turns: Sequence[AnswerTurn], reason: str) -> Failure | None:
    """Why the turns are no answer; None if they are one. ``reason`` is why the session rests."""
    if turns and turns[-1].message.error is not None:
        return turns[-1].message.error
    refused = next((part for part in turns[-1].parts if is_refused(part)), None) if turns else None
    if isinstance(refused, ToolPart) and isinstance(refused.state, ToolError):
        return _unknown(f"the call of {refused.tool} was refused: {refused.state.error}")
    return None if is_answered(turns) else _unknown(reason or "the prompt was not answered")


def structured_of(turns: Sequence[AnswerTurn]) -> object:
    """The structured output of the last turn; None if it has none."""
    return turns[-1].message.structured if turns else None


def text_of(turns: Sequence[AnswerTurn]) -> str:
    """The text of the last turn."""
    return turns[-1].text if turns else ""


def answer_of(
    session_id: str, prompt_id: str, turns: Sequence[AnswerTurn], output: T, error: Failure | None
) -> Answer[T]:
    """The answer with this output."""
    last = turns[-1].message if turns else None
    return Answer(
        text=text_of(turns),
        output=output,
        parts=tuple(part for turn in turns for part in turn.parts),
        usage=reduce(add_tokens, (turn.message.tokens for turn in turns), ZERO_TOKENS),
        cost=add_costs(*(turn.message.cost for turn in turns)),
        error=error,
        finish=last.finish if last is not None else None,
        model=ModelChoice(provider_id=last.provider_id, model_id=last.model_id, variant=last.variant) if last else None,
        session_id=session_id,
        prompt_id=prompt_id,
        message_id=last.id if last is not None else None,
    )


def _unknown(message: str) -> UnknownFailure:
    return UnknownFailure(data=UnknownData(message=message))

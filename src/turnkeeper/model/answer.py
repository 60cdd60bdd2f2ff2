"""Answer: the result of a prompt, and the exception for a prompt without an answer."""

from typing import Generic, TypeVar

from turnkeeper.model.failure import Failure, words_of
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Tokens
from turnkeeper.model.value import Value

T_co = TypeVar("T_co", covariant=True)


class Answer(Value, Generic[T_co]):
    """The answer to a prompt: the turns of the model until the session rested."""

    text: str
    """The text of the last turn."""
    output: T_co
    """The structured output as the type that was asked for; without a type, the text."""
    parts: tuple[Part, ...] = ()
    """The parts of all turns, in order: texts, reasoning, tool calls with their results, and so on."""
    usage: Tokens
    """The tokens of all turns."""
    cost: float
    """US dollars of all turns."""
    error: Failure | None = None
    """The failure, if there is no answer."""
    finish: str | None = None
    """The finish reason of the last turn: ``stop``, ``length`` and so on."""
    model: ModelChoice | None = None
    """The model of the last turn."""
    session_id: str
    prompt_id: str
    """The message of the user."""
    message_id: str | None = None
    """The message of the last turn; None if there was no turn."""


class TurnFailed(Exception):
    """A prompt led to no answer. ``error`` is the recorded failure, ``answer`` the part of an answer that there is."""

    def __init__(self, error: Failure, answer: Answer[object]) -> None:
        super().__init__(f"{words_of(error)} (session {answer.session_id})")
        self.error = error
        self.answer = answer

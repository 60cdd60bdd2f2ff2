"""Values of a union as the one type that a test expects them to have."""

from typing import TypeVar

from turnkeeper.model.failure import Failure, NoData
from turnkeeper.model.request import AssistantTurn, ModelMessage, Result, Text, ToolTurn, UserTurn

T = TypeVar("T")


def of_type(kind: type[T], value: object) -> T:
    """The value, which must be of this type."""
    assert isinstance(value, kind), f"{value!r} is not a {kind.__name__}"
    return value


def message_of(failure: Failure) -> str:
    """What a failure says; one that says nothing is refused."""
    assert not isinstance(failure.data, NoData)
    return failure.data.message


def results_of(message: ModelMessage) -> tuple[Result, ...]:
    """The results in a message to the model that must hold some."""
    return tuple(of_type(ToolTurn, message).results)


def result_text(message: ModelMessage, place: int = 0) -> str:
    """The text of one result in a message to the model."""
    return of_type(Text, results_of(message)[place].output[0]).text


def first_text(message: ModelMessage) -> str:
    """The text that a message of the user or of the model begins with."""
    assert isinstance(message, UserTurn | AssistantTurn)
    return of_type(Text, message.content[0]).text

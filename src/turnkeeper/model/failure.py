"""Failure: what went wrong in a conversation, as a value the user and the model can both read.

    Failure
    ├── AbortedFailure            the user stopped it
    ├── AuthFailure               the provider has no valid key
    ├── ApiFailure                the provider or the way to it: status, headers, body, worth a retry?
    ├── OverflowFailure           the request was larger than the context window
    ├── OutputLengthFailure       the answer hit its limit before anything useful was said
    ├── StructuredOutputFailure   no valid structured answer after the allowed tries
    ├── ContentFilterFailure      the provider refused the content
    └── UnknownFailure            everything else

On the wire a failure is ``{"name": ..., "data": {...}}``; the names are the ones clients know.
"""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.value import Value


class MessageData(Value):
    """Most failures say only this."""

    message: str


class AuthData(Value):
    """Which provider, and what it lacks."""

    provider_id: str
    message: str


class UnknownData(Value):
    """``ref`` names the log line that has the details."""

    message: str
    ref: str | None = None


class NoData(Value):
    """Nothing to add."""


class StructuredOutputData(Value):
    """``retries`` counts the further tries that were made."""

    message: str
    retries: int


class OverflowData(Value):
    """``response_body`` is what the provider said, if it spoke."""

    message: str
    response_body: str | None = None


class ApiData(Value):
    """What is known of a failed request."""

    message: str
    status_code: int | None = None
    is_retryable: bool
    response_headers: Mapping[str, str] | None = None
    response_body: str | None = None
    metadata: Mapping[str, str] | None = None


class AbortedFailure(Value, tag_field="name", tag="MessageAbortedError"):
    """The user, or a shutdown, stopped the turn."""

    data: MessageData


class AuthFailure(Value, tag_field="name", tag="ProviderAuthError"):
    """The provider has no key, or refused it."""

    data: AuthData


class ApiFailure(Value, tag_field="name", tag="APIError"):
    """The provider, or the way to it, failed."""

    data: ApiData


class OverflowFailure(Value, tag_field="name", tag="ContextOverflowError"):
    """The request did not fit the model's context window."""

    data: OverflowData


class OutputLengthFailure(Value, tag_field="name", tag="MessageOutputLengthError"):
    """The answer hit the output limit without text or tool call."""

    data: NoData


class StructuredOutputFailure(Value, tag_field="name", tag="StructuredOutputError"):
    """The model never gave an answer that fits the schema."""

    data: StructuredOutputData


class ContentFilterFailure(Value, tag_field="name", tag="ContentFilterError"):
    """The provider refused the content."""

    data: MessageData


class UnknownFailure(Value, tag_field="name", tag="UnknownError"):
    """Anything we have no better name for."""

    data: UnknownData


Failure: TypeAlias = (
    AbortedFailure
    | AuthFailure
    | ApiFailure
    | OverflowFailure
    | OutputLengthFailure
    | StructuredOutputFailure
    | ContentFilterFailure
    | UnknownFailure
)


def words_of(failure: Failure) -> str:
    """What a failure says, or its name if it says nothing."""
    return str(getattr(failure.data, "message", "")) or type(failure).__name__

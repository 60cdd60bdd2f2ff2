"""Failure: an error in a conversation, as a recorded value.

    Failure
    ├── AbortedFailure            the user stopped it
    ├── AuthFailure               the provider has no valid key
    ├── ApiFailure                the provider or the connection to it: status, headers, body, whether it is retryable
    ├── OverflowFailure           the request was larger than the context window
    ├── OutputLengthFailure       the answer hit its limit without text or tool call
    ├── StructuredOutputFailure   no valid structured answer after the allowed tries
    ├── ContentFilterFailure      the provider refused the content
    └── UnknownFailure            everything else

On the wire a failure is ``{"name": ..., "data": {...}}``; the names are those of the opencode API.
"""

from collections.abc import Mapping
from typing import TypeAlias

from turnkeeper.model.value import Value


class MessageData(Value):
    """The data of most failures."""

    message: str


class AuthData(Value):
    """The provider whose key is missing or was refused."""

    provider_id: str
    message: str


class UnknownData(Value):
    """``ref`` is the reference of the log line with the details."""

    message: str
    ref: str | None = None


class NoData(Value):
    """No data."""


class StructuredOutputData(Value):
    """``retries`` counts the retries that were made."""

    message: str
    retries: int


class OverflowData(Value):
    """``response_body`` is the provider's response, if there was one."""

    message: str
    response_body: str | None = None


class ApiData(Value):
    """The data of a failed request."""

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
    """The provider, or the connection to it, failed."""

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
    """Any other failure."""

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
    """The message of a failure, or its type name if it has none."""
    return str(getattr(failure.data, "message", "")) or type(failure).__name__

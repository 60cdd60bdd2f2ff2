"""Codec: one wire protocol without I/O. It serialises requests and parses streamed answers into stream events."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from turnkeeper.core.failures import broken, http_failure, stream_failure
from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.core.storable import is_too_deep
from turnkeeper.model.failure import Failure, OverflowData, OverflowFailure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.answer import AnswerStream, MalformedStream
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.sse import SseEvent
from turnkeeper.text.surrogates import clean_json

Wire = dict[str, object]
"""A JSON object of a provider's wire format."""

T = TypeVar("T")

SHOWN_BYTES_MAX = 2000
_HALF_CHARACTER = re.compile(
    rb"\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}", re.I
)
_encoder = msgspec.json.Encoder()
_anything = msgspec.json.Decoder(object)


class Reader:
    """Parses one answer: takes server-sent events and returns stream events. ``feed`` and ``end`` never raise."""

    def __init__(self, provider_id: str = "") -> None:
        self.answer = AnswerStream()
        self._provider_id = provider_id

    @property
    def is_over(self) -> bool:
        """Whether ``finish`` or ``error`` was returned. Later events are ignored."""
        return self.answer.is_over

    def feed(self, name: bytes, data: bytes) -> list[StreamEvent]:
        """Parse one server-sent event into stream events."""
        answer = self.answer
        if answer.is_over:
            return []
        try:
            self.read(name, data)
        except (MalformedStream, ValueError, RecursionError) as error:
            # msgspec's and Unicode's errors are ValueErrors.
            shown = data[:SHOWN_BYTES_MAX].decode("utf-8", "replace")
            message = f"The provider's stream cannot be understood: {error}"
            answer.fail(broken(message, code="malformed_stream", is_retryable=_is_garbled(error), body=shown))
        return answer.take()

    def end(self, tail: Sequence[SseEvent] = (), cause: Failure | None = None) -> list[StreamEvent]:
        """The last events of a stream that ended, or broke for a ``cause``. ``tail`` are events not parsed yet."""
        answer = self.answer
        for name, data in tail:
            if not answer.is_over:
                try:
                    self.read(name, data)
                except (MalformedStream, ValueError, RecursionError):
                    break  # The last event was truncated; the incomplete stream is reported below.
        if not answer.is_over and not self._is_complete():
            cut = "The provider ended its answer before it was complete."
            answer.fail(cause or broken(cut, code="incomplete_stream", is_retryable=True))
        return answer.take()

    def _is_complete(self) -> bool:
        try:
            return self.complete()
        except MalformedStream:
            return False  # The truncated event left a call or block incomplete.

    def read(self, name: bytes, data: bytes) -> None:
        """Parse one event of the protocol into ``answer``."""
        raise NotImplementedError

    def complete(self) -> bool:
        """Finish an answer whose stream lacks its last event; False if the answer itself is incomplete."""
        return False

    def fail_with_event(self, data: bytes) -> None:
        """An event is the error that the provider reports."""
        self.fail_with(decode(_anything, data))

    def fail_with(self, error: object) -> None:
        """The provider reports an error inside the stream."""
        self.answer.fail(stream_failure(error, provider_id=self._provider_id))

    def fail_with_overflow(self) -> None:
        """The provider stopped before any output because the context window is full."""
        message = "The conversation fills the model's context window; there is no room for an answer."
        self.answer.fail(OverflowFailure(data=OverflowData(message=message)))


def _is_garbled(error: Exception) -> bool:
    """Whether an event is not JSON at all: it was damaged in transit, and a retry may receive it intact."""
    return isinstance(error, msgspec.DecodeError | UnicodeError) and not isinstance(error, msgspec.ValidationError)


class Codec(Protocol):
    """The interface of a wire protocol's module."""

    @property
    def BASE_URL(self) -> str:  # noqa: N802 - A module's constant.
        """The base URL of the protocol's own provider."""
        ...

    @property
    def Reader(self) -> type[Reader]:  # noqa: N802 - A module's class.
        """The parser of an answer."""
        ...

    def path(self, request: ModelRequest) -> str:
        """The URL path of the request, relative to the base URL."""
        ...

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        """The protocol's headers, including the API key."""
        ...

    @property
    def MESSAGES(self) -> str:  # noqa: N802 - A module's constant.
        """The field of a body that holds the conversation."""
        ...

    def conversation(self, request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
        """The messages of a request in the wire format."""
        ...

    def frame(self, request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
        """The body of a request with these messages, to which it adds cache points."""
        ...

    def body(self, request: ModelRequest, endpoint: Endpoint) -> Wire:
        """The whole body of a request: ``frame`` around ``conversation``. Equal requests give equal bodies."""
        ...

    def failure(self, status: int, headers: Mapping[str, str], body: str, endpoint: Endpoint) -> Failure:
        """The typed failure of an answer with an error status."""
        ...


def plain_failure(status: int, headers: Mapping[str, str], body: str, endpoint: Endpoint) -> Failure:
    """The typed failure of an error status, for protocols without error fields of their own."""
    return http_failure(status, headers, body, provider_id=endpoint.provider_id, url=endpoint.shown_url)


def decode(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    """Decode typed JSON. Lone surrogates, which some providers send, are replaced. Raises MalformedStream."""
    if is_too_deep(data):
        raise MalformedStream(f"it is nested more than {JSON_DEPTH_MAX} deep")
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        if b"\\ud" not in data.lower():
            raise
        return decoder.decode(_HALF_CHARACTER.sub(rb"\\ufffd", data))


def encode_body(value: object) -> bytes:
    """Encode a body or a part of it. Lone surrogates, which JSON cannot hold, are replaced."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(clean_json(value))


def merged(*layers: JsonObject) -> dict[str, object]:
    """Options merged from several layers: a later layer wins, objects are merged, None removes a key."""
    result: dict[str, object] = {}
    for layer in layers:
        for key, value in layer.items():
            known = result.get(key)
            result[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return {key: value for key, value in result.items() if value is not None}


def renamed(options: JsonObject, names: Mapping[str, str], *, without: Collection[str] = ()) -> dict[str, object]:
    """Options under their wire names, except those in ``without``; names missing in the table stay unchanged."""
    return {names.get(key, key): value for key, value in options.items() if key not in without}


def present(fields: Wire) -> Wire:
    """The fields that are not None."""
    return {key: value for key, value in fields.items() if value is not None}


def alternating(messages: Iterable[tuple[str, list[Wire]]]) -> list[tuple[str, list[Wire]]]:
    """Messages as pairs of role and content, where neighbours with one role are joined and empty ones left out."""
    joined: list[tuple[str, list[Wire]]] = []
    for role, content in messages:
        if joined and joined[-1][0] == role:
            joined[-1][1].extend(content)
        elif content:
            joined.append((role, content))
    return joined


def own(metadata: JsonObject | None, namespace: str) -> JsonObject:
    """The metadata of one provider; empty if there is none."""
    found = (metadata or {}).get(namespace)
    return found if isinstance(found, dict) else {}


def objects(value: object) -> list[dict[str, object]]:
    """The objects in a list; empty if the value is not a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The value if it is a string, else an empty string."""
    return value if isinstance(value, str) else ""

"""Codec: one wire protocol without I/O. A request becomes path, headers and body; events of a stream become ours."""

import re
from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import msgspec

from turnkeeper.core.failures import broken, http_failure, stream_failure
from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.core.storable import is_too_deep
from turnkeeper.model.failure import Failure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.answer import AnswerStream, MalformedStream
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.sse import SseEvent

Wire = dict[str, object]
"""A JSON object on its way to a provider."""

T = TypeVar("T")

SHOWN_BYTES_MAX = 2000
_HALF_CHARACTER = re.compile(
    rb"\\ud[89ab][0-9a-f]{2}(?!\\ud[c-f])|(?<!\\ud[89ab][0-9a-f]{2})\\ud[c-f][0-9a-f]{2}", re.I
)
_SURROGATES = re.compile("[\ud800-\udfff]")
_encoder = msgspec.json.Encoder()


class Reader:
    """Reads one answer: fed events, gives stream events; says when the answer is over. Never raises."""

    def __init__(self, provider_id: str = "") -> None:
        self.answer = AnswerStream()
        self._provider_id = provider_id

    @property
    def is_over(self) -> bool:
        """Whether ``finish`` or ``error`` was given. What follows is ignored."""
        return self.answer.is_over

    def feed(self, name: bytes, data: bytes) -> list[StreamEvent]:
        """What this event says."""
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
        """The stream is at its end, or broke for a ``cause``. ``tail`` is what was left when it did."""
        answer = self.answer
        for name, data in tail:
            if not answer.is_over:
                try:
                    self.read(name, data)
                except (MalformedStream, ValueError, RecursionError):
                    break  # The last event was cut; that the stream is incomplete is said below.
        if not answer.is_over and not self._is_complete():
            cut = "The provider ended its answer before it was complete."
            answer.fail(cause or broken(cut, code="incomplete_stream", is_retryable=True))
        return answer.take()

    def _is_complete(self) -> bool:
        try:
            return self.complete()
        except MalformedStream:
            return False  # The event that was cut left something half done.

    def read(self, name: bytes, data: bytes) -> None:
        """Take in one event of the protocol."""
        raise NotImplementedError

    def complete(self) -> bool:
        """Finish, if all that matters was said although the stream did not end as it should."""
        return False

    def fail_with(self, error: object) -> None:
        """The provider reports an error inside the stream."""
        self.answer.fail(stream_failure(error, provider_id=self._provider_id))


def _is_garbled(error: Exception) -> bool:
    """Whether an event is not JSON at all: damaged on its way, so that another request may get a whole one."""
    if isinstance(error, msgspec.ValidationError):
        return False
    return isinstance(error, msgspec.DecodeError | UnicodeError)


class Codec(Protocol):
    """What a module of a wire protocol offers."""

    @property
    def BASE_URL(self) -> str:  # noqa: N802 - A module's constant.
        """Where the protocol's own provider is."""
        ...

    @property
    def Reader(self) -> type[Reader]:  # noqa: N802 - A module's class.
        """Reads an answer."""
        ...

    def path(self, request: ModelRequest) -> str:
        """Where to send the request, behind the base URL."""
        ...

    def headers(self, endpoint: Endpoint) -> dict[str, str]:
        """The protocol's headers, with the key."""
        ...

    @property
    def MESSAGES(self) -> str:  # noqa: N802 - A module's constant.
        """Where in a body the conversation stands."""
        ...

    def conversation(self, request: ModelRequest, endpoint: Endpoint) -> list[Wire]:
        """The messages of a request on the wire."""
        ...

    def frame(self, request: ModelRequest, endpoint: Endpoint, messages: list[Wire]) -> Wire:
        """The rest of a request around these messages, which get their cache points here."""
        ...

    def body(self, request: ModelRequest, endpoint: Endpoint) -> Wire:
        """The request on the wire: its conversation in its frame. Equal requests give equal bodies."""
        ...

    def failure(self, status: int, headers: Mapping[str, str], body: str, endpoint: Endpoint) -> Failure:
        """What an answer with an error status means."""
        ...


def plain_failure(status: int, headers: Mapping[str, str], body: str, endpoint: Endpoint) -> Failure:
    """What an error status means where the protocol has nothing of its own to say."""
    return http_failure(status, headers, body, provider_id=endpoint.provider_id, url=endpoint.shown_url)


def decode(decoder: "msgspec.json.Decoder[T]", data: bytes) -> T:
    """Typed JSON. Halves of surrogate pairs, which some providers cut apart, are replaced. Raises Malformed."""
    if is_too_deep(data):
        raise MalformedStream(f"it is nested more than {JSON_DEPTH_MAX} deep")
    try:
        return decoder.decode(data)
    except msgspec.DecodeError:
        if b"\\ud" not in data.lower():
            raise
        return decoder.decode(_HALF_CHARACTER.sub(rb"\\ufffd", data))


def encode_body(body: Wire) -> bytes:
    """A body as bytes. Lone surrogates, which JSON cannot carry, are replaced."""
    return encode_value(body)


def encode_value(value: object) -> bytes:
    """A piece of a body as bytes, in the same way."""
    try:
        return _encoder.encode(value)
    except UnicodeEncodeError:
        return _encoder.encode(whole(value))


def whole(value: object) -> object:
    """The same value without lone surrogates in any of its strings."""
    match value:
        case str():
            return _SURROGATES.sub("\ufffd", value)
        case Mapping():
            return {whole(key): whole(item) for key, item in value.items()}
        case list() | tuple():
            return [whole(item) for item in value]
        case _:
            return value


def merged(*layers: JsonObject) -> dict[str, object]:
    """Options of several layers; the later wins, objects are merged, None removes."""
    result: dict[str, object] = {}
    for layer in layers:
        for key, value in layer.items():
            known = result.get(key)
            result[key] = merged(known, value) if isinstance(known, dict) and isinstance(value, dict) else value
    return {key: value for key, value in result.items() if value is not None}


def renamed(options: JsonObject, names: Mapping[str, str]) -> dict[str, object]:
    """Options under their wire names; those the table does not know pass as they are."""
    return {names.get(key, key): value for key, value in options.items()}


def own(metadata: JsonObject | None, namespace: str) -> JsonObject:
    """A provider's own part of metadata; empty if there is none."""
    found = (metadata or {}).get(namespace)
    return found if isinstance(found, dict) else {}


def objects(value: object) -> list[dict[str, object]]:
    """The objects of a list; none if it is no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """A string, or nothing."""
    return value if isinstance(value, str) else ""

"""Wire: scripted answers as the server-sent events of the four protocols.

A voice encodes each act of an answer; ``rendered`` encodes an answer with a voice.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias, assert_never

import msgspec

from turnkeeper.model.failure import ApiFailure, AuthFailure, Failure, NoData, OverflowFailure
from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json, encode
from turnkeeper.providers.script import (
    Calls,
    Cuts,
    Fails,
    Garbles,
    Hangs,
    Paces,
    Says,
    ScriptedAnswer,
    Thinks,
    Waits,
)

INPUT_PIECE: Final = 24

ScriptedFrame: TypeAlias = bytes | Waits | Paces | Hangs | Cuts | Garbles
"""The bytes of a server-sent event, or a pause or fault between two events."""


class Voice(Protocol):
    """Encodes the answers of a protocol."""

    def begin(self) -> Iterator[bytes]:
        """The answer begins."""
        ...

    def says(self, pieces: tuple[str, ...]) -> Iterator[bytes]:
        """Text."""
        ...

    def thinks(self, pieces: tuple[str, ...], signature: str | None) -> Iterator[bytes]:
        """Reasoning."""
        ...

    def calls(self, call_id: str, act: Calls) -> Iterator[bytes]:
        """A call of a tool, also of a tool of the provider."""
        ...

    def fails(self, failure: Failure) -> Iterator[bytes]:
        """The answer breaks off."""
        ...

    def finish(self, reason: str, usage: Usage | None) -> Iterator[bytes]:
        """The answer is over."""
        ...


def rendered(answer: ScriptedAnswer, voice: Voice, call_ids: Iterator[str]) -> Iterator[ScriptedFrame]:
    """The events of an answer."""
    yield from voice.begin()
    for act in answer.acts:
        match act:
            case Says(pieces=pieces):
                yield from voice.says(pieces)
            case Thinks(pieces=pieces, signature=signature):
                yield from voice.thinks(pieces, signature)
            case Calls():
                yield from voice.calls(act.id or next(call_ids), act)
            case Fails(failure=failure):
                yield from voice.fails(failure)
                return
            case Hangs() | Cuts() | Waits() | Paces() | Garbles():
                yield act
            case _:
                assert_never(act)
    yield from voice.finish(answer.finish, answer.usage)


def sse(data: Json, *, event: str | None = None) -> bytes:
    """One server-sent event."""
    head = f"event: {event}\n".encode() if event else b""
    return head + b"data: " + (data if isinstance(data, bytes) else encode(data)) + b"\n\n"


def whole_response(frames: Iterable[ScriptedFrame]) -> bytes:
    """The events of OpenAI Responses as one answer that is not streamed. Pauses and faults are left out."""
    output: list[Json] = []
    response: dict[str, Json] = {}
    for frame in frames:
        if isinstance(frame, bytes):
            event = msgspec.json.decode(frame.partition(b"data: ")[2], type=dict[str, Json])
            if event["type"] == "response.output_item.done":
                output.append(event["item"])
            response = msgspec.convert(event.get("response", response), dict[str, Json])
    return encode({**response, "output": output, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []})


def cut_up(raw: str) -> list[str]:
    """The input of a call in pieces; at least one, which may be empty."""
    return [raw[start : start + INPUT_PIECE] for start in range(0, len(raw), INPUT_PIECE)] or [""]


@dataclass(frozen=True)
class Refusal:
    """A response that is not streamed: status, headers and body."""

    status: int
    headers: Mapping[str, str]
    body: bytes


_KINDS: Final = {
    400: ("invalid_request_error", "INVALID_ARGUMENT"),
    401: ("authentication_error", "UNAUTHENTICATED"),
    403: ("permission_error", "PERMISSION_DENIED"),
    404: ("not_found_error", "NOT_FOUND"),
    429: ("rate_limit_error", "RESOURCE_EXHAUSTED"),
    500: ("api_error", "INTERNAL"),
    503: ("overloaded_error", "UNAVAILABLE"),
    529: ("overloaded_error", "UNAVAILABLE"),
}


def refusal(failure: Failure, protocol: str) -> Refusal:
    """The response of a provider that refuses a request with this failure."""
    status = _status(failure)
    headers = dict(failure.data.response_headers or {}) if isinstance(failure, ApiFailure) else {}
    return Refusal(status, headers, encode(fault(failure, protocol)))


def fault(failure: Failure, protocol: str) -> Json:
    """A failure as the error object of the protocol."""
    status = _status(failure)
    message = "output limit" if isinstance(failure.data, NoData) else failure.data.message
    ours, googles = _KINDS.get(status, _KINDS[500] if status >= 500 else _KINDS[400])
    if protocol == "anthropic":
        return {"type": "error", "error": {"type": ours, "message": message}}
    if protocol == "gemini":
        return {"error": {"code": status, "message": message, "status": googles}}
    code = "context_length_exceeded" if isinstance(failure, OverflowFailure) else None
    if status >= 500:
        ours = code = "server_error"
    return {"error": {"message": message, "type": ours, "code": code, "param": None}}


def _status(failure: Failure) -> int:
    match failure:
        case ApiFailure(data=data):
            return data.status_code or 500
        case AuthFailure():
            return 401
        case OverflowFailure():
            return 400
        case _:
            return 500

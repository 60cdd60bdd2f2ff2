"""Recorded byte streams and how to read them, shared by the tests of providers."""

from collections.abc import Iterable
from pathlib import Path

import httpx2

from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.failure import ApiFailure, Failure
from turnkeeper.model.request import ModelRequest, Text, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers import codec_of
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.http import HttpProvider
from turnkeeper.providers.sse import SseParser

KEY = "sk-secret-7"
FIXTURES = Path(__file__).parents[1] / "providers/fixtures"
RECORDINGS = sorted(file.stem for file in FIXTURES.glob("*.sse"))

MODELS = {
    "anthropic": ("anthropic", "claude-sonnet-4-5"),
    "openai-chat": ("openai", "gpt-4.1"),
    "openai-responses": ("openai", "gpt-5"),
    "gemini": ("google", "gemini-2.5-pro"),
}


def recording(name: str) -> bytes:
    return (FIXTURES / f"{name}.sse").read_bytes()


def read(protocol: str, chunks: Iterable[bytes]) -> list[StreamEvent]:
    """All events of a stream that comes in these chunks."""
    reader, parser = codec_of(protocol).Reader("test"), SseParser()
    events: list[StreamEvent] = []
    for chunk in chunks:
        for name, data in parser.feed(chunk):
            events += reader.feed(name, data)
    return events + reader.end(parser.end())


def read_recording(name: str) -> list[StreamEvent]:
    return read(name.partition(".")[0], [recording(name)])


def a_model(protocol: str, **changes: object) -> ModelInfo:
    provider_id, model_id = MODELS[protocol]
    model = ModelInfo(
        provider_id=provider_id,
        id=model_id,
        name=model_id,
        api_id=model_id,
        protocol=protocol,
        limits=Limits(context=200_000, output=64_000),
        modalities=("text", "image", "pdf"),
        reasoning=protocol == "openai-responses",
    )
    return model.but(**changes)


def an_endpoint(protocol: str, **changes: object) -> Endpoint:
    return Endpoint(protocol=protocol, provider_id=MODELS[protocol][0], api_key="sk-test").but(**changes)


def a_request(protocol: str, **changes: object) -> ModelRequest:
    request = ModelRequest(
        model=a_model(protocol), system=("Be kind.",), messages=(UserTurn(content=(Text(text="hi"),)),)
    )
    return request.but(session_id="ses_1", **changes)


def a_provider(client: httpx2.AsyncClient, url: str, protocol: str = "anthropic", **changes: object) -> HttpProvider:
    return HttpProvider(an_endpoint(protocol, base_url=url, **{"api_key": KEY, **changes}), client)


async def ask(provider: HttpProvider, request: ModelRequest) -> list[StreamEvent]:
    return [event async for portion in provider.stream(request) for event in portion]


def code_of(failure: Failure) -> tuple[str | None, bool]:
    assert isinstance(failure, ApiFailure)
    return (failure.data.metadata or {}).get("code"), failure.data.is_retryable

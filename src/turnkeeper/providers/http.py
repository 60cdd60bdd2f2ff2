"""HttpProvider: asks a provider over HTTP and reads its stream. Every trouble of the network becomes one ``error``.

Nothing is tried again here: whether and when is decided by ``core.retry``, and shown to the user.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, aclosing
from typing import TypeVar

import anyio
import httpx2
import msgspec

from turnkeeper.core.failures import broken, stream_failure
from turnkeeper.model.failure import AuthData, AuthFailure, Failure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Start, StartStep, StreamError, StreamEvent
from turnkeeper.providers import codec_of
from turnkeeper.providers.codec import Codec, Reader, encode_body
from turnkeeper.providers.endpoint import ERROR_BYTES_MAX, Endpoint
from turnkeeper.providers.network import network_failure, timed_out
from turnkeeper.providers.sse import SseParser, TooLarge

T = TypeVar("T")

REQUEST_IDS = ("request-id", "x-request-id", "apim-request-id", "x-goog-request-id", "cf-ray")
CONNECTIONS_MAX = 200
IDLE_CONNECTIONS_MAX = 20

DRAIN_S = 0.1
DRAIN_CHUNKS_MAX = 8
"""A provider that does not end its stream after the last event costs a connection, not a wait."""

_NOT_STREAMS = ("application/json", "text/html")
_TROUBLES = (httpx2.HTTPError, httpx2.InvalidURL, TooLarge, UnicodeError, OSError)


def new_client(*, user_agent: str) -> httpx2.AsyncClient:
    """The client an application shares between its providers; whoever makes it closes it."""
    return httpx2.AsyncClient(
        headers={"user-agent": user_agent},
        limits=httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=IDLE_CONNECTIONS_MAX),
    )


class HttpProvider:
    """One provider behind one endpoint."""

    def __init__(self, endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
        self._endpoint, self._client = endpoint, client
        self._codec: Codec = codec_of(endpoint.protocol)
        self._base_url = (endpoint.base_url or self._codec.BASE_URL).rstrip("/")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer, in the portions in which it comes; see ``Provider``."""
        if (missing := self._missing_key()) is not None:
            yield [StreamError(failure=missing)]
            return
        reader = self._codec.Reader(self._endpoint.provider_id)
        try:
            async with AsyncExitStack() as stack:
                wait = _Wait(self._endpoint)
                response = await wait.first(lambda: stack.enter_async_context(self._sent(request)))
                if (refused := await self._refused(response, wait)) is not None:
                    yield [StreamError(failure=refused)]
                    return
                yield [Start(request_id=_request_id(response.headers)), StartStep()]
                chunks = await stack.enter_async_context(aclosing(response.aiter_bytes()))
                portions = await stack.enter_async_context(aclosing(_answered(chunks, reader, wait)))
                async for events in portions:
                    yield events
                await _drain(chunks)
        except _TimedOut as out:
            yield reader.end(cause=out.failure)
        except _TROUBLES as error:
            yield reader.end(cause=network_failure(error, self._base_url))

    def _missing_key(self) -> Failure | None:
        endpoint = self._endpoint
        if endpoint.api_key or not endpoint.key_required:
            return None
        message = f"There is no API key for provider {endpoint.provider_id!r}."
        return AuthFailure(data=AuthData(provider_id=endpoint.provider_id, message=message))

    def _sent(self, request: ModelRequest) -> AbstractAsyncContextManager[httpx2.Response]:
        codec, endpoint = self._codec, self._endpoint
        return self._client.stream(
            "POST",
            self._base_url + codec.path(request),
            content=encode_body(codec.body(request, endpoint)),
            headers=all_headers(codec, request, endpoint),
            timeout=httpx2.Timeout(None, connect=endpoint.timeouts.connect_s),
            follow_redirects=False,  # A key must not follow to where it was not sent.
        )

    async def _refused(self, response: httpx2.Response, wait: "_Wait") -> Failure | None:
        """Why there is no stream to read; None if there is one."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_success and kind not in _NOT_STREAMS:
            return None
        text = await _error_text(response, wait)
        if key := self._endpoint.api_key:
            text = text.replace(key, "[the key]")
        headers = {name: value for name, value in response.headers.items() if name.lower() != "set-cookie"}
        if not response.is_success:
            return self._codec.failure(response.status_code, headers, text, self._endpoint)
        if kind == "application/json" and '"error"' in text:
            return stream_failure(_json(text), provider_id=self._endpoint.provider_id)
        message = f"{self._base_url} answered with {kind} and not with a stream; check baseURL."
        return broken(message, code="not_a_stream", is_retryable=False, body=text)


def all_headers(codec: Codec, request: ModelRequest, endpoint: Endpoint) -> dict[str, str]:
    """The headers of a request: the protocol's, those that keep a session together, the endpoint's, the request's.

    The later wins, whatever case it is written in.
    """
    own = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
    layers: list[Mapping[str, str]] = [own, codec.headers(endpoint), _affinity(request), endpoint.headers]
    layers.append(request.headers)
    return {name.lower(): value for layer in layers for name, value in layer.items()}


def _affinity(request: ModelRequest) -> dict[str, str]:
    """By these, hosts send the requests of a session to the machine that has its cache."""
    if not request.session_id:
        return {}
    own = {"x-session-affinity": request.session_id, "x-session-id": request.session_id}
    if request.parent_session_id:
        own["x-parent-session-id"] = request.parent_session_id
    return own


async def _answered(
    chunks: AsyncIterator[bytes], reader: Reader, wait: "_Wait"
) -> AsyncGenerator[Sequence[StreamEvent], None]:
    """The events of a stream, a portion for each chunk that has any."""
    parser = SseParser()
    while (chunk := await wait.next(chunks)) is not None:
        events: list[StreamEvent] = []
        for name, data in parser.feed(chunk):
            events += reader.feed(name, data)
        if events:
            yield events
        if reader.is_over:
            return
    yield reader.end(parser.end())


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read what little may be left behind the answer, so that the connection can be used again."""
    with anyio.move_on_after(DRAIN_S):
        for _ in range(DRAIN_CHUNKS_MAX):
            if await anext(chunks, None) is None:
                return


class _TimedOut(Exception):
    """We waited long enough."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class _Wait:
    """Waits for a provider, no longer than its endpoint allows."""

    def __init__(self, endpoint: Endpoint) -> None:
        limits = endpoint.timeouts
        now = anyio.current_time()
        self._limits = limits
        self._first_at = now + limits.first_byte_s if limits.first_byte_s is not None else None
        self._total_at = now + limits.total_s if limits.total_s is not None else None
        self._has_begun = False

    async def first(self, ask: Callable[[], Awaitable[T]]) -> T:
        """The beginning of an answer."""
        with anyio.CancelScope(deadline=self._until()) as scope:
            return await ask()
        raise self._expired(scope)

    async def next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """The next piece; None at the end."""
        with anyio.CancelScope(deadline=self._until()) as scope:
            try:
                chunk = await anext(chunks)
            except StopAsyncIteration:
                return None
            self._has_begun = True
            return chunk
        raise self._expired(scope)

    def _until(self) -> float:
        idle = self._limits.idle_s
        own = self._first_at
        if self._has_begun:
            own = anyio.current_time() + idle if idle is not None else None
        return min((at for at in (own, self._total_at) if at is not None), default=float("inf"))

    def _expired(self, scope: anyio.CancelScope) -> _TimedOut:
        limits = self._limits
        if limits.total_s is not None and self._total_at is not None and scope.deadline >= self._total_at:
            return _TimedOut(timed_out("The answer took too long", "total_timeout", limits.total_s))
        if not self._has_begun:
            return _TimedOut(timed_out("No answer began", "first_byte_timeout", limits.first_byte_s or 0))
        return _TimedOut(timed_out("The answer went silent", "idle_timeout", limits.idle_s or 0))


async def _error_text(response: httpx2.Response, wait: _Wait) -> str:
    """The body of an error, as much of it as is worth keeping; what was read before it broke, if it does."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            while size < ERROR_BYTES_MAX and (chunk := await wait.next(chunks)) is not None:
                pieces.append(chunk)
                size += len(chunk)
    except (httpx2.HTTPError, _TimedOut):
        pass  # The status says enough.
    return b"".join(pieces)[:ERROR_BYTES_MAX].decode("utf-8", "replace")


def _request_id(headers: httpx2.Headers) -> str | None:
    return next((headers[name] for name in REQUEST_IDS if name in headers), None)


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text

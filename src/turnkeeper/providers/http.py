"""HttpProvider: sends requests over HTTP and reads streamed answers. A network error becomes one ``error`` event.

There are no retries here: ``core.retry`` decides about them, and the user sees them.
"""

import math
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing
from typing import TypeAlias
from urllib.request import getproxies

import anyio
import httpx2

from turnkeeper.core.failures import broken, json_or_none, stream_failure
from turnkeeper.model.failure import AuthData, AuthFailure, Failure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import Start, StartStep, StreamEvent, UsageCounted
from turnkeeper.providers import codec_of
from turnkeeper.providers.bodies import Bodies
from turnkeeper.providers.codec import Codec, Reader
from turnkeeper.providers.endpoint import ERROR_BYTES_MAX, Endpoint, without_secrets
from turnkeeper.providers.network import network_failure, timed_out
from turnkeeper.providers.pool import Body, ConnectionPool, Pieces
from turnkeeper.providers.sse import EventTooLarge, SseEvent, SseParser

REQUEST_IDS = ("request-id", "x-request-id", "apim-request-id", "x-goog-request-id", "cf-ray")
CONNECTIONS_MAX = 200
IDLE_CONNECTIONS_MAX = 20

DRAIN_S = 0.1
DRAIN_CHUNKS_MAX = 8
"""Limits for reading the rest of a stream after its last event; beyond them the connection is closed."""

_Ask: TypeAlias = Callable[[], Awaitable[httpx2.Response]]

KEY_CHARS_MIN = 8
"""A shorter key, such as ``none`` or ``x`` for a local server, is no secret, and may be a part of any word."""

_NOT_STREAMS = ("application/json", "text/html")
_NETWORK_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL, EventTooLarge, UnicodeError, OSError)


def new_client(*, user_agent: str) -> httpx2.AsyncClient:
    """The HTTP client that all providers share; the caller closes it. With a proxy it uses httpx2's own transport."""
    headers = {"user-agent": user_agent}
    if getproxies().keys() - {"no"}:
        limits = httpx2.Limits(max_connections=CONNECTIONS_MAX, max_keepalive_connections=IDLE_CONNECTIONS_MAX)
        return httpx2.AsyncClient(headers=headers, limits=limits)
    return DirectClient(ConnectionPool(idle_max=IDLE_CONNECTIONS_MAX, open_max=CONNECTIONS_MAX), headers)


class DirectClient(httpx2.AsyncClient):
    """A client that exposes its connection pool, for requests without proxies, cookies and redirects."""

    def __init__(self, pool: ConnectionPool, headers: Mapping[str, str]) -> None:
        super().__init__(headers=dict(headers), transport=pool)
        self.pool = pool


class HttpProvider:
    """One provider behind one endpoint."""

    def __init__(self, endpoint: Endpoint, client: httpx2.AsyncClient) -> None:
        self._endpoint, self._client = endpoint, client
        self._codec: Codec = codec_of(endpoint.protocol)
        self._bodies = Bodies(self._codec, endpoint)
        self._base_url = (endpoint.base_url or self._codec.BASE_URL).rstrip("/")
        self._shown_url = without_secrets(self._base_url)
        self._urls: dict[str, httpx2.URL] = {}
        self._is_proven = False
        """Whether the base URL has answered a request before."""
        self._usual_headers = dict(client.headers)
        limits = endpoint.timeouts
        self._timeout = httpx2.Timeout(None, connect=limits.connect_s, write=limits.write_s).as_dict()

    def wire_length(self, request: ModelRequest) -> int:
        """The number of messages in the body of a request; see ``Measuring``."""
        messages = self._codec.body(request, self._endpoint)[self._codec.MESSAGES]
        assert isinstance(messages, list), "a conversation is a list"
        return len(messages)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer, in the portions in which it arrives; see ``Provider``."""
        reader = self._codec.Reader(self._endpoint.provider_id)
        if (missing := self._missing_key()) is not None:
            yield reader.end(cause=missing)
            return
        parser = SseParser()
        try:
            async with AsyncExitStack() as stack:
                wait = _Wait(self._endpoint)
                response = await wait.first(lambda: self._sent(self._asking(request)))
                self._is_proven = True
                stack.push_async_callback(response.aclose)
                if (refused := await self._refused(response, wait)) is not None:
                    yield reader.end(cause=refused)
                    return
                yield [Start(request_id=_request_id(response.headers)), StartStep()]
                chunks = await stack.enter_async_context(aclosing(_chunks(response)))
                counted = None
                while not reader.is_over and (chunk := await wait.next(chunks)) is not None:
                    events = _read(parser.feed(chunk), reader)
                    if not reader.is_over and (usage := reader.answer.usage) is not None and usage is not counted:
                        # Reported early: these tokens are billed even if the answer never ends.
                        counted = usage
                        events = [*events, UsageCounted(usage=usage)]
                    if events:
                        yield events
                if reader.is_over:
                    await _drain(response, chunks)
                else:
                    yield reader.end(parser.end())
        except (_TimedOut, *_NETWORK_ERRORS) as error:
            # Errors after the end of an answer are ignored.
            if events := reader.end(cause=self._failure(error)):
                yield events

    def _failure(self, error: Exception) -> Failure:
        match error:
            case _TimedOut(failure=failure):
                return failure
            case httpx2.ReadTimeout():
                return timed_out("The answer went silent", "idle_timeout", self._endpoint.timeouts.idle_s or 0)
            case httpx2.WriteTimeout():
                what = "The provider stopped reading the request"
                return timed_out(what, "write_timeout", self._endpoint.timeouts.write_s or 0)
            case _:
                return network_failure(error, self._shown_url, is_proven=self._is_proven)

    def _missing_key(self) -> Failure | None:
        endpoint = self._endpoint
        if endpoint.api_key or not endpoint.key_required:
            return None
        message = f"There is no API key for provider {endpoint.provider_id!r}."
        return AuthFailure(data=AuthData(provider_id=endpoint.provider_id, message=message))

    async def _sent(self, asking: httpx2.Request) -> httpx2.Response:
        """Send a request and return its answer with an unread body."""
        if isinstance(self._client, DirectClient) and not asking.url.userinfo:
            return await self._client.pool.handle_async_request(asking)
        # A redirect would send the API key to another host.
        return await self._client.send(asking, stream=True, follow_redirects=False)

    def _asking(self, request: ModelRequest) -> httpx2.Request:
        """The HTTP request. It is built here because httpx2's ``build_request`` is slower."""
        body, url = Pieces(self._bodies.pieces(request)), self._url(self._codec.path(request))
        headers = {
            "host": url.netloc.decode("ascii"),
            **self._usual_headers,
            **all_headers(self._codec, request, self._endpoint),
            "content-length": str(body.size),
        }
        return httpx2.Request(
            "POST",
            url,
            headers=headers,
            cookies=self._client.cookies,
            stream=body,
            extensions={"timeout": dict(self._timeout)},
        )

    def _url(self, path: str) -> httpx2.URL:
        if path not in self._urls:
            self._urls[path] = httpx2.URL(self._base_url + path)
        return self._urls[path]

    async def _refused(self, response: httpx2.Response, wait: "_Wait") -> Failure | None:
        """The failure of an answer that is not a stream; None if it is one."""
        kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
        if response.is_success and kind not in _NOT_STREAMS:
            return None
        text = await _error_text(response, wait)
        key = self._endpoint.api_key or ""
        if len(key) >= KEY_CHARS_MIN:
            text = text.replace(key, "[the key]")
        headers = {name: value for name, value in response.headers.items() if name.lower() != "set-cookie"}
        if not response.is_success:
            return self._codec.failure(response.status_code, headers, text, self._endpoint)
        if kind == "application/json" and '"error"' in text:
            return stream_failure(json_or_none(text) or text, provider_id=self._endpoint.provider_id)
        message = f"{self._shown_url} answered with {kind} and not with a stream; check baseURL."
        return broken(message, code="not_a_stream", is_retryable=False, body=text)


def all_headers(codec: Codec, request: ModelRequest, endpoint: Endpoint) -> dict[str, str]:
    """The headers of a request in lower case: the protocol's, the session's, the endpoint's, the request's; later ones
    override earlier ones.
    """
    own = {"content-type": "application/json", "accept": "text/event-stream", "accept-encoding": "identity"}
    layers = (own, codec.headers(endpoint), _affinity(request), endpoint.headers, request.headers)
    return {name.lower(): value for layer in layers for name, value in layer.items()}


def _affinity(request: ModelRequest) -> dict[str, str]:
    """Headers by which hosts route the requests of a session to the machine with its cache."""
    if not request.session_id:
        return {}
    own = {"x-session-affinity": request.session_id, "x-session-id": request.session_id}
    if request.parent_session_id:
        own["x-parent-session-id"] = request.parent_session_id
    return own


def _read(arrived: list[SseEvent], reader: Reader) -> list[StreamEvent]:
    """The stream events of SSE events. The checks in ``shared/recordings`` read recorded answers with it, too."""
    return [event for name, data in arrived for event in reader.feed(name, data)]


def _chunks(response: httpx2.Response) -> AsyncGenerator[bytes, None]:
    """The bytes of an answer, decompressed if they are compressed."""
    return response.aiter_bytes() if "content-encoding" in response.headers else response.aiter_raw()


async def _drain(response: httpx2.Response, chunks: AsyncGenerator[bytes, None]) -> None:
    """Read the rest of a stream after its last event, so that the connection can be reused."""
    if isinstance(response.stream, Body) and response.stream.is_read:
        return
    with anyio.move_on_after(DRAIN_S):
        for _ in range(DRAIN_CHUNKS_MAX):
            if await anext(chunks, None) is None:
                return


class _TimedOut(Exception):
    """A timeout, as a typed failure."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure)
        self.failure = failure


class _Wait:
    """Applies the timeouts of an endpoint.

    The connection checks the idle timeout: a cancel scope for each chunk would cost more than reading the chunk. Only
    the timeouts for the first byte and the whole answer use a cancel scope.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        limits, now = endpoint.timeouts, anyio.current_time()
        self._limits = limits
        self._first_at = now + limits.first_byte_s if limits.first_byte_s is not None else math.inf
        self._total_at = now + limits.total_s if limits.total_s is not None else math.inf
        self._has_begun = False

    async def first(self, ask: _Ask) -> httpx2.Response:
        """Wait for the head of an answer."""
        with anyio.CancelScope(deadline=self._until_first()) as scope:
            response = await ask()
            # The idle timeout starts here; before the head, the first-byte timeout applies.
            response.request.extensions["timeout"]["read"] = self._limits.idle_s
            return response
        raise self._expired(scope)

    async def next(self, chunks: AsyncGenerator[bytes, None]) -> bytes | None:
        """Wait for the next chunk; None at the end."""
        if self._has_begun and self._total_at == math.inf:
            return await anext(chunks, None)
        with anyio.CancelScope(deadline=self._total_at if self._has_begun else self._until_first()) as scope:
            chunk = await anext(chunks, None)
            self._has_begun = True
            return chunk
        raise self._expired(scope)

    def _until_first(self) -> float:
        return min(self._first_at, self._total_at)

    def _expired(self, scope: anyio.CancelScope) -> _TimedOut:
        if scope.deadline >= self._total_at:
            return _TimedOut(timed_out("The answer took too long", "total_timeout", self._limits.total_s or 0))
        return _TimedOut(timed_out("No answer began", "first_byte_timeout", self._limits.first_byte_s or 0))


async def _error_text(response: httpx2.Response, wait: _Wait) -> str:
    """The beginning of an error's body; if reading fails, the part before that."""
    pieces: list[bytes] = []
    size = 0
    try:
        async with aclosing(response.aiter_bytes()) as chunks:
            while size < ERROR_BYTES_MAX and (chunk := await wait.next(chunks)) is not None:
                pieces.append(chunk)
                size += len(chunk)
    except (httpx2.HTTPError, _TimedOut):
        pass  # The status is enough for a failure.
    return b"".join(pieces)[:ERROR_BYTES_MAX].decode("utf-8", "replace")


def _request_id(headers: httpx2.Headers) -> str | None:
    return next((headers[name] for name in REQUEST_IDS if name in headers), None)

"""ServerConnection: sends requests to one server, decodes responses, and raises refusals."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import anyio
import httpx2
import msgspec

from turnkeeper.client.errors import Unexpected, Unreachable, refusal
from turnkeeper.client.values import is_near
from turnkeeper.core.storable import check_plain
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import encode
from turnkeeper.model.version import __version__

T = TypeVar("T")

Method: TypeAlias = Literal["GET", "POST", "PATCH", "DELETE"]
Sleep: TypeAlias = Callable[[float], Awaitable[None]]
Query: TypeAlias = Mapping[str, str | int | bool | None]

CONNECT_S: Final = 10.0
ANSWER_S: Final = 60.0
"""Timeout of a request that does not wait for a session."""

PAUSE_S: Final = 0.1
PAUSE_MAX_S: Final = 5.0
TRIES_MAX: Final = 10
"""Retries in a row; with pauses that double, about half a minute in all."""

CONNECTION_ERRORS: Final = (httpx2.TransportError, OSError)


class ServerConnection:
    """The connections to one server. Any number of requests may run at once."""

    def __init__(
        self,
        url: str,
        *,
        directory: str | None = None,
        auth: tuple[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
        sleep: Sleep = anyio.sleep,
    ) -> None:
        self.url, self.sleep = url.rstrip("/"), sleep
        headers = {"user-agent": f"turnkeeper/{__version__}"}
        if directory is not None:
            headers["x-opencode-directory"] = quote(directory)
        self.http = httpx2.AsyncClient(
            base_url=self.url,
            headers=headers,
            auth=auth,
            transport=transport,
            # A proxy from the environment cannot reach this machine, and must not receive its password.
            trust_env=not is_near(url),
            timeout=httpx2.Timeout(ANSWER_S, connect=CONNECT_S),
            limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
        )
        self._has_answered = False
        self.retried: set[object] = set()
        """The requests and streams that are being retried now, because the server did not answer."""

    async def call(
        self,
        method: Method,
        path: str,
        kind: type[T],
        *,
        query: Query | None = None,
        body: object = None,
        waits: bool = False,
        again: bool = False,
    ) -> T:
        """Send a request and decode the response. The parameters are those of ``answer``."""
        found = await self.answer(method, path, query=query, body=body, waits=waits, again=again)
        return self.value(found, kind)

    async def answer(
        self,
        method: Method,
        path: str,
        *,
        query: Query | None = None,
        body: object = None,
        waits: bool = False,
        again: bool = False,
    ) -> httpx2.Response:
        """Send a request; raises the refusal of an error response.

        ``waits``: without a timeout. ``again``: the request is idempotent, so it is retried after a connection error.
        Each GET is.
        """
        timeout = httpx2.Timeout(None, connect=CONNECT_S) if waits else httpx2.USE_CLIENT_DEFAULT
        content = _content(body) if body is not None else None
        headers = {"content-type": "application/json"} if body is not None else {}
        request = self.http.build_request(
            method, path, params=_parameters(query), content=content, headers=headers, timeout=timeout
        )
        found = await self._send(request, again=again or method == "GET")
        self._has_answered = True
        if not found.is_success:
            raise refusal(found.status_code, found.content)
        return found

    async def _send(self, request: httpx2.Request, *, again: bool) -> httpx2.Response:
        """Send a request, with ``again`` until the server answers. Raises Unreachable."""
        tries = 0
        try:
            while True:
                try:
                    self._refuse_if_closed()
                    return await self.http.send(request)
                except CONNECTION_ERRORS as error:
                    tries += 1
                    if not again or not self._has_answered or tries > TRIES_MAX:
                        raise self.unreachable(error) from error
                    self.retried.add(request)
                    await self.pause(tries)
        finally:
            self.retried.discard(request)

    async def stream(self, path: str, query: Query, headers: Mapping[str, str], silence_s: float) -> httpx2.Response:
        """Start a streamed response, which the caller closes. Raises httpx2's exceptions on a connection error."""
        self._refuse_if_closed()
        request = self.http.build_request(
            "GET",
            path,
            params=_parameters(query),
            headers={"accept": "text/event-stream", **headers},
            timeout=httpx2.Timeout(silence_s, connect=CONNECT_S),
        )
        found = await self.http.send(request, stream=True)
        if not found.is_success:
            try:
                raise refusal(found.status_code, await found.aread())
            finally:
                await found.aclose()
        return found

    def _refuse_if_closed(self) -> None:
        if self.http.is_closed:
            raise Unreachable("this client is closed; use it inside its `async with`")

    async def pause(self, tries: int) -> None:
        """Wait before a retry; each pause is longer than the one before."""
        await self.sleep(min(PAUSE_S * 2 ** (tries - 1), PAUSE_MAX_S))

    def unreachable(self, error: Exception) -> Unreachable:
        """The refusal for a connection error."""
        why = str(error) or type(error).__name__
        return Unreachable(f"no server answers at {self.url} ({why}); start one with `turnkeeper serve`")

    def value(self, found: httpx2.Response, kind: type[T]) -> T:
        """The decoded body of a response."""
        try:
            return msgspec.json.decode(found.content, type=kind)
        except msgspec.MsgspecError as error:
            raise Unexpected(f"{self.url} does not answer like a Turnkeeper server of this version: {error}") from error


def _content(body: object) -> bytes:
    """A body as JSON. Raises Invalid for a value that JSON cannot hold."""
    try:
        content = encode(body)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise Invalid(f"this cannot be sent: {error}") from error
    check_plain(body, "what is sent")
    return content


def _parameters(query: Query | None) -> dict[str, str] | None:
    if query is None:
        return None
    return {name: _parameter(value) for name, value in query.items() if value is not None}


def _parameter(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

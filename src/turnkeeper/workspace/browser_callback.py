"""Browser callback: a local HTTP port to which a site redirects the browser at the end of a login."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, Self
from urllib.parse import parse_qsl, urlsplit

from turnkeeper.model.refusal import Invalid

WAIT_S: Final = 300.0
"""Time limit for the user to agree in the browser."""
ANSWER_S: Final = 30.0
_HEAD_BYTES_MAX: Final = 16 * 1024
_PAGE: Final = b"You can close this page and go back to the terminal.\n"


class BrowserCallback:
    """HTTP server on a local port that waits for the redirected browser."""

    def __init__(self, path: str, *, host: str = "127.0.0.1", port: int = 0) -> None:
        """``host`` is the name of this machine in the URL. Port 0: any free port."""
        self._path, self._host, self._port = path, host, port
        self._arrived: asyncio.Future[dict[str, str]] = asyncio.get_running_loop().create_future()
        self.accepts: Callable[[Mapping[str, str]], bool] = lambda given: True
        """Whether a browser with these parameters is the right one. Others get an error page, and the wait goes on."""
        self.url = ""

    async def arrival(self, timeout_s: float = WAIT_S) -> dict[str, str]:
        """The query parameters of the redirect. Raises Invalid after the timeout."""
        try:
            async with asyncio.timeout(timeout_s):
                return await asyncio.shield(self._arrived)
        except TimeoutError as error:
            raise Invalid(f"the browser did not come back within {timeout_s:g} s") from error

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Self]:
        """Listen as long as the scope lasts. Raises OSError if the port is taken."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", self._port, limit=_HEAD_BYTES_MAX)
        self.url = f"http://{self._host}:{server.sockets[0].getsockname()[1]}{self._path}"
        async with server:
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(ANSWER_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status = self._taken(head.partition(b"\r\n")[0].decode("latin-1"))
                page = _PAGE if status.startswith(b"200") else status + b"\n"
                writer.write(
                    b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                    % (status, len(page), page)
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Another client, or a browser that disconnected; the wait goes on.
        finally:
            writer.close()

    def _taken(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        try:
            asked = urlsplit(rest.partition(" ")[0])
            given = dict(parse_qsl(asked.query, max_num_fields=50))
        except ValueError:
            return b"400 Bad Request"
        if method != "GET" or asked.path != self._path:
            return b"404 Not Found"
        if not self.accepts(given):
            return b"403 Forbidden"
        if not self._arrived.done():
            self._arrived.set_result(given)
        return b"200 OK"

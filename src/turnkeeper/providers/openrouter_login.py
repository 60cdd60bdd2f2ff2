"""Login at OpenRouter by browser: PKCE without a client id, which gives an API key.

The browser comes back to a port of this machine.
"""

import asyncio
import base64
import hashlib
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Final
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec

from turnkeeper.model.refusal import Invalid

PROVIDER: Final = "openrouter"
SITE: Final = "https://openrouter.ai"
WAIT_S: Final = 300.0
EXCHANGE_S: Final = 30.0
PATH: Final = "/callback"
_HEAD_BYTES_MAX: Final = 16 * 1024
_PAGE: Final = b"You can close this page and go back to the terminal.\n"


class _Given(msgspec.Struct):
    key: str


def site(environ: Mapping[str, str]) -> str:
    """The site: OpenRouter's own, or that of the address that a variable gives in its place."""
    named = urlsplit(environ.get("OPENROUTER_BASE_URL", "").strip())
    return f"{named.scheme}://{named.netloc}" if named.netloc else SITE


def challenge(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def address(callback: str, verifier: str, site: str = SITE) -> str:
    """The page where the user agrees."""
    asked = {"callback_url": callback, "code_challenge": challenge(verifier), "code_challenge_method": "S256"}
    return f"{site}/auth?{urlencode(asked)}"


class Callback:
    """Waits on a port of this machine for the browser to come back."""

    def __init__(self, state: str) -> None:
        """``state`` is a secret in the path: another page cannot send a code of its own."""
        self._path = f"{PATH}/{state}"
        self._code: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.url = ""

    async def wait(self, timeout_s: float = WAIT_S) -> str:
        """The code. Raises Invalid if the user refuses, or nobody comes."""
        try:
            async with asyncio.timeout(timeout_s):
                return await self._code
        except TimeoutError as error:
            raise Invalid(f"the browser did not come back within {timeout_s:g} s; nothing was stored") from error

    @asynccontextmanager
    async def open(self) -> AsyncIterator["Callback"]:
        """Listen as long as the scope lasts."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX)
        self.url = f"http://localhost:{server.sockets[0].getsockname()[1]}{self._path}"
        async with server:
            yield self

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(EXCHANGE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                status = self._taken(head.partition(b"\r\n")[0].decode("latin-1"))
                writer.write(
                    b"HTTP/1.1 %b\r\ncontent-type: text/plain\r\ncontent-length: %d\r\nconnection: close\r\n\r\n%b"
                    % (status, len(_PAGE), _PAGE)
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # Not the browser, or it is gone; the wait goes on.
        finally:
            writer.close()

    def _taken(self, line: str) -> bytes:
        method, _, rest = line.partition(" ")
        asked = urlsplit(rest.partition(" ")[0])
        if method != "GET" or asked.path != self._path:
            return b"404 Not Found"
        found = parse_qs(asked.query)
        if not self._code.done():
            if "code" in found:
                self._code.set_result(found["code"][0])
            else:
                self._code.set_exception(Invalid("the login was refused; nothing was stored"))
        return b"200 OK"


async def exchanged(code: str, verifier: str, site: str = SITE) -> str:
    """The API key for a code. Raises Invalid, which quotes neither."""
    import httpx2  # Imported here: it takes longer to load than most commands take to run.

    url = f"{site}/api/v1/auth/keys"
    sent = {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"}
    try:
        async with httpx2.AsyncClient(timeout=EXCHANGE_S, follow_redirects=False) as client:
            response = await client.post(url, json=sent)
    except httpx2.HTTPError as error:
        raise Invalid(f"{url} cannot be reached: {error}; nothing was stored") from error
    if response.status_code != 200:
        raise Invalid(f"{url} gave no key (status {response.status_code}); nothing was stored")
    try:
        return msgspec.json.decode(response.content, type=_Given).key
    except msgspec.MsgspecError as error:
        raise Invalid(f"{url} gave no key: {error}; nothing was stored") from error

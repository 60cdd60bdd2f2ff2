"""Login at OpenRouter by browser: PKCE without a client id, which gives an API key.

The browser is redirected to a port of this machine.
"""

import base64
import hashlib
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlencode, urlsplit

import msgspec

from turnkeeper.core.key_shapes import pasted
from turnkeeper.model.refusal import Invalid
from turnkeeper.workspace.browser_callback import WAIT_S, BrowserCallback

PROVIDER: Final = "openrouter"
SITE: Final = "https://openrouter.ai"
EXCHANGE_S: Final = 30.0
"""How long the site may take to give the key, from the request to the end of its answer."""
ANSWER_BYTES_MAX: Final = 64 * 1024
PATH: Final = "/callback"


class _Given(msgspec.Struct):
    key: str


def site(environ: Mapping[str, str]) -> str:
    """The URL of the site: OpenRouter's own, or that of ``OPENROUTER_BASE_URL``. Raises Invalid."""
    given = environ.get("OPENROUTER_BASE_URL", "").strip()
    if not given:
        return SITE
    try:
        named = urlsplit(given)
    except ValueError:
        named = urlsplit("")
    if named.scheme not in ("http", "https") or not named.netloc:
        raise Invalid(f"OPENROUTER_BASE_URL: {given!r} is no address; it begins with https:// or http://")
    return f"{named.scheme}://{named.netloc}"


def challenge(verifier: str) -> str:
    """The S256 challenge of a verifier (RFC 7636)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()


def address(callback: str, verifier: str, site: str = SITE) -> str:
    """The page where the user agrees."""
    asked = {"callback_url": callback, "code_challenge": challenge(verifier), "code_challenge_method": "S256"}
    return f"{site}/auth?{urlencode(asked)}"


class Callback(BrowserCallback):
    """HTTP server on a local port that waits for the redirected browser."""

    def __init__(self, state: str) -> None:
        """``state`` is a secret in the path, so that another page cannot send its own code."""
        super().__init__(f"{PATH}/{state}", host="localhost")

    async def wait(self, timeout_s: float = WAIT_S) -> str:
        """The code of the redirect. Raises Invalid if the user refuses, or after the timeout."""
        given = await self.arrival(timeout_s)
        if "code" not in given:
            raise Invalid("the login was refused; nothing was stored")
        return given["code"]


async def exchanged(code: str, verifier: str, site: str = SITE, *, limit_s: float = EXCHANGE_S) -> str:
    """The API key for a code. Raises Invalid, which quotes neither."""
    url = f"{site}/api/v1/auth/keys"
    sent = {"code": code, "code_verifier": verifier, "code_challenge_method": "S256"}
    content = await _posted(url, sent, limit_s)
    try:
        given = msgspec.json.decode(content, type=_Given)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{url} gave no key: {error}; nothing was stored") from error
    return pasted(given.key, PROVIDER, "OpenRouter", own_host=True).key


async def _posted(url: str, sent: Mapping[str, str], limit_s: float) -> bytes:
    import anyio
    import httpx2  # Imported here: it takes longer to load than most commands take to run.

    content = bytearray()
    try:
        with anyio.fail_after(limit_s):
            async with (
                httpx2.AsyncClient(timeout=None, follow_redirects=False) as client,
                client.stream("POST", url, json=sent) as response,
            ):
                if response.status_code != 200:
                    raise Invalid(f"{url} gave no key (status {response.status_code}); nothing was stored")
                async for piece in response.aiter_bytes():
                    content += piece
                    if len(content) > ANSWER_BYTES_MAX:
                        raise Invalid(f"{url} gave no key, but a long answer; nothing was stored")
    except TimeoutError as error:
        raise Invalid(f"{url} did not end its answer within {limit_s:g} s; nothing was stored") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise Invalid(f"{url} cannot be reached: {error}; nothing was stored") from error
    return bytes(content)

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
PATH: Final = "/callback"


class _Given(msgspec.Struct):
    key: str


def site(environ: Mapping[str, str]) -> str:
    """The URL of the site: OpenRouter's own, or that of the address in ``OPENROUTER_BASE_URL``."""
    named = urlsplit(environ.get("OPENROUTER_BASE_URL", "").strip())
    return f"{named.scheme}://{named.netloc}" if named.netloc else SITE


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
        given = msgspec.json.decode(response.content, type=_Given)
    except msgspec.MsgspecError as error:
        raise Invalid(f"{url} gave no key: {error}; nothing was stored") from error
    return pasted(given.key, PROVIDER, "OpenRouter", own_host=True).key

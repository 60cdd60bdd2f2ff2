"""The gate: who may call at all. Passwords, origins of browsers, and hosts that only pretend to be this machine."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qs, urlsplit

from turnkeeper.server.answer import HttpResponse, Pairs, json
from turnkeeper.server.asgi import Scope
from turnkeeper.server.service import ServerOptions

LOOPBACK: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")
"""Names of this machine that nobody outside can make point here, or that only this machine has."""

ORIGINS: Final = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?"
    r"|https://(?:[a-z0-9-]+\.)*opencode\.ai"
    r"|tauri://localhost|https?://tauri\.localhost|oc://renderer"
)
"""Pages that may call: those of this machine, and the official clients."""

SAFE: Final = frozenset({"GET", "HEAD"})

_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, PUT, PATCH, POST, DELETE"),
    (b"access-control-max-age", b"86400"),
)
_VARY: Final = (b"vary", b"Origin")


def is_loopback(hostname: str) -> bool:
    """Whether only this machine can reach a server that is bound to this name."""
    return LOOPBACK.fullmatch(hostname.strip("[]").lower()) is not None


class AccessGate:
    """Decides by the head of a request alone, before anything else is looked at."""

    def __init__(self, options: ServerOptions) -> None:
        self._token: str | None = None
        if options.password is not None:
            self._token = b64encode(f"{options.username}:{options.password}".encode()).decode()
        self._origins = frozenset(options.cors)
        self._checks_host = is_loopback(options.hostname)

    def headers(self, origin: str | None) -> Pairs:
        """What every answer says of origins."""
        if origin is None or not self._is_allowed(origin):
            return (_VARY,)
        return _VARY, (b"access-control-allow-origin", origin.encode("latin-1"))

    def stopped(self, scope: Scope, headers: Mapping[str, str]) -> HttpResponse | None:
        """What is answered at the gate; None for who may come in."""
        if self._checks_host and not _is_here(headers.get("host", "")):
            # A page of some domain whose name was made to point at this machine: its host is not ours.
            return _forbidden("this server answers only under a name of this machine")
        origin = headers.get("origin")
        if scope["method"] == "OPTIONS" and origin is not None:
            asked = headers.get("access-control-request-headers", "").encode("latin-1")
            return HttpResponse(204, headers=(*_PREFLIGHT, (b"access-control-allow-headers", asked)))
        if origin is not None and scope["method"] not in SAFE and not self._is_welcome(origin, headers):
            # Browsers send simple requests without asking first; the page could not read the answer, but what it
            # asked for would be done.
            return _forbidden(f"pages of {origin} may not call this server; start it with --cors {origin}")
        if self._token is not None and not self._knows(scope, headers):
            return _unauthorized(is_second=scope["path"].startswith("/api/"))
        return None

    def _is_allowed(self, origin: str) -> bool:
        return origin in self._origins or ORIGINS.fullmatch(origin) is not None

    def _is_welcome(self, origin: str, headers: Mapping[str, str]) -> bool:
        return self._is_allowed(origin) or urlsplit(origin).netloc == headers.get("host")

    def _knows(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            return _same(given.strip(), self._token)
        words = parse_qs(scope["query_string"].decode("latin-1"))
        return any(_same(given, self._token) for given in words.get("auth_token", ()))


def _same(given: str, token: str) -> bool:
    """Compared as bytes, in a time that does not tell where they differ; padding may be missing."""
    try:
        known, said = b64decode(token), b64decode(given + "=" * (-len(given) % 4), validate=True)
    except ValueError:
        return False
    return compare_digest(known, said)


@lru_cache(maxsize=64)
def _is_here(host: str) -> bool:
    name = host.rpartition(":")[0] if re.search(r":\d+$", host) else host
    name = name.strip("[]").lower().rstrip(".")
    return is_loopback(name) or name.endswith(".localhost")


def _forbidden(message: str) -> HttpResponse:
    return json({"_tag": "ForbiddenError", "name": "ForbiddenError", "data": {"message": message}}, 403)


def _unauthorized(*, is_second: bool) -> HttpResponse:
    challenge = ((b"www-authenticate", b'Basic realm="Secure Area"'),)
    if is_second:
        return json({"_tag": "UnauthorizedError", "message": "Authentication required"}, 401, challenge)
    return HttpResponse(401, headers=challenge)

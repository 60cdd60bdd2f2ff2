"""AccessGate: refuses requests without the password, from foreign origins or hosts, or from a model's commands."""

import re
from base64 import b64decode, b64encode
from collections.abc import Mapping
from functools import lru_cache
from hmac import compare_digest
from typing import Final
from urllib.parse import parse_qs, urlsplit

from turnkeeper.server.asgi import PEER, Scope
from turnkeeper.server.peer import Peer
from turnkeeper.server.response import HttpResponse, Pairs, json
from turnkeeper.server.service import ServerOptions

LOOPBACK: Final = re.compile(r"localhost|127(?:\.\d{1,3}){3}|::1")
"""Host names that always mean this machine."""

ORIGINS: Final = re.compile(
    r"https?://(?:localhost|127\.0\.0\.1|\[::1\])(?::\d+)?"
    r"|https://(?:[a-z0-9-]+\.)*opencode\.ai"
    r"|tauri://localhost|https?://tauri\.localhost|oc://renderer"
)
"""Origins whose pages may call the server: this machine and the official clients."""

SAFE: Final = frozenset({"GET", "HEAD"})

_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"GET, HEAD, PUT, PATCH, POST, DELETE"),
    (b"access-control-max-age", b"86400"),
)
_VARY: Final = (b"vary", b"Origin")


def is_loopback(hostname: str) -> bool:
    """Whether a server that is bound to this host name can be reached from this machine only."""
    return LOOPBACK.fullmatch(hostname.strip("[]").lower()) is not None


class AccessGate:
    """Decides on the head of a request, before its route is looked up."""

    def __init__(self, options: ServerOptions) -> None:
        self._token: str | None = None
        if options.password is not None:
            self._token = b64encode(f"{options.username}:{options.password}".encode()).decode()
        self._origins = frozenset(options.cors)
        self._checks_host = is_loopback(options.hostname)

    def headers(self, origin: str | None) -> Pairs:
        """The CORS headers of a response."""
        if origin is None or not self._is_allowed(origin):
            return (_VARY,)
        return _VARY, (b"access-control-allow-origin", origin.encode("latin-1"))

    def stopped(self, scope: Scope, headers: Mapping[str, str]) -> HttpResponse | None:
        """The response to a request that is refused, or to a CORS preflight; None if the request may go on."""
        if self._checks_host and not _is_here(headers.get("host", "")):
            # DNS rebinding: a foreign domain whose name was made to point at this machine.
            return _forbidden("this server answers only under a name of this machine")
        origin = headers.get("origin")
        if scope["method"] == "OPTIONS" and origin is not None:
            asked = headers.get("access-control-request-headers", "").encode("latin-1")
            return HttpResponse(204, headers=(*_PREFLIGHT, (b"access-control-allow-headers", asked)))
        if origin is not None and scope["method"] not in SAFE and not self._may_write(origin, headers):
            # Browsers send simple requests without a preflight: the page could not read the response, but the request
            # would be carried out.
            return _forbidden(f"pages of {origin} may not call this server; start it with --cors {origin}")
        if self._token is not None and not _is_shared(scope) and not self._has_password(scope, headers):
            return _unauthorized(is_second=scope["path"].startswith("/api/"))
        return None

    async def stopped_peer(self, scope: Scope) -> HttpResponse | None:
        """The response to a model's command, which may not answer for the user; None if the request may go on.

        A password is not known to commands, so who has it is not looked at.
        """
        peer: Peer | None = scope.get("extensions", {}).get(PEER)
        if peer is None or self._token is not None:
            return None
        owner = await peer.owner()
        if owner == "command":
            return _forbidden("commands that a model runs may not call the server that runs them")
        if owner == "unknown" and scope["method"] not in SAFE:
            return _forbidden(
                "a command of a model runs, and it cannot be told that this request does not come from it; keep the "
                "connection open until the answer, or start the server with a password (OPENCODE_SERVER_PASSWORD)"
            )
        return None

    def _is_allowed(self, origin: str) -> bool:
        return origin in self._origins or ORIGINS.fullmatch(origin) is not None

    def _may_write(self, origin: str, headers: Mapping[str, str]) -> bool:
        return self._is_allowed(origin) or urlsplit(origin).netloc == headers.get("host")

    def _has_password(self, scope: Scope, headers: Mapping[str, str]) -> bool:
        assert self._token is not None
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "basic":
            return _is_equal(given.strip(), self._token)
        query = parse_qs(scope["query_string"].decode("latin-1"))
        return any(_is_equal(given, self._token) for given in query.get("auth_token", ()))


def _is_shared(scope: Scope) -> bool:
    """Whether a request reads what a link shows. A link has a secret of its own in place of the password."""
    path: str = scope["path"]
    return path.startswith("/share/") and scope["method"] in SAFE


def _is_equal(given: str, token: str) -> bool:
    """Whether two base64 texts hold equal bytes, compared in constant time; padding may be missing."""
    try:
        known, received = b64decode(token), b64decode(given + "=" * (-len(given) % 4), validate=True)
    except ValueError:
        return False
    return compare_digest(known, received)


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

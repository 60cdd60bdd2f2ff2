"""Network failures: converts network exceptions to typed failures."""

import errno
import re
import socket
import ssl
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx2

from turnkeeper.core.failures import broken
from turnkeeper.model.failure import ApiFailure
from turnkeeper.providers.sse import EventTooLarge

_CODES = {
    errno.ECONNREFUSED: "ECONNREFUSED",
    errno.ECONNRESET: "ECONNRESET",
    errno.EPIPE: "ECONNRESET",
    errno.ETIMEDOUT: "ETIMEDOUT",
    errno.EHOSTUNREACH: "EHOSTUNREACH",
    errno.ENETUNREACH: "ENETUNREACH",
}
_ERRNO = re.compile(r"\[Errno (\d+)\]")
_REFUSED = "Nothing accepts connections at {place}. Check that the server runs, and host and port of baseURL ({url})."
_UNKNOWN = "The host {host} is not known. Check its name in baseURL ({url}), and the network connection."
_UNREACHABLE = "{place} cannot be reached: {detail}. Check the network connection, and baseURL ({url})."


def network_failure(error: Exception, url: str, *, is_proven: bool = False) -> ApiFailure:
    """The typed failure of an exception during a request to ``url``. An error that would recur is not retryable.

    ``is_proven``: the URL has answered before, so that failing to connect is a temporary outage.
    """
    causes = tuple(_causes(error))
    detail = str(error) or type(error).__name__
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return broken(f"The certificate of {url} cannot be trusted: {detail}", code="TLS", is_retryable=False, url=url)
    match error:
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return broken(f"{url!r} is not an address; check baseURL: {detail}", code="INVALID_URL", is_retryable=False)
        case httpx2.LocalProtocolError() | UnicodeError():
            message = f"The request to {url} cannot be sent; check its headers and key: {detail}"
            return broken(message, code="INVALID_REQUEST", is_retryable=False, url=url)
        case EventTooLarge():
            return broken(f"The provider's stream cannot be read: {detail}", code="TOO_LARGE", is_retryable=False)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return broken(f"{url} could not be reached in time.", code="ETIMEDOUT", is_retryable=True, url=url)
        case httpx2.ConnectError():
            return _unreachable(_code(causes), url, detail, is_proven)
        case _:
            message = f"The connection to {url} broke: {detail}"
            return broken(message, code=_code(causes, "ECONNRESET"), is_retryable=True, url=url)


def _unreachable(code: str, url: str, detail: str, is_proven: bool) -> ApiFailure:
    """The failure to open a connection, which the connection pool has retried already."""
    words = {"ECONNREFUSED": _REFUSED, "ENOTFOUND": _UNKNOWN}.get(code, _UNREACHABLE)
    address = urlsplit(url)
    host = address.hostname or url
    place = f"{host}:{address.port or (443 if address.scheme == 'https' else 80)}"
    message = words.format(place=place, host=host, url=url, detail=detail)
    return broken(message, code=code, is_retryable=is_proven or code in ("ECONNRESET", "ETIMEDOUT"), url=url)


def timed_out(what: str, code: str, limit_s: float) -> ApiFailure:
    """The failure of a timeout."""
    return broken(f"{what} ({limit_s:g} s).", code=code, is_retryable=True, timeoutMs=str(round(limit_s * 1000)))


def _code(causes: tuple[BaseException, ...], default: str = "EHOSTUNREACH") -> str:
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return "ENOTFOUND"
        if isinstance(cause, ssl.SSLError):
            return "TLS"
        if isinstance(cause, OSError) and (number := _errno(cause)) in _CODES:
            return _CODES[number]
    return default


def _errno(error: OSError) -> int:
    """The system's error number; from the message if asyncio joined the errors of several addresses."""
    found = _ERRNO.search(str(error)) if error.errno is None else None
    return int(found[1]) if found else error.errno or 0


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and its causes, nearest first, including the members of exception groups."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        cause = waiting.pop(0)
        if cause is None or id(cause) in seen:
            continue
        seen.add(id(cause))
        yield cause
        if isinstance(cause, BaseExceptionGroup):
            waiting.extend(cause.exceptions)
        waiting.extend((cause.__cause__, cause.__context__))

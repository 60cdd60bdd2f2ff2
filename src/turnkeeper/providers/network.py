"""Network failures: what broke on the way to a provider, as a typed Failure."""

import errno
import socket
import ssl
from collections.abc import Iterator

import httpx2

from turnkeeper.core.failures import broken
from turnkeeper.model.failure import ApiFailure
from turnkeeper.providers.sse import TooLarge

_CODES = {
    errno.ECONNREFUSED: "ECONNREFUSED",
    errno.ECONNRESET: "ECONNRESET",
    errno.EPIPE: "ECONNRESET",
    errno.ETIMEDOUT: "ETIMEDOUT",
    errno.EHOSTUNREACH: "EHOSTUNREACH",
    errno.ENETUNREACH: "ENETUNREACH",
}


def network_failure(error: Exception, url: str) -> ApiFailure:
    """What an exception on the way to ``url`` means. Mistakes in our own settings are not worth another try."""
    causes = tuple(_causes(error))
    detail = str(error) or type(error).__name__
    if any(isinstance(cause, ssl.SSLCertVerificationError) for cause in causes):
        return broken(f"The certificate of {url} cannot be trusted: {detail}", code="TLS", is_retryable=False, url=url)
    match error:
        case httpx2.UnsupportedProtocol() | httpx2.InvalidURL():
            return broken(f"{url!r} is no address; check baseURL: {detail}", code="INVALID_URL", is_retryable=False)
        case httpx2.LocalProtocolError() | UnicodeError():
            message = f"The request to {url} cannot be sent; check its headers and key: {detail}"
            return broken(message, code="INVALID_REQUEST", is_retryable=False, url=url)
        case TooLarge():
            return broken(f"The provider's stream cannot be read: {detail}", code="TOO_LARGE", is_retryable=False)
        case httpx2.ConnectTimeout() | httpx2.PoolTimeout():
            return broken(f"{url} could not be reached in time.", code="ETIMEDOUT", is_retryable=True, url=url)
        case httpx2.ConnectError():
            return broken(f"{url} cannot be reached: {detail}", code=_code(causes), is_retryable=True, url=url)
        case _:
            message = f"The connection to {url} broke: {detail}"
            return broken(message, code=_code(causes, "ECONNRESET"), is_retryable=True, url=url)


def timed_out(what: str, code: str, limit_s: float) -> ApiFailure:
    """A wait that was longer than allowed."""
    return broken(f"{what} ({limit_s:g} s).", code=code, is_retryable=True, timeoutMs=str(round(limit_s * 1000)))


def _code(causes: tuple[BaseException, ...], default: str = "ECONNREFUSED") -> str:
    for cause in causes:
        if isinstance(cause, socket.gaierror):
            return "ENOTFOUND"
        if isinstance(cause, ssl.SSLError):
            return "TLS"
        if isinstance(cause, OSError) and cause.errno in _CODES:
            return _CODES[cause.errno]
    return default


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The exception and what led to it, nearest first; groups are looked into."""
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

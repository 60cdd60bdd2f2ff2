"""What an exception on the way to a provider means."""

import errno
import socket
import ssl

import httpx2
import pytest

from turnkeeper.core.retry import retryable
from turnkeeper.providers.network import network_failure

URL = "https://api.host.test/v1"


def connect_error(cause: Exception) -> httpx2.ConnectError:
    try:
        raise httpx2.ConnectError(str(cause)) from cause
    except httpx2.ConnectError as error:
        return error


@pytest.mark.parametrize(
    ("cause", "code", "words"),
    [
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "ENOTFOUND",
            "host api.host.test is not known",
        ),
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "ENOTFOUND", "network connection"),
        (OSError(errno.ECONNREFUSED, "refused"), "ECONNREFUSED", "api.host.test:443"),
        (OSError(errno.ENETUNREACH, "no network"), "ENETUNREACH", "no network"),
        (OSError(errno.EHOSTUNREACH, "no route"), "EHOSTUNREACH", "no route"),
        (OSError("Multiple exceptions: [Errno 111] a, [Errno 111] b"), "ECONNREFUSED", "Nothing accepts connections"),
        (OSError("something else"), "EHOSTUNREACH", "something else"),
        (ssl.SSLError(1, "wrong version number"), "TLS", "wrong version number"),
        (ssl.SSLCertVerificationError(1, "self-signed"), "TLS", "cannot be trusted"),
    ],
)
def test_no_connection_is_one_failure_that_names_the_address_and_is_not_retried(
    cause: Exception, code: str, words: str
) -> None:
    failure = network_failure(connect_error(cause), URL)
    assert (failure.data.metadata or {})["code"] == code
    assert words in failure.data.message
    assert URL in failure.data.message
    assert retryable(failure) is None


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (httpx2.ConnectTimeout("late"), "ETIMEDOUT"),
        (connect_error(ConnectionResetError(errno.ECONNRESET, "reset")), "ECONNRESET"),
        (httpx2.ReadError("reset"), "ECONNRESET"),
        (httpx2.RemoteProtocolError("closed"), "ECONNRESET"),
        (OSError(errno.EPIPE, "broken pipe"), "ECONNRESET"),
    ],
)
def test_a_connection_that_broke_is_worth_another_try(error: Exception, code: str) -> None:
    failure = network_failure(error, URL)
    assert ((failure.data.metadata or {})["code"], failure.data.is_retryable) == (code, True)
    assert retryable(failure) is not None


def test_an_address_that_has_answered_before_is_tried_again() -> None:
    error = connect_error(OSError(errno.ECONNREFUSED, "refused"))
    assert retryable(network_failure(error, URL)) is None
    assert retryable(network_failure(error, URL, is_proven=True)) is not None

"""What is worth another try, and how long to wait for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.error_phrases import is_transient
from turnkeeper.core.retry import OVERLOADED, WAIT_MS_MAX, delay, humanised, retryable
from turnkeeper.model.failure import (
    AbortedFailure,
    ApiData,
    ApiFailure,
    AuthData,
    AuthFailure,
    ContentFilterFailure,
    Failure,
    MessageData,
    NoData,
    OutputLengthFailure,
    OverflowData,
    OverflowFailure,
    StructuredOutputData,
    StructuredOutputFailure,
    UnknownData,
    UnknownFailure,
)

NOW = 1_800_000_000_000  # 2027-01-15T08:00:00Z


def api(message: str = "no", **fields: object) -> ApiFailure:
    return ApiFailure(data=ApiData(message=message, is_retryable=False).but(**fields))


def unknown(message: str) -> UnknownFailure:
    return UnknownFailure(data=UnknownData(message=message))


@pytest.mark.parametrize(
    ("failure", "message"),
    [
        (api("wrong"), None),
        (api("wrong", status_code=400), None),
        (api("wait", is_retryable=True), "wait"),
        (api("broke", status_code=503, is_retryable=True), "broke"),
        (api("Overloaded", is_retryable=True), OVERLOADED),
        (api("overloaded_error: Overloaded", is_retryable=True), OVERLOADED),
        (api("connection refused; rate limit; 503"), None),
        (api("wrong", response_body='{"error":"upstream connect error"}'), None),
        (unknown("too_many_requests"), "Too Many Requests"),
        (unknown("resource is exhausted"), OVERLOADED),
        (unknown("temporarily unavailable"), OVERLOADED),
        (unknown("socket hang up"), "socket hang up"),
        (unknown("a bug"), None),
    ],
)
def test_a_failure_is_worth_another_try_or_not(failure: Failure, message: str | None) -> None:
    assert retryable(failure) == message


NEVER: list[Failure] = [
    OverflowFailure(data=OverflowData(message="503 overloaded")),
    AbortedFailure(data=MessageData(message="connection lost")),
    AuthFailure(data=AuthData(provider_id="p", message="500")),
    ContentFilterFailure(data=MessageData(message="server error")),
    OutputLengthFailure(data=NoData()),
    StructuredOutputFailure(data=StructuredOutputData(message="timeout", retries=2)),
]


@pytest.mark.parametrize("failure", NEVER, ids=lambda failure: type(failure).__name__)
def test_some_failures_are_never_tried_again_whatever_they_say(failure: Failure) -> None:
    assert retryable(failure) is None


@pytest.mark.parametrize(
    "text",
    [
        *(f"error {status} from upstream" for status in (429, 500, 502, 503, 504, 524)),
        "Too Many Requests",
        "rate limit",
        "rate-limit",
        "rate_limit",
        "rate increased too quickly",
        "resource exhausted",
        "RESOURCE_EXHAUSTED",
        "overloaded",
        "service unavailable",
        "service_unavailable",
        "service-unavailable",
        "server error",
        "server_error",
        "internal error",
        "internal-error",
        "internal server error",
        "provider returned error",
        "provider_returned_error",
        "EAI_AGAIN",
        "ECONNREFUSED",
        "ECONNRESET",
        "ENOTFOUND",
        "ETIMEDOUT",
        "getaddrinfo failed",
        "connection error",
        "connection lost",
        "connection refused",
        "socket hang up",
        "socket connection was closed",
        "reset before headers",
        "upstream connect error",
        "network error",
        "fetch failed",
        "failed to fetch",
        "terminated",
        "timeout",
        "connection timeout",
        "network timed out",
        "read time out",
        "request timed out",
        "response timeout",
        "stream timeout",
        "please retry your request",
        "try your request again",
    ],
)
def test_these_are_the_words_of_a_trouble_that_passes(text: str) -> None:
    assert is_transient(text)


def test_a_number_in_the_words_counts_only_where_the_status_is_not_known() -> None:
    assert is_transient("error 503")
    assert not is_transient("error 503", has_status=True)
    assert is_transient("rate limit", has_status=True)


@pytest.mark.parametrize(
    "text", ["5000 tokens", "at 15:00:500x", "v1.5003", "timeout is too small", "my timeout", "connection", "limit", ""]
)
def test_a_similar_text_is_no_transient_failure(text: str) -> None:
    assert not is_transient(text)


@pytest.mark.parametrize(
    ("attempt", "least", "most"),
    [(1, 2000, 2500), (2, 4000, 5000), (3, 8000, 10000), (4, 16000, 20000), (5, 30000, 30000)],
)
def test_without_headers_a_wait_doubles_up_to_thirty_seconds(attempt: int, least: int, most: int) -> None:
    failure = api(is_retryable=True)
    assert delay(attempt, failure, rand=0.0, now=NOW) == least
    assert least <= delay(attempt, failure, rand=0.999, now=NOW) <= most


@pytest.mark.parametrize(("attempt", "least", "most"), [(4, 16000, 20000), (5, 32000, 40000)])
def test_with_headers_that_say_nothing_a_wait_is_not_capped(attempt: int, least: int, most: int) -> None:
    failure = api(response_headers={"date": "now"})
    assert delay(attempt, failure, rand=0.0, now=NOW) == least
    assert least < delay(attempt, failure, rand=0.999, now=NOW) <= most


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"retry-after-ms": "1500"}, 1500),
        ({"Retry-After-Ms": "1500.2"}, 1501),
        ({"retry-after-ms": "0"}, 0),
        ({"retry-after-ms": "700", "retry-after": "9"}, 700),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9000),
        ({"retry-after": "7"}, 7000),
        ({"retry-after": "1e306"}, WAIT_MS_MAX),
        ({"retry-after-ms": "1e306"}, WAIT_MS_MAX),
        ({"retry-after": "0.0015"}, 2),
        ({"Retry-After": "Fri, 15 Jan 2027 08:00:30 GMT"}, 30_000),
        ({"retry-after": "Fri, 15 Jan 2027 07:59:00 GMT"}, 2000),
        ({"retry-after": "whenever"}, 2000),
        ({"retry-after": "-5"}, 2000),
        ({"retry-after": "nan"}, 2000),
        ({"retry-after-ms": "inf"}, 2000),
        ({"retry-after": "9" * 30}, WAIT_MS_MAX),
        ({"retry-after-ms": "9" * 30}, WAIT_MS_MAX),
    ],
)
def test_a_provider_s_own_hint_wins_if_it_makes_sense(headers: dict[str, str], expected: int) -> None:
    assert delay(1, api(response_headers=headers), rand=0.0, now=NOW) == expected


def test_a_wait_is_never_longer_than_the_configuration_allows() -> None:
    hinted = api(response_headers={"retry-after": "3600"})
    assert delay(1, hinted, rand=0.0, now=NOW, wait_max=60_000) == 60_000
    assert delay(3, api(), rand=0.0, now=NOW, wait_max=5_000) == 5_000


def test_a_failure_of_another_kind_waits_as_one_without_headers() -> None:
    assert delay(9, unknown("terminated"), rand=0.5, now=NOW) == 30_000


@given(
    attempt=st.integers(1, 10_000),
    rand=st.floats(0, 1, exclude_max=True),
    hint=st.text(max_size=40),
    name=st.sampled_from(["retry-after", "retry-after-ms"]),
)
def test_whatever_a_header_says_the_wait_is_a_bounded_number(attempt: int, rand: float, hint: str, name: str) -> None:
    assert 0 <= delay(attempt, api(response_headers={name: hint}), rand=rand, now=NOW) <= WAIT_MS_MAX


def test_limits_of_an_account_are_explained() -> None:
    free = api(is_retryable=True, response_body='{"error":{"type":"FreeUsageLimitError"}}')
    assert "free use" in str(retryable(free))
    body = '{"error":{"type":"GoUsageLimitError","metadata":{"limitName":"weekly","workspace":"w1"}}}'
    go = api(is_retryable=True, response_body=body, response_headers={"Retry-After": "93600"})
    assert retryable(go) == "The weekly limit is reached in workspace w1. It is lifted in 1 day 2 hours."
    bare = api(is_retryable=True, response_body="GoUsageLimitError")
    assert retryable(bare) == "A limit of the account is reached."


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "less than a minute"),
        (59, "less than a minute"),
        (60, "1 minute"),
        (3600, "1 hour 0 minutes"),
        (7260, "2 hours 1 minute"),
        (176_400, "2 days 1 hour"),
    ],
)
def test_a_wait_is_said_in_words(seconds: float, words: str) -> None:
    assert humanised(seconds) == words

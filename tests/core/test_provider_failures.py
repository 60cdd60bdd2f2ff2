"""What a provider's error means: status, body, headers, and errors inside streams."""

import pytest

from turnkeeper.core.failures import http_failure, is_overflow, is_retryable_status, stream_failure
from turnkeeper.model.failure import (
    ApiData,
    ApiFailure,
    AuthData,
    AuthFailure,
    ContentFilterFailure,
    MessageData,
    OverflowData,
    OverflowFailure,
)

OVERFLOWS = (
    "prompt is too long: 213462 tokens > 200000 maximum",
    "request_too_large",
    "Input is too long for requested model.",
    "Your input exceeds the context window of this model.",
    "This request exceeds the model's maximum context length of 131,072 tokens",
    "exceeds maximum context length (8192)",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "tokens in request more than max tokens allowed",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 128000 tokens. However, you requested about 200000.",
    "exceeds the maximum allowed input length of 32768 tokens",
    "The input (40000 tokens) is longer than the model's context length (32768 tokens).",
    "prompt token count of 130000 exceeds the limit of 128000",
    "the request exceeds the available context size, try increasing it",
    "The number of tokens to keep is greater than the context length",
    "invalid params, context window exceeds limit (2013)",
    "Your request exceeded model token limit: 262144",
    "context_length_exceeded",
    "Context length exceeded",
    "413 Request Entity Too Large",
    "the model's context length is only 8192 tokens",
    "The input length 9000 exceeds the configured context length",
    "prompt too long; exceeded max context length by 4 tokens",
    "prompt too long; exceeded context length",
    "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
    "prompt has 9000 tokens, but the configured context size is 8192 tokens",
    "model_context_window_exceeded",
    "Too many tokens in the prompt",
    "Token limit exceeded",
    "400 (no body)",
    "413 status code (no body)",
)

NOT_OVERFLOWS = (
    "Throttling error: Too many tokens, please wait before trying again.",
    "Service unavailable: prompt is too long",
    "Rate limit reached: too many tokens per minute",
    "Too many requests: token limit exceeded",
    "The model does not exist",
    "exceeds the limit of your plan",
    "maximum context length is a good idea",
    "500 (no body)",
    "",
)


@pytest.mark.parametrize("text", OVERFLOWS)
def test_these_words_mean_that_the_context_window_is_full(text: str) -> None:
    assert is_overflow(text)
    assert is_overflow(text.upper())


@pytest.mark.parametrize("text", NOT_OVERFLOWS)
def test_these_words_do_not_mean_that_the_context_window_is_full(text: str) -> None:
    assert not is_overflow(text)


@pytest.mark.parametrize(
    ("status", "provider_id", "expected"),
    [
        (400, "anthropic", False),
        (403, "anthropic", False),
        (404, "anthropic", False),
        (404, "openai", True),
        (404, "openai-compatible-thing", True),
        (408, "x", True),
        (409, "x", True),
        (422, "x", False),
        (429, "x", True),
        (500, "x", True),
        (529, "x", True),
    ],
)
def test_a_status_says_whether_another_try_may_help(status: int, provider_id: str, expected: bool) -> None:
    assert is_retryable_status(status, provider_id) is expected


def test_an_api_failure_has_all_that_is_known() -> None:
    body = '{"error":{"message":"Rate limit reached","type":"tokens","code":"rate_limit_exceeded"}}'
    assert http_failure(429, {"retry-after": "3"}, body, provider_id="openai", url="https://a/v1") == ApiFailure(
        data=ApiData(
            message="Rate limit reached",
            status_code=429,
            is_retryable=True,
            response_headers={"retry-after": "3"},
            response_body=body,
            metadata={"url": "https://a/v1"},
        )
    )


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (400, '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 2 > 1"}}'),
        (413, ""),
        (413, '{"error":{"type":"request_too_large","message":"Request exceeds the maximum size"}}'),
        (400, '{"error":{"message":"no","code":"context_length_exceeded"}}'),
        (500, '{"error":"context length exceeded"}'),
    ],
)
def test_an_overflow_is_known_by_its_words_its_status_or_its_code(status: int, body: str) -> None:
    failure = http_failure(status, {}, body)
    assert isinstance(failure, OverflowFailure)
    assert failure.data.response_body == (body or None)


def test_too_many_tokens_with_429_is_a_rate_and_no_overflow() -> None:
    failure = http_failure(429, {}, '{"message":"Too many tokens, please wait before trying again."}')
    assert isinstance(failure, ApiFailure)
    assert failure.data.is_retryable


def test_a_refused_key_is_an_auth_failure() -> None:
    body = '{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}'
    expected = AuthFailure(data=AuthData(provider_id="anthropic", message="invalid x-api-key"))
    assert http_failure(401, {}, body, provider_id="anthropic") == expected


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (500, "", "Internal Server Error"),
        (599, "", "Status 599"),
        (400, '{"error":{"message":"  bad  ","type":"x"}}', "bad"),
        (400, '{"message":"the thing is wrong"}', "the thing is wrong"),
        (400, '{"error":"wrong"}', "Bad Request: wrong"),
        (400, '{"detail":"Not quite right"}', "Not quite right"),
        (400, "plain words", "Bad Request: plain words"),
        (
            400,
            '[{"error":{"code":400,"message":"API key not valid","status":"INVALID_ARGUMENT"}}]',
            "API key not valid",
        ),
        (400, '{"error":{"message":"{\\"error\\":{\\"message\\":\\"the inner one\\"}}"}}', "the inner one"),
        (502, "<html><body>Bad gateway</body></html>", "Bad Gateway"),
        (400, '{"other":1}', 'Bad Request: {"other":1}'),
    ],
)
def test_the_message_is_what_the_provider_says_or_what_the_status_means(status: int, body: str, message: str) -> None:
    assert http_failure(status, {}, body).data.message == message  # type: ignore[union-attr]


@pytest.mark.parametrize("status", [401, 403])
def test_a_web_page_in_place_of_the_api_is_explained(status: int) -> None:
    message = http_failure(status, {}, "<!DOCTYPE html><html>").data.message  # type: ignore[union-attr]
    assert "web page" in message
    assert "base URL" in message


@pytest.mark.parametrize(
    ("code", "is_retryable"),
    [
        ("insufficient_quota", False),
        ("usage_not_included", False),
        ("invalid_prompt", False),
        ("server_is_overloaded", True),
        ("server_error", True),
        ("rate_limit_exceeded", True),
        ("something_new", False),
    ],
)
def test_a_code_inside_a_stream_says_whether_another_try_may_help(code: str, is_retryable: bool) -> None:
    failure = stream_failure({"type": "error", "code": code, "message": "Words."})
    assert isinstance(failure, ApiFailure)
    assert failure.data.is_retryable is is_retryable
    assert failure.data.metadata == {"code": code}


@pytest.mark.parametrize("kind", ["overloaded_error", "api_error", "rate_limit_error", "timeout_error"])
def test_anthropic_s_passing_troubles_are_worth_another_try(kind: str) -> None:
    failure = stream_failure({"type": "error", "error": {"type": kind, "message": "Words."}})
    assert isinstance(failure, ApiFailure)
    assert (failure.data.message, failure.data.is_retryable) == (f"{kind}: Words.", True)


@pytest.mark.parametrize(
    "error",
    [
        {"type": "error", "error": {"code": "context_length_exceeded", "message": "Too long."}},
        {"type": "error", "message": '{"error":{"code":"context_length_exceeded","message":"Too long."}}'},
        {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 2 > 1"}},
        '{"error":{"code":"context_length_exceeded","message":"Too long."}}',
    ],
)
def test_an_overflow_inside_a_stream_is_known(error: object) -> None:
    assert isinstance(stream_failure(error), OverflowFailure)


def test_a_number_as_code_inside_a_stream_is_a_status_without_headers() -> None:
    failure = stream_failure({"error": {"code": 502, "message": "Upstream broke"}})
    body = '{"error":{"code":502,"message":"Upstream broke"}}'
    data = ApiData(message="Upstream broke", status_code=502, is_retryable=True, response_body=body)
    assert failure == ApiFailure(data=data)


def test_a_refused_key_and_refused_content_inside_a_stream_are_known() -> None:
    auth = stream_failure({"error": {"type": "authentication_error", "message": "no"}}, provider_id="p")
    assert auth == AuthFailure(data=AuthData(provider_id="p", message="no"))
    refused = stream_failure({"error": {"code": "content_filter", "message": "no"}})
    assert refused == ContentFilterFailure(data=MessageData(message="no"))


@pytest.mark.parametrize("error", [None, [], {}, {"error": {}}, 7, {"error": []}])
def test_an_error_that_says_nothing_is_still_an_api_failure(error: object) -> None:
    failure = stream_failure(error)
    assert isinstance(failure, ApiFailure)
    assert failure.data.message == "The provider reported an error without a word about it."


def test_an_overflow_keeps_what_the_provider_said() -> None:
    body = '{"error":{"message":"prompt is too long","type":"x"}}'
    expected = OverflowFailure(data=OverflowData(message="prompt is too long", response_body=body))
    assert http_failure(400, {}, body) == expected

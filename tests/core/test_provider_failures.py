"""What a provider's error means: status, body, headers, and errors inside streams."""

import pytest
from narrow import message_of

from turnkeeper.core.error_phrases import is_overflow
from turnkeeper.core.failures import http_failure, is_retryable_status, refusal, stream_failure
from turnkeeper.core.retry import retryable
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
    "input length and `max_tokens` exceed context limit: 180000 + 32000 > 200000, decrease input length",
    "max_tokens must be at least 1, got -200.",
    "Context size has been exceeded.",
    "Requested tokens (2300) exceed context window of 2048",
    "Trying to keep the first 10000 tokens when context the overflows. However, the model is loaded with context length"
    " of only 4096 tokens, which is not enough.",
    "The number of tokens to keep from the initial prompt is greater than the context length (n_keep: 13000>= 4096)",
    "Prompt exceeds max length",
    "Input length 204000 exceeds the maximum length 202752",
    "<400> InternalError.Algo.InvalidParameter: Range of input length should be [1, 983616]",
    "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 8800 `inputs` tokens",
    "Unable to submit request because the input token count is 1250000 but model only supports up to 1048576.",
    "400 (no body)",
    "413 status code (no body)",
    "Too much media: 0 document pages + 103 images > 100",
    "too many images and documents: 120 + 0 > 100",
    "Too many images in request. Max is 8.",
    "The request contains too many images: 11 images were provided, but the model supports a maximum of 10 images.",
    "At most 5 image(s) may be provided in one request.",
    "request contains 54 images, exceeding the maximum of 50 allowed per request",
    "Request payload size exceeds the limit: 20971520 bytes.",
    "Maximum request body size 1048576 exceeded, actual body size 1056562",
)

NOT_OVERFLOWS = (
    "Throttling error: Too many tokens, please wait before trying again.",
    "Service unavailable: prompt is too long",
    "Rate limit reached: too many tokens per minute",
    "Too many requests: token limit exceeded",
    "The model does not exist",
    "exceeds the limit of your plan",
    "At most 5 requests may be sent at once",
    "messages.19.content.27.image.source.base64.data: At least one of the image dimensions exceed max allowed size for"
    " many-image requests: 2000 pixels",
    "maximum context length is a good idea",
    "500 (no body)",
    "max_tokens must be at least 1, got 0",
    "Range of top_p should be [0, 1]",
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


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            404,
            '{"error":{"message":"The model `gpt-9` does not exist","code":"model_not_found"}}',
        ),
        (
            429,
            '{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}',
        ),
        (
            429,
            '{"error":{"message":"Request too large for gpt-4o on tokens per min (TPM): Limit 30000",'
            '"type":"tokens","code":"rate_limit_exceeded"}}',
        ),
        (
            400,
            '{"error":{"type":"invalid_request_error","message":"messages.429.content.0: unexpected `tool_use_id`"}}',
        ),
        (400, '{"message":"the value 500 is not allowed"}'),
        (400, '{"message":"wrong","input":"the user wrote: overloaded, rate limit, 503"}'),
        (402, '{"error":{"message":"This request requires more credits","code":402}}'),
    ],
)
def test_what_another_request_would_get_again_is_not_tried_again(status: int, body: str) -> None:
    failure = http_failure(status, {}, body, provider_id="openai")
    assert isinstance(failure, ApiFailure)
    assert (failure.data.is_retryable, retryable(failure)) == (False, None)


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (
            429,
            '{"error":{"message":"Rate limit reached on tokens per day: Limit 100000","code":"rate_limit_exceeded"}}',
        ),
        (400, '{"error":{"message":"bad call","type":"invalid_request_error","code":"tool_use_failed"}}'),
        (400, '{"error":"upstream connect error or disconnect/reset before headers"}'),
        (403, '{"message":"You have exceeded a secondary rate limit"}'),
        (404, ""),
        (503, "<html>busy</html>"),
    ],
)
def test_what_may_pass_is_tried_again(status: int, body: str) -> None:
    assert retryable(http_failure(status, {}, body, provider_id="openai")) is not None


@pytest.mark.parametrize(
    ("error", "is_worth_it"),
    [
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "messages.429: wrong"}}, False),
        ({"error": {"message": "error 503 from upstream"}}, True),
        ({"error": {"message": "connection lost"}}, True),
        ({"error": {"code": "tool_use_failed", "type": "invalid_request_error", "message": "bad call"}}, True),
        ({"error": {"code": "insufficient_quota", "message": "rate limit"}}, False),
        ({"error": {"code": "invalid_prompt", "message": "500"}}, False),
    ],
)
def test_an_error_inside_a_stream_is_judged_by_its_code_before_its_words(error: object, is_worth_it: bool) -> None:
    assert (retryable(stream_failure(error)) is not None) is is_worth_it


AZURE_FILTER = (
    '{"error":{"message":"The response was filtered due to the prompt triggering our policy.","type":null,'
    '"code":"content_filter","status":400,"innererror":{"code":"ResponsibleAIPolicyViolation"}}}'
)


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (400, AZURE_FILTER, "The response was filtered due to the prompt triggering our policy."),
        (400, '{"error":{"message":"Blocked.","innererror":{"code":"ResponsibleAIPolicyViolation"}}}', "Blocked."),
        (400, '{"error":{"message":"Unsafe input.","code":"data_inspection_failed"}}', "Unsafe input."),
        (403, '{"error":{"message":"Flagged.","code":403,"metadata":{"flagged_input":"..."}}}', "Flagged."),
    ],
)
def test_a_content_filter_is_known_by_its_code_whatever_the_status(status: int, body: str, message: str) -> None:
    assert http_failure(status, {}, body) == ContentFilterFailure(data=MessageData(message=message))


@pytest.mark.parametrize(
    "error",
    [
        '{"code":400,"message":"No key.","status":"INVALID_ARGUMENT","details":[7,{"reason":"API_KEY_INVALID"}]}',
        '{"message":"No key.","code":"invalid_api_key"}',
        '{"message":"No key.","status":"UNAUTHENTICATED"}',
    ],
)
def test_a_bad_key_is_known_by_its_code_whatever_the_status(error: str) -> None:
    failure = http_failure(400, {}, f'{{"error":{error}}}', provider_id="google")
    assert failure == AuthFailure(data=AuthData(provider_id="google", message="No key."))


RELAYED = (
    '{{"error":{{"message":"Provider returned error","code":{},"metadata":{{"provider_name":"Azure","raw":{}}}}}}}'
)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ('"m is temporarily rate-limited upstream"', "Azure: m is temporarily rate-limited upstream"),
        ('"{\\"error\\":{\\"message\\":\\"Try later.\\"}}"', "Azure: Try later."),
        ('""', "Provider returned error"),
        ("7", "Provider returned error"),
    ],
)
def test_a_gateway_s_message_names_the_host_behind_it_and_its_reason(raw: str, message: str) -> None:
    failure = http_failure(429, {}, RELAYED.format(429, raw))
    assert isinstance(failure, ApiFailure)
    assert (failure.data.message, failure.data.is_retryable) == (message, True)


def test_what_a_host_behind_a_gateway_says_decides_what_kind_of_failure_it_is() -> None:
    too_long = r'"{\"error\":{\"message\":\"prompt is too long: 2 > 1\"}}"'
    assert isinstance(http_failure(400, {}, RELAYED.format(400, too_long)), OverflowFailure)
    refused = r'"{\"error\":{\"message\":\"No.\",\"code\":\"content_filter\"}}"'
    assert http_failure(400, {}, RELAYED.format(400, refused)) == ContentFilterFailure(
        data=MessageData(message="Azure: No.")
    )


def test_a_message_that_only_names_a_model_is_made_a_sentence() -> None:
    body = '{"type":"error","error":{"type":"not_found_error","message":"model: claude-x"}}'
    failure = http_failure(404, {}, body, provider_id="anthropic")
    assert isinstance(failure, ApiFailure)
    assert failure.data.message == "The provider does not have the model 'claude-x', or this key may not use it."


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        (None, "the provider refused the content"),
        ({"anthropic": {"stopReason": "refusal"}}, "the provider refused the content"),
        (
            {"anthropic": {"stopDetails": {"category": "cyber", "explanation": "Blocked under the policy."}}},
            "the provider refused the content: Blocked under the policy.",
        ),
        ({"anthropic": {"stopDetails": {"category": "cyber"}}}, "the provider refused the content: cyber"),
        (
            {"google": {"finishReason": "SPII", "finishMessage": "An address."}},
            "the provider refused the content: An address.",
        ),
        ({"google": {"blockReason": "PROHIBITED_CONTENT"}}, "the provider refused the content: PROHIBITED_CONTENT"),
        ({"google": {"finishReason": "MODEL_ARMOR"}}, "the provider refused the content: MODEL_ARMOR"),
        ({"anthropic": {"stopDetails": [7], "finishMessage": 7}, "x": 7}, "the provider refused the content"),
    ],
)
def test_a_refusal_says_why_if_the_provider_did(metadata: dict[str, object] | None, message: str) -> None:
    assert refusal(metadata) == ContentFilterFailure(data=MessageData(message=message))


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
    assert message_of(http_failure(status, {}, body)) == message


@pytest.mark.parametrize("status", [401, 403])
def test_a_web_page_in_place_of_the_api_is_explained(status: int) -> None:
    message = message_of(http_failure(status, {}, "<!DOCTYPE html><html>"))
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
        ("9" * 5000, False),
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
    assert failure.data.message == "The provider reported an error and gave no reason."


def test_an_overflow_keeps_what_the_provider_said() -> None:
    body = '{"error":{"message":"prompt is too long","type":"x"}}'
    expected = OverflowFailure(data=OverflowData(message="prompt is too long", response_body=body))
    assert http_failure(400, {}, body) == expected

"""Failures of providers: what a status, a body or an error inside a stream means, as a typed Failure."""

import re
from collections.abc import Mapping
from http import HTTPStatus

import msgspec

from turnkeeper.model.failure import (
    ApiData,
    ApiFailure,
    AuthData,
    AuthFailure,
    Failure,
    MessageData,
    OverflowData,
    OverflowFailure,
)
from turnkeeper.model.failure import ContentFilterFailure as Filtered
from turnkeeper.model.value import encode

DETAIL_CHARS_MAX = 1000
"""How much of a body a message quotes."""

_NUMBER = r"[\d,]+"
_OVERFLOW = tuple(
    re.compile(pattern.replace("#", _NUMBER), re.IGNORECASE | re.DOTALL)
    for pattern in (
        r"prompt is too long",
        r"request_too_large",
        r"input is too long for requested model",
        r"exceeds the context window",
        r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of # tokens|\s?\(#\))",
        r"input token count.{0,200}?exceeds the maximum",
        r"tokens in request more than max tokens allowed",
        r"maximum prompt length is #",
        r"reduce the length of the messages",
        r"maximum context length is # tokens",
        r"exceeds (?:the )?maximum allowed input length of # tokens",
        r"input \(# tokens\) is longer than the model'?s context length \(# tokens\)",
        r"exceeds the limit of #",
        r"exceeds the available context size",
        r"greater than the context length",
        r"context window exceeds limit",
        r"exceeded model token limit",
        r"context[_ ]length[_ ]exceeded",
        r"request entity too large",
        r"context length is only # tokens",
        r"input length.{0,200}?exceeds.{0,200}?context length",
        r"prompt too long; exceeded (?:max )?context length",
        r"too large for model with # maximum context length",
        r"prompt has # tokens, but the configured context size is # tokens",
        r"model_context_window_exceeded",
        r"too many tokens",
        r"token limit exceeded",
        r"\A4(?:00|13)\s*(?:status code)?\s*\(no body\)",
    )
)
_NOT_OVERFLOW = re.compile(r"\A(?:throttling error:|service unavailable:)|rate limit|too many requests", re.IGNORECASE)

_HTML = re.compile(r"\A\s*<(?:!doctype|html|\?xml)", re.IGNORECASE)
_HINTS = {
    401: "the answer is a web page, not the API: a gateway wants you to sign in. Check the key and the base URL.",
    403: "the answer is a web page, not the API: a gateway or firewall refused. Check access, region and the base URL.",
}

_QUOTA = "The provider's quota is used up. Check the plan and the billing details."
_PLAN = "This plan does not include the model. Choose another model, or upgrade the plan."
_RETRYABLE_CODES = frozenset(
    {
        "server_is_overloaded",
        "server_error",
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "timeout_error",
        "UNAVAILABLE",
        "RESOURCE_EXHAUSTED",
        "INTERNAL",
        "DEADLINE_EXCEEDED",
    }
)
_FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "bio_policy", "image_content_policy_violation"}
)


class Fault(msgspec.Struct):
    """An error object as providers write it, in any of their shapes."""

    message: str = ""
    code: str = ""
    type: str = ""

    @property
    def text(self) -> str:
        """``code: message``, or what there is of it."""
        return ": ".join(word for word in (self.code or self.type, self.message) if word)


def is_overflow(text: str) -> bool:
    """Whether these words of a provider mean that the request was larger than the context window."""
    return not _NOT_OVERFLOW.search(text) and any(pattern.search(text) for pattern in _OVERFLOW)


def http_failure(
    status: int, headers: Mapping[str, str] | None, body: str, *, provider_id: str = "", url: str | None = None
) -> Failure:
    """What an answer with an error status means. Without headers it was a code inside a stream."""
    fault = read_fault(_json(body))
    message = _message(status, body, fault)
    if fault.code == "context_length_exceeded" or _is_overflow_answer(status, message, fault):
        return OverflowFailure(data=OverflowData(message=message, response_body=body or None))
    if status == HTTPStatus.UNAUTHORIZED:
        return AuthFailure(data=AuthData(provider_id=provider_id, message=message))
    return ApiFailure(
        data=ApiData(
            message=message,
            status_code=status,
            is_retryable=is_retryable_status(status, provider_id),
            response_headers=dict(headers) if headers is not None else None,
            response_body=body or None,
            metadata={"url": url} if url else None,
        )
    )


def is_retryable_status(status: int, provider_id: str = "") -> bool:
    """Whether the status alone says that another try may help. OpenAI also answers 404 for a moment."""
    if status in (408, 409, 429) or status >= 500:
        return True
    return status == HTTPStatus.NOT_FOUND and provider_id.startswith("openai")


def stream_failure(error: object, *, provider_id: str = "") -> Failure:
    """What an error object inside a stream means: ``{"type": "error", ...}``, in any provider's shape."""
    fault = read_fault(error)
    body = encode(error).decode()
    if fault.code.isdecimal() and 400 <= int(fault.code) < 600:
        return http_failure(int(fault.code), None, body, provider_id=provider_id)
    if any(is_overflow(word) for word in (fault.message, fault.code, fault.type)):
        return OverflowFailure(data=OverflowData(message=fault.message or fault.code, response_body=body))
    names = {fault.code, fault.type}
    if "authentication_error" in names:
        return AuthFailure(data=AuthData(provider_id=provider_id, message=fault.message or fault.text))
    if names & _FILTER_CODES:
        return Filtered(data=MessageData(message=fault.message or fault.text))
    message = {"insufficient_quota": _QUOTA, "usage_not_included": _PLAN}.get(fault.code, fault.text)
    return broken(
        message or "The provider reported an error without a word about it.",
        code=fault.code or fault.type,
        is_retryable=bool(names & _RETRYABLE_CODES),
        body=body,
    )


def broken(message: str, *, code: str, is_retryable: bool, body: str | None = None, **metadata: str) -> ApiFailure:
    """A failure without a status: a network that broke, a stream that makes no sense."""
    named = {"code": code, **metadata} if code else metadata
    return ApiFailure(
        data=ApiData(message=message, is_retryable=is_retryable, response_body=body, metadata=named or None)
    )


def read_fault(error: object) -> Fault:
    """The message, code and type of an error object; it may be nested, in a list, or JSON inside a message."""
    if isinstance(error, list):
        error = error[0] if error else None
    if isinstance(error, str):
        inner = _json(error)
        return read_fault(inner) if isinstance(inner, dict) else Fault(message=error)
    if not isinstance(error, dict):
        return Fault()
    nested = error.get("error")
    if isinstance(nested, dict | list) and nested:
        return read_fault(nested)
    message = next((v for k in ("message", "error", "detail") if isinstance(v := error.get(k), str) and v), "")
    inner = _json(message) if message.startswith("{") else None
    if isinstance(inner, dict) and (found := read_fault(inner)).message:
        return found
    kind = error.get("type") if error.get("type") != "error" else None
    code = error.get("code")
    return Fault(
        message=message,
        code=str(code) if isinstance(code, str | int) and not isinstance(code, bool) else "",
        type=str(kind or error.get("status") or ""),
    )


def _is_overflow_answer(status: int, message: str, fault: Fault) -> bool:
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return True
    # «Too many tokens» with 429 is a rate: waiting helps, and a smaller request may not.
    return status != HTTPStatus.TOO_MANY_REQUESTS and any(is_overflow(word) for word in (message, fault.type))


def _message(status: int, body: str, fault: Fault) -> str:
    try:
        phrase = HTTPStatus(status).phrase
    except ValueError:
        phrase = f"Status {status}"
    if not body.strip():
        return phrase
    if _HTML.match(body):
        return f"{phrase}: {_HINTS[status]}" if status in _HINTS else phrase
    if fault.message:
        # An error object's message stands for itself; a bare word needs the status to be understood.
        return (
            fault.message.strip() if fault.code or fault.type or " " in fault.message else f"{phrase}: {fault.message}"
        )
    return f"{phrase}: {body.strip()[:DETAIL_CHARS_MAX]}"


def _json(text: str) -> object:
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None

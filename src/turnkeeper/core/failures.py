"""Failures of providers: an HTTP status, a body or an error inside a stream as a typed Failure."""

import re
from collections.abc import Iterator, Mapping
from http import HTTPStatus

import msgspec

from turnkeeper.core.error_phrases import is_overflow, is_transient
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
from turnkeeper.model.stream import FinishStep
from turnkeeper.model.value import encode

DETAIL_CHARS_MAX = 1000
"""Characters of a body that a message quotes."""

_HTML = re.compile(r"\A\s*<(?:!doctype|html|\?xml)", re.IGNORECASE)
_HINTS = {
    401: "the answer is a web page, not the API: a gateway wants you to sign in. Check the key and the base URL.",
    403: "the answer is a web page, not the API: a gateway or firewall refused. Check access, region and the base URL.",
}

_QUOTA = "The provider's quota is used up. Check the plan and the billing details."
_PLAN = "This plan does not include the model. Choose another model, or upgrade the plan."
_TRANSIENT = frozenset(
    {
        "server_is_overloaded",
        "server_error",
        "overloaded_error",
        "api_error",
        "rate_limit_error",
        "rate_limit_exceeded",
        "timeout_error",
        "tool_use_failed",  # The model wrote an invalid call, and the next answer usually has a valid one.
        "UNAVAILABLE",
        "RESOURCE_EXHAUSTED",
        "INTERNAL",
        "DEADLINE_EXCEEDED",
    }
)
_PERMANENT = frozenset(
    {
        "insufficient_quota",
        "usage_not_included",
        "billing_hard_limit_reached",
        "billing_not_active",
        "invalid_prompt",
        "model_not_found",
    }
)
"""Codes of final failures: another request would get the same code. The HTTP status is not considered."""
_INVALID = frozenset(
    {
        "invalid_request_error",
        "not_found_error",
        "permission_error",
        "INVALID_ARGUMENT",
        "NOT_FOUND",
        "PERMISSION_DENIED",
        "FAILED_PRECONDITION",
    }
)
"""Error types that are final unless the status is retryable."""
_OVERFLOW = frozenset({"context_length_exceeded", "exceed_context_size_error", "1261"})
"""Codes of a request that is larger than the context window; 1261 is Z.AI's."""
_AUTH = frozenset({"authentication_error", "invalid_api_key", "API_KEY_INVALID", "UNAUTHENTICATED"})
_FILTER = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "image_content_policy_violation",
        "bio_policy",
        "data_inspection_failed",
        "flagged_input",
        "ResponsibleAIPolicyViolation",
        "MODEL_ARMOR",
    }
)
_TOO_LARGE_FOR_RATE = re.compile(r"request too large for .{0,200}?per (?:min|day)", re.IGNORECASE | re.DOTALL)
_GENERIC = re.compile(r"provider returned error\.?", re.IGNORECASE)
_ONLY_MODEL = re.compile(r"model: (\S+)")


class Fault(msgspec.Struct):
    """An error object of a provider. ``reasons`` are the codes of nested causes."""

    message: str = ""
    code: str = ""
    type: str = ""
    reasons: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """``code: message``, without an empty half."""
        return ": ".join(word for word in (self.code or self.type, self.message) if word)

    @property
    def names(self) -> frozenset[str]:
        """All codes of the error: code, type and reasons."""
        return frozenset((self.code, self.type, *self.reasons)) - {""}


def http_failure(
    status: int, headers: Mapping[str, str] | None, body: str, *, provider_id: str = "", url: str | None = None
) -> Failure:
    """The failure of a response with an error status. ``headers`` is None for a code inside a stream."""
    fault = read_fault(json_or_none(body))
    message = _message(status, body, fault)
    if fault.names & _OVERFLOW or _is_overflow_answer(status, message, fault):
        return OverflowFailure(data=OverflowData(message=message, response_body=body or None))
    if status == HTTPStatus.UNAUTHORIZED or fault.names & _AUTH:
        return AuthFailure(data=AuthData(provider_id=provider_id, message=message))
    if fault.names & _FILTER:
        return Filtered(data=MessageData(message=message))
    return ApiFailure(
        data=ApiData(
            message=message,
            status_code=status,
            is_retryable=_is_retryable(fault, message, status, provider_id),
            response_headers=dict(headers) if headers is not None else None,
            response_body=body or None,
            metadata={"url": url} if url else None,
        )
    )


def _is_retryable(fault: Fault, message: str, status: int | None = None, provider_id: str = "") -> bool:
    """Whether another request may succeed: by the code, else the status, else the type, else the message."""
    if fault.names & _PERMANENT or _TOO_LARGE_FOR_RATE.search(message):
        return False
    if fault.names & _TRANSIENT or (status is not None and is_retryable_status(status, provider_id)):
        return True
    return not fault.names & _INVALID and is_transient(message, has_status=status is not None)


def is_retryable_status(status: int, provider_id: str = "") -> bool:
    """Whether a status is retryable. OpenAI may also answer 404 for a moment."""
    if status in (408, 409, 429) or status >= 500:
        return True
    return status == HTTPStatus.NOT_FOUND and provider_id.startswith("openai")


def stream_failure(error: object, *, provider_id: str = "") -> Failure:
    """The failure of an error object inside a stream: ``{"type": "error", ...}``, in any provider's shape."""
    fault = read_fault(error)
    body = encode(error).decode()
    if re.fullmatch("[45][0-9]{2}", fault.code):
        return http_failure(int(fault.code), None, body, provider_id=provider_id)
    if fault.names & _OVERFLOW or any(is_overflow(word) for word in (fault.message, fault.code, fault.type)):
        return OverflowFailure(data=OverflowData(message=fault.message or fault.code, response_body=body))
    if fault.names & _AUTH:
        return AuthFailure(data=AuthData(provider_id=provider_id, message=fault.message or fault.text))
    if fault.names & _FILTER:
        return Filtered(data=MessageData(message=fault.message or fault.text))
    message = {"insufficient_quota": _QUOTA, "usage_not_included": _PLAN}.get(fault.code, fault.text)
    return broken(
        message or "The provider reported an error and gave no reason.",
        code=fault.code or fault.type,
        is_retryable=_is_retryable(fault, fault.message),
        body=body,
    )


def refusal(metadata: Mapping[str, object] | None) -> Filtered:
    """The failure of an answer that ended with ``content-filter``, with the provider's explanation if it gave one."""
    said = [value for part in (metadata or {}).values() if isinstance(part, Mapping) for value in _reasons_given(part)]
    return Filtered(data=MessageData(message=": ".join(("the provider refused the content", *said[:1]))))


def _reasons_given(said: Mapping[str, object]) -> Iterator[str]:
    """Explanations of a refusal in a provider's metadata, the most specific first."""
    details = said.get("stopDetails")
    given = (details.get("explanation"), details.get("category")) if isinstance(details, Mapping) else ()
    for value in (*given, said.get("finishMessage"), said.get("blockReason"), said.get("finishReason")):
        if isinstance(value, str) and value:
            yield value


def finish_failure(finish: FinishStep) -> Failure | None:
    """The failure of an answer whose finish reason is ``error``; None for any other reason."""
    if finish.reason != "error":
        return None
    message = finish.message or "The provider ended its answer with an error and gave no reason."
    return broken(message, code="finish_error", is_retryable=True)


def broken(message: str, *, code: str, is_retryable: bool, body: str | None = None, **metadata: str) -> ApiFailure:
    """A failure without a status: a broken connection, an invalid stream."""
    named = {"code": code, **metadata} if code else metadata
    return ApiFailure(
        data=ApiData(message=message, is_retryable=is_retryable, response_body=body, metadata=named or None)
    )


def read_fault(error: object) -> Fault:
    """The message and codes of an error object, which may be nested, in a list, or JSON inside a message."""
    if isinstance(error, list):
        error = error[0] if error else None
    if isinstance(error, str):
        inner = json_or_none(error)
        return read_fault(inner) if isinstance(inner, dict) else Fault(message=error)
    if not isinstance(error, dict):
        return Fault()
    nested = error.get("error")
    if isinstance(nested, dict | list) and nested:
        return read_fault(nested)
    message = next((v for k in ("message", "error", "detail") if isinstance(v := error.get(k), str) and v), "")
    inner = json_or_none(message) if message.startswith("{") else None
    if isinstance(inner, dict) and (found := read_fault(inner)).message:
        return found
    kind = error.get("type") if error.get("type") != "error" else None
    code = error.get("code")
    relayed, host = _relayed(error.get("metadata"))
    if relayed.message and _GENERIC.fullmatch(message.strip()):
        message = f"{host}: {relayed.message}" if host else relayed.message
    return Fault(
        message=message,
        code=str(code) if isinstance(code, str | int) and not isinstance(code, bool) else "",
        type=str(kind or error.get("status") or ""),
        reasons=(*_deeper(error), *sorted(relayed.names)),
    )


def _relayed(metadata: object) -> tuple[Fault, str]:
    """The error of the host behind a gateway, and its name: OpenRouter has both in ``metadata``."""
    if not isinstance(metadata, dict):
        return Fault(), ""
    host = metadata.get("provider_name")
    return read_fault(metadata.get("raw")), host if isinstance(host, str) else ""


def _deeper(error: dict[str, object]) -> Iterator[str]:
    """Nested causes: Google's ``details[].reason``, Azure's ``innererror.code``, OpenRouter's ``flagged_input``."""
    details, inner, metadata = error.get("details"), error.get("innererror"), error.get("metadata")
    causes = [one.get("reason") for one in details if isinstance(one, dict)] if isinstance(details, list) else []
    if isinstance(inner, dict):
        causes.append(inner.get("code"))
    if isinstance(metadata, dict) and "flagged_input" in metadata:
        causes.append("flagged_input")
    return (cause for cause in causes if isinstance(cause, str) and cause)


def _is_overflow_answer(status: int, message: str, fault: Fault) -> bool:
    if status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
        return True
    # "Too many tokens" with 429 is a rate limit: waiting helps, and a smaller request may not.
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
    if match := _ONLY_MODEL.fullmatch(fault.message.strip()):
        return f"The provider does not have the model {match[1]!r}, or this key may not use it."
    if fault.message:
        # A message of one word, without a code, needs the phrase of the status to be understood.
        return fault.message.strip() if fault.names or " " in fault.message else f"{phrase}: {fault.message}"
    return f"{phrase}: {body.strip()[:DETAIL_CHARS_MAX]}"


def json_or_none(text: str) -> object:
    """The decoded JSON; None if the text is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None

"""Phrases of providers' error messages that mean a request that is too large, or a transient problem."""

import re
from typing import Final

OVERFLOWS: Final = (
    r"prompt is too long",
    r"prompt exceeds max(?:imum)? length",
    r"prompt too long; exceeded (?:max )?context length",
    r"prompt has # tokens, but the configured context size is # tokens",
    r"maximum prompt length is #",
    r"request_too_large",
    r"request entity too large",
    r"tokens in request more than max tokens allowed",
    r"requested tokens \(#\) exceed context window of #",
    r"reduce the length of the messages",
    r"input is too long for requested model",
    r"input length and `?max_tokens`? exceed context limit",
    r"input length.{0,200}?exceeds.{0,200}?(?:context|maximum) length",
    r"range of input length should be \[#, #\]",
    r"input \(# tokens\) is longer than the model'?s context length \(# tokens\)",
    r"input token count.{0,200}?exceeds the maximum",
    r"input token count is # but model only supports up to #",
    r"`inputs` tokens \+ `max_new_tokens` must be <= #",
    r"max_tokens must be at least 1, got -#",
    r"exceeds the context window",
    r"exceeds the available context size",
    r"exceeds the limit of #",
    r"exceeds (?:the )?maximum allowed input length of # tokens",
    r"exceeds (?:the )?(?:model'?s )?maximum context length(?: of # tokens|\s?\(#\))",
    r"exceeded model token limit",
    r"maximum context length is # tokens",
    r"greater than the context length",
    r"loaded with context length of only # tokens",
    r"context length is only # tokens",
    r"context size has been exceeded",
    r"context window exceeds limit",
    r"context[_ ]length[_ ]exceeded",
    r"too large for model with # maximum context length",
    r"model_context_window_exceeded",
    r"too many tokens",
    r"token limit exceeded",
    r"too much media: #",
    r"too many (?:images|documents)\b",
    r"at most # (?:image|video|audio)",
    r"request contains # images",
    r"payload size exceeds the limit",
    r"maximum request body size # exceeded",
    r"\A4(?:00|13)\s*(?:status code)?\s*\(no body\)",
)
"""Patterns for a request that is larger than the context window, or has more media than fit; ``#`` is a number."""

_NOT_OVERFLOWS: Final = r"\A(?:throttling error:|service unavailable:)|rate limit|too many requests"

_GAP: Final = "[ _-]"
_TRANSIENT: Final = (
    rf"too many requests|rate{_GAP}limit|rate increased too quickly|resource[ _]exhausted",
    rf"overloaded|service{_GAP}unavailable|server{_GAP}error|internal{_GAP}error|internal server error",
    rf"provider{_GAP}returned{_GAP}error",
    r"eai_again|econnrefused|econnreset|enotfound|etimedout|getaddrinfo",
    r"connection (?:error|lost|refused)|socket hang up|socket connection was closed|reset before headers",
    r"upstream connect|network error|fetch failed|failed to fetch|terminated",
    r"\A\s*timeout\s*\Z",
    r"\b(?:connection|network|read|request|response|stream)[ _-]?(?:timeout|timed out|time out)\b",
    r"retry your request|try your request again",
)
_STATUS: Final = r"\b(?:429|500|502|503|504|524)\b"


def _any(*phrases: str) -> re.Pattern[str]:
    joined = "|".join(f"(?:{phrase})" for phrase in phrases)
    return re.compile(joined.replace("#", r"[\d,]+"), re.IGNORECASE | re.DOTALL)


_is_overflow, _is_not_overflow = _any(*OVERFLOWS).search, _any(_NOT_OVERFLOWS).search
_is_transient, _has_status = _any(*_TRANSIENT).search, _any(_STATUS).search


def is_overflow(text: str) -> bool:
    """Whether a provider's message says that the request was larger than the context window."""
    return _is_overflow(text) is not None and _is_not_overflow(text) is None


def is_transient(text: str, *, has_status: bool = False) -> bool:
    """Whether a message describes a transient problem.

    A number such as 503 in the message counts as an HTTP status unless the real status is known.
    """
    return _is_transient(text) is not None or (not has_status and _has_status(text) is not None)

"""Retry: whether a failure is retryable, and the delay before the next attempt. Time and randomness are arguments."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

from turnkeeper.core.error_phrases import is_transient
from turnkeeper.core.failures import json_or_none
from turnkeeper.model.failure import ApiFailure, Failure, UnknownFailure

DELAY_FIRST_MS = 2_000
DELAY_MS_MAX = 30_000
"""The longest delay if the provider sent no headers."""
WAIT_MS_MAX = 2_147_483_647
"""The longest delay: the maximum of a 32-bit timer."""

OVERLOADED = "Provider is overloaded"


def retryable(failure: Failure) -> str | None:
    """The message for the user during the delay; None if the failure is not retryable."""
    match failure:
        case ApiFailure(data=data):
            body = data.response_body or ""
            if not data.is_retryable:
                return None
            if "FreeUsageLimitError" in body:
                return "The free use of this provider is used up for now; it goes on when the limit is lifted."
            if "GoUsageLimitError" in body:
                return _account_limit(body, data.response_headers)
            return OVERLOADED if "Overloaded" in data.message else data.message
        case UnknownFailure(data=data):
            if "too_many_requests" in data.message:
                return "Too Many Requests"
            if "exhausted" in data.message or "unavailable" in data.message:
                return OVERLOADED
            return data.message if is_transient(data.message) else None
        case _:
            return None


def delay(attempt: int, failure: Failure, *, rand: float, now: int, wait_max: int | None = None) -> int:
    """Milliseconds to wait before retry number ``attempt`` (from 1).

    ``rand`` is in [0, 1) and spreads the retries of many sessions. ``now`` is Unix time in milliseconds. ``wait_max``
    bounds the delay that a provider asks for.
    """
    headers = failure.data.response_headers if isinstance(failure, ApiFailure) else None
    limit = min(wait_max, WAIT_MS_MAX) if wait_max is not None else WAIT_MS_MAX
    if headers is not None and (hint := _hint(headers, now)) is not None:
        return min(hint, limit)
    grown = math.ceil(DELAY_FIRST_MS * (1 << min(attempt - 1, 30)) * (1 + 0.25 * rand))
    return min(grown, limit if headers is not None else min(DELAY_MS_MAX, limit))


def _hint(headers: Mapping[str, str], now: int) -> int | None:
    """The delay that the headers ask for; None without a valid one."""
    named = {name.lower(): value for name, value in headers.items()}
    if (given := _number(named.get("retry-after-ms"))) is not None:
        return _waited(given)
    after = named.get("retry-after")
    if (seconds := _number(after)) is not None:
        return _waited(seconds * 1000)
    if after is None:
        return None
    try:
        wait = math.ceil(parsedate_to_datetime(after).timestamp() * 1000) - now
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait > 0 else None


def _waited(milliseconds: float) -> int:
    return math.ceil(min(milliseconds, WAIT_MS_MAX))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _account_limit(body: str, headers: Mapping[str, str] | None) -> str:
    said = json_or_none(body)
    error = said.get("error", said) if isinstance(said, dict) else None
    metadata = error.get("metadata") if isinstance(error, dict) else None
    known = metadata if isinstance(metadata, dict) else {}
    limit, workspace = known.get("limitName"), known.get("workspace")
    text = f"The {limit} limit is reached" if isinstance(limit, str) else "A limit of the account is reached"
    if isinstance(workspace, str):
        text += f" in workspace {workspace}"
    after = _number({name.lower(): value for name, value in (headers or {}).items()}.get("retry-after"))
    return f"{text}. It is lifted in {humanised(after)}." if after is not None else f"{text}."


def humanised(seconds: float) -> str:
    """A duration in words: days and hours, hours and minutes, minutes, or less than a minute."""
    minutes = int(seconds // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{_count(days, 'day')} {_count(hours, 'hour')}"
    if hours:
        return f"{_count(hours, 'hour')} {_count(minutes, 'minute')}"
    return _count(minutes, "minute") if minutes else "less than a minute"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"

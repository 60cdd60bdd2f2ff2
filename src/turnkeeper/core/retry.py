"""Retry: whether a failure is worth another try, and how long to wait before it. Pure; time and chance are given."""

import math
from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from turnkeeper.core.error_phrases import is_transient
from turnkeeper.model.failure import ApiFailure, Failure, UnknownFailure

DELAY_FIRST_MS = 2_000
DELAY_MS_MAX = 30_000
"""The longest wait if the provider sent no headers that could have said better."""
WAIT_MS_MAX = 2_147_483_647
"""The longest wait at all: what a 32-bit timer holds."""

OVERLOADED = "Provider is overloaded"


def retryable(failure: Failure) -> str | None:
    """What to tell the user while waiting for another try; None if no other try is worth it."""
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

    ``rand`` is in [0, 1) and spreads retries of many sessions; ``now`` is Unix time in milliseconds, for dates in
    headers; ``wait_max`` bounds what a provider may ask for.
    """
    headers = failure.data.response_headers if isinstance(failure, ApiFailure) else None
    limit = min(wait_max, WAIT_MS_MAX) if wait_max is not None else WAIT_MS_MAX
    if headers is not None and (hint := _hint(headers, now)) is not None:
        return min(hint, limit)
    grown = math.ceil(DELAY_FIRST_MS * (1 << min(attempt - 1, 30)) * (1 + 0.25 * rand))
    return min(grown, limit if headers is not None else min(DELAY_MS_MAX, limit))


def _hint(headers: Mapping[str, str], now: int) -> int | None:
    """What the provider asks for; None if it says nothing, or nothing that makes sense."""
    named = {name.lower(): value for name, value in headers.items()}
    if (given := _number(named.get("retry-after-ms"))) is not None:
        return math.ceil(given)
    after = named.get("retry-after")
    if (seconds := _number(after)) is not None:
        return math.ceil(seconds * 1000)
    if after is None:
        return None
    try:
        wait = math.ceil(parsedate_to_datetime(after).timestamp() * 1000) - now
    except (ValueError, TypeError, OverflowError):
        return None
    return wait if wait > 0 else None


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return number if math.isfinite(number) and number >= 0 else None


def _account_limit(body: str, headers: Mapping[str, str] | None) -> str:
    try:
        said = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        said = None
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
    """A wait in words: days and hours, hours and minutes, minutes, or less than a minute."""
    minutes = int(seconds // 60)
    days, hours, minutes = minutes // 1440, minutes // 60 % 24, minutes % 60
    if days:
        return f"{_count(days, 'day')} {_count(hours, 'hour')}"
    if hours:
        return f"{_count(hours, 'hour')} {_count(minutes, 'minute')}"
    return _count(minutes, "minute") if minutes else "less than a minute"


def _count(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"

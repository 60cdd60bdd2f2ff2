"""Identifiers: ``<prefix>_``, 12 hex digits of time and counter, 14 base62 characters.

The hex digits are the low 48 bits of ``ms * 4096 + counter``, so only 36 bits of the milliseconds survive:
the time in an id **wraps every 2**36 ms (795 days)**, last on 2026-08-14T11:19:55.136Z and next on
2028-10-17T20:04:31.872Z. An id minted just after a wrap sorts before one minted just before it, and callers
may bring ids of their own; therefore nothing in this system sorts by id.
"""

import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, NewType, TypeAlias

SessionID = NewType("SessionID", str)
MessageID = NewType("MessageID", str)
PartID = NewType("PartID", str)
ProjectID = NewType("ProjectID", str)

IdKind: TypeAlias = Literal["session", "message", "part"]
"""The kinds of ids that callers may bring."""

PREFIXES: Final[Mapping[IdKind, str]] = {"session": "ses", "message": "msg", "part": "prt"}
"""The beginning of an id of each kind, before the underscore."""

DESCENDING: Final = frozenset({"ses"})
"""Prefixes whose hex digits are inverted, so that a file listing shows the newest first within one window."""

ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
TAIL_LENGTH: Final = 14
LENGTH_MAX: Final = 64
"""Ids become file names; longer ones are refused."""

COUNTER_BITS: Final = 12
WINDOW_MS: Final = 1 << 36
"""Milliseconds after which the time in an id starts again from zero."""

_MASK: Final = (1 << 48) - 1
_ALLOWED: Final = re.compile(r"[A-Za-z0-9_-]+")
# Fourteen or more: old documents have ids with a longer tail.
_MINTED: Final = re.compile(r"([a-z]+)_([0-9a-f]{12})([0-9A-Za-z]{14,})")


class Parsed(NamedTuple):
    """The fields of a minted id. ``ms`` is modulo ``WINDOW_MS``; inverted digits are already restored."""

    prefix: str
    ms: int
    counter: int
    tail: str


def pack(ms: int, counter: int, descending: bool) -> str:
    """The 12 hex digits of a time and a counter. A counter above 4095 adds milliseconds."""
    value = (ms << COUNTER_BITS) + counter
    return f"{(~value if descending else value) & _MASK:012x}"


def parse(identifier: str) -> Parsed:
    """The fields of a minted id. Raises ValueError for any other id."""
    match = _MINTED.fullmatch(identifier)
    if match is None:
        raise ValueError(f"id {identifier!r} carries no time: expected prefix_ + 12 hex digits + 14 base62 characters")
    prefix, digits, tail = match.groups()
    value = int(digits, 16)
    if prefix in DESCENDING:
        value ^= _MASK
    return Parsed(prefix, value >> COUNTER_BITS, value & ((1 << COUNTER_BITS) - 1), tail)


def timestamp(identifier: str, near: int | None = None) -> int:
    """When an id was minted: milliseconds modulo ``WINDOW_MS``, or with ``near`` the real time closest to it.

    The closest time is right if the id was minted within 397 days of ``near``. Use it for display and repair only.
    """
    ms = parse(identifier).ms
    if near is None:
        return ms
    half = WINDOW_MS // 2
    return near - half + (ms - near + half) % WINDOW_MS


def check(kind: IdKind, given: str) -> str:
    """The id of a caller, unchanged. Raises ValueError if it is not a valid id of this kind."""
    prefix = PREFIXES[kind] + "_"
    is_text = isinstance(given, str)
    if is_text and given.startswith(prefix) and len(prefix) < len(given) <= LENGTH_MAX and _ALLOWED.fullmatch(given):
        return given
    raise ValueError(
        f"{str(given)[: LENGTH_MAX + 1]!r} is not a {kind} id: expected {prefix!r} and then letters, digits, "
        f"'_' or '-', at most {LENGTH_MAX} characters in all"
    )

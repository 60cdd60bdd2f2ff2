"""Raw sessions: JSON as a source has it, gathered into one shape before anything is made of it."""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from turnkeeper.core.limits import ENTRY_DEPTH_MAX, JSON_DEPTH_MAX
from turnkeeper.core.storable import is_too_deep
from turnkeeper.interop.report import Finding
from turnkeeper.model.identifier import ALPHABET, TAIL_LENGTH, pack
from turnkeeper.model.value import Json

RawObject: TypeAlias = dict[str, Any]
"""A JSON object from outside. Any: its shape is what we are about to find out."""


class Unreadable(Exception):
    """This piece of a source makes no sense; the rest may."""


@dataclass
class RawMessage:
    """A message and its parts. What a source does not count in a session's totals is not ``is_counted``."""

    info: RawObject
    parts: list[Json]
    is_counted: bool = True


@dataclass
class RawSession:
    """A session as a source has it, its messages in order. None means that the source cannot know."""

    info: RawObject
    messages: list[RawMessage]
    todos: Json = None
    diffs: Json = None
    place: str | None = None
    skipped: list[Finding] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)


class SessionSource(Protocol):
    """Where sessions come from. Only ever read; called from worker threads, one call at a time."""

    name: str
    """How messages to people call it."""

    def names(self) -> Sequence[str]:
        """What there is to read, in order; each may hold several sessions."""
        ...

    def read(self, name: str) -> Iterable[RawSession]:
        """The sessions under one of the names. Raises Unreadable."""
        ...

    def projects(self) -> Iterable[RawObject]:
        """The projects it knows, as opencode writes them."""
        ...

    def skipped(self) -> Iterable[Finding]:
        """What it holds that belongs to no session."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


def parse_file(file: Path) -> Json:
    """The JSON in a file. Raises Unreadable, also for a pipe, which would be waited for; or OSError."""
    if file.exists() and not file.is_file():
        raise Unreadable("is not an ordinary file")
    return parse(file.read_bytes())


def parse(body: bytes | str) -> Json:
    """JSON to plain values. Raises Unreadable.

    JavaScript cuts text between the halves of a character and writes the rest as a lone surrogate, which no UTF-8 can
    hold: such a half becomes U+FFFD. Numbers that no JSON can hold become null.
    """
    if is_too_deep(body, ENTRY_DEPTH_MAX):
        raise Unreadable(f"is nested more than {JSON_DEPTH_MAX} deep")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # Strict and fast; what it refuses is looked at again, slowly.
    try:
        return _whole(json.loads(body, parse_constant=lambda _: None, parse_float=_finite))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"is not JSON: {error}") from error


def plain(value: object) -> Json:
    """One of our values as plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def derived_id(prefix: str, ms: int, nth: int, *of: str) -> str:
    """An id for something the source gives none, the same at every import: made from where it stands."""
    number = int.from_bytes(sha256("\0".join((*of, str(nth))).encode("utf-8", "surrogatepass")).digest()[:12], "big")
    tail = ""
    for _ in range(TAIL_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        tail += ALPHABET[digit]
    return f"{prefix}_{pack(ms, nth + 1, False)}{tail}"


def _finite(text: str) -> float | None:
    number = float(text)
    return number if math.isfinite(number) else None


def _whole(value: Json) -> Json:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        return {_whole(key): _whole(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_whole(item) for item in value]
    return value

"""Raw sessions: the JSON of a source in one shape, before it is normalised."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import msgspec

from turnkeeper.core.limits import ENTRY_DEPTH_MAX, JSON_DEPTH_MAX
from turnkeeper.core.storable import is_too_deep
from turnkeeper.interop.report import Finding
from turnkeeper.model.identifier import ALPHABET, TAIL_LENGTH, WINDOW_MS, pack, timestamp
from turnkeeper.model.session import Origin
from turnkeeper.model.value import Json

RawObject: TypeAlias = dict[str, Any]
"""A JSON object of a source, with values of any shape."""

ReadOnlyObject: TypeAlias = Mapping[str, Any]
"""A JSON object of a source that is only read."""


class Unreadable(Exception):
    """A piece of a source that cannot be imported. The import continues with the rest."""


@dataclass
class RawMessage:
    """A message and its parts."""

    info: RawObject
    parts: list[Json]
    is_counted: bool = True
    """Whether the totals of the session in the source include the usage of this message."""


@dataclass
class RawSession:
    """A session of a source, with its messages in order. ``todos`` and ``diffs`` are None if the source has none."""

    info: RawObject
    messages: list[RawMessage]
    todos: Json = None
    diffs: Json = None
    place: str | None = None
    skipped: list[Finding] = field(default_factory=list)
    unreadable: list[Finding] = field(default_factory=list)
    origin: Origin | None = None
    """The session of which this one is a branch."""
    follows: bool = False
    """Whether the source only ever appends to the session, so that the stored one follows it (``compare.py``)."""
    gone: frozenset[str] = frozenset()
    """Ids of messages that were in the session until the source took them back; another session has them."""


class SessionSource(Protocol):
    """A source of sessions, which is only read. It is called from worker threads, one call at a time."""

    name: str
    """The name of the source in messages to the user."""

    def names(self) -> Sequence[str]:
        """The names to read, in order. One name may stand for several sessions."""
        ...

    def read(self, name: str) -> Iterable[RawSession]:
        """The sessions of a name. Raises Unreadable."""
        ...

    def projects(self) -> Iterable[RawObject]:
        """The projects of the source, in opencode's format."""
        ...

    def skipped(self) -> Iterable[Finding]:
        """The data of the source that belongs to no session."""
        ...


def parse_file(file: Path) -> Json:
    """The JSON of a file. Raises OSError, or Unreadable, also for a pipe, which would block."""
    if file.exists() and not file.is_file():
        raise Unreadable("is not an ordinary file")
    return parse(file.read_bytes())


def why_closed(folder: Path) -> str | None:
    """Why a folder may not be listed, which Path.glob passes over; None if it may be, and for what is no folder."""
    try:
        os.scandir(folder).close()
    except PermissionError as error:
        return f"cannot be read: {error.strerror}"
    except OSError:
        return None
    return None


def parse_optional(file: Path) -> Json:
    """The JSON of a file that a session can do without; None if it cannot be read."""
    try:
        return parse_file(file)
    except (OSError, ValueError, Unreadable):
        return None


def parse(body: bytes | str) -> Json:
    """JSON as plain values. Raises Unreadable.

    A lone surrogate, which JavaScript writes when it cuts a character in half, becomes U+FFFD. NaN and infinite
    numbers become null.
    """
    if is_too_deep(body, ENTRY_DEPTH_MAX):
        raise Unreadable(f"is nested more than {JSON_DEPTH_MAX} deep")
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        pass  # The fast parser is strict. The slow one below accepts more.
    try:
        return _whole(json.loads(body, parse_constant=lambda _: None, parse_float=_finite))
    except (ValueError, RecursionError) as error:
        raise Unreadable(f"is not JSON: {error}") from error


def plain(value: object) -> Json:
    """A value of the model as plain JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def derived_id(prefix: str, ms: int, nth: int, *of: str) -> str:
    """An id for data that has none in the source. It depends only on the arguments, so every import derives it."""
    number = int.from_bytes(sha256("\0".join((*of, str(nth))).encode("utf-8", "surrogatepass")).digest()[:12], "big")
    tail = ""
    for _ in range(TAIL_LENGTH):
        number, digit = divmod(number, len(ALPHABET))
        tail += ALPHABET[digit]
    return f"{prefix}_{pack(ms, nth + 1, False)}{tail}"


def derived_session_id(*of: str) -> str:
    """The id of a session that has another kind of id in its source."""
    ms = int.from_bytes(sha256("\0".join(of).encode("utf-8", "surrogatepass")).digest()[16:], "big") % WINDOW_MS
    return derived_id("ses", ms, 0, *of)


def minted(identifier: str, near: int) -> int:
    """The time in an id, or ``near`` if it has none. Times repeat every 795 days; the one next to ``near`` counts."""
    try:
        return timestamp(identifier, near)
    except ValueError:
        return near


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

"""Entry: an event on disk, as JSON with its seq, its time and the hash of the previous entry.

The chain locates damage: an altered entry no longer matches the ``prev`` of the next entry. The state document has the
hash of the last entry, so a log that was cut short is detected too.
"""

from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from typing import NamedTuple, get_args

import msgspec

from turnkeeper.model.event import Event, PromptAdmitted
from turnkeeper.model.identifier import pack
from turnkeeper.model.value import UNREADABLE, Value, encode

KINDS: dict[str, type[Event]] = {f"{kind.KIND}.{kind.VERSION}": kind for kind in get_args(Event)}
"""Every event class by its name in the log."""

UPCASTS: dict[str, Callable[[dict[str, object]], tuple[str, dict[str, object]]]] = {}
"""Upcasts: ``name.version`` of an old shape to a function that gives the newer ``name.version`` and data."""

_NAMES = {kind: name for name, kind in KINDS.items()}


@cache
def _reads(name: str) -> Callable[[bytes | msgspec.Raw], Event]:
    """The decoder of events of this name, made on first use: most sessions have few of the many kinds."""
    return msgspec.json.Decoder(KINDS[name]).decode


class Recorded(NamedTuple):
    """An event with its seq and its time."""

    seq: int
    time: int
    event: Event


class Damaged(Exception):
    """A log is damaged. ``seq`` is its first bad entry."""

    def __init__(self, seq: int, reason: str) -> None:
        super().__init__(f"event {seq}: {reason}")
        self.seq, self.reason = seq, reason


class _Envelope(Value):
    seq: int
    prev: str
    time: int
    type: str
    data: msgspec.Raw


class _Named(Value):
    id: str


class _Admission(Value):
    message: _Named


class _Admitted(Value):
    data: _Admission


_envelope = msgspec.json.Decoder(_Envelope)
_admitted = msgspec.json.Decoder(_Admitted)
_ADMISSION = f'"type":"{PromptAdmitted.KIND}.'.encode()


def genesis(session_id: str) -> str:
    """The ``prev`` of the first entry. It depends on the session, so that exchanged logs are detected."""
    return sha256(session_id.encode()).hexdigest()[:32]


def digest(entry: bytes) -> str:
    """The hash of an entry, which the next entry carries as ``prev``: 128 bits, for a shorter log."""
    return sha256(entry).hexdigest()[:32]


def event_id(recorded: Recorded, link: str, nth: int = 0) -> str:
    """The id of a notification: derived from the event's time, seq and hash, so it is not stored.

    ``nth`` is the index among the notifications of one event.
    """
    tail = f"{link[:9]}{nth:05d}" if nth else link[:14]
    return f"evt_{pack(recorded.time, recorded.seq & 0xFFF, False)}{tail}"


def write(recorded: Recorded, prev: str, body: bytes) -> bytes:
    """The bytes of an entry. ``body`` is the JSON of the event."""
    name = _NAMES[type(recorded.event)]
    head = f'{{"seq":{recorded.seq},"prev":"{prev}","time":{recorded.time},"type":"{name}","data":'
    return b"%b%b}" % (head.encode(), body)


def read(entry: bytes, seq: int) -> tuple[Recorded, str]:
    """The event in an entry and the ``prev`` it carries. Raises Damaged if it cannot be read."""
    try:
        envelope = _envelope.decode(entry)
        name, data = envelope.type, envelope.data
        while name in UPCASTS:
            name, upcast = UPCASTS[name](msgspec.json.decode(data, type=dict[str, object]))
            data = msgspec.Raw(encode(upcast))
        event = _reads(name)(data)
    except KeyError as error:
        raise Damaged(seq, f"of the unknown type {error.args[0]!r}; a newer turnkeeper may have written it") from error
    except UNREADABLE as error:
        raise Damaged(seq, f"cannot be read: {error}") from error
    if envelope.seq != seq:
        raise Damaged(seq, f"says it is event {envelope.seq}")
    return Recorded(seq, envelope.time, event), envelope.prev


def kind(entry: bytes) -> str:
    """The name and version of an entry's event, without decoding the event; empty if the entry cannot be read."""
    try:
        return _envelope.decode(entry).type
    except UNREADABLE:
        return ""


def follows(entry: bytes, prev: str) -> bool:
    """Whether ``prev`` is the previous entry's hash in an entry. True if unreadable: ``chain`` reports that."""
    try:
        return _envelope.decode(entry).prev == prev
    except UNREADABLE:
        return True


def chain(
    session_id: str, entries: Iterable[bytes], *, after: int = 0, prev: str = ""
) -> Iterable[tuple[Recorded, str]]:
    """Each event with the hash of its entry. Raises Damaged at the first entry that breaks the chain."""
    prev = prev or genesis(session_id)
    for seq, entry in enumerate(entries, after + 1):
        recorded, claimed = read(entry, seq)
        if claimed != prev:
            raise Damaged(seq, "does not follow from the event before it; one of the two was altered")
        prev = digest(entry)
        yield recorded, prev


def admitted(entries: Iterable[bytes]) -> list[str]:
    """The message ids of the prompts that these entries admit, without unreadable entries."""
    found: list[str] = []
    for entry in entries:
        if _ADMISSION in entry:
            with suppress(*UNREADABLE):
                found.append(_admitted.decode(entry).data.message.id)
    return found

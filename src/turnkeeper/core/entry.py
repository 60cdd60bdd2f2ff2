"""Entry: an event on disk. JSON with its place, its time and the hash of the entry before it.

The chain makes damage visible and says where it is: an entry that was altered no longer matches its successor's
``prev``, and the state document knows the hash of the last one, so a log cut short is noticed too.
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
"""Every event class under the name it has in the log."""

UPCASTS: dict[str, Callable[[dict[str, object]], tuple[str, dict[str, object]]]] = {}
"""How an old shape becomes the next one: ``name.version`` to (newer ``name.version``, newer data)."""

_NAMES = {kind: name for name, kind in KINDS.items()}


@cache
def _reads(name: str) -> Callable[[bytes | msgspec.Raw], Event]:
    """How events of this name are read. Made when the first one is: there are many kinds, and few in most sessions."""
    return msgspec.json.Decoder(KINDS[name]).decode


class Recorded(NamedTuple):
    """An event at its place in the log."""

    seq: int
    time: int
    event: Event


class Damaged(Exception):
    """An entry that cannot be trusted. ``seq`` is the first bad place."""

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
    """The hash before the first entry. It depends on the session, so logs cannot be exchanged unnoticed."""
    return sha256(session_id.encode()).hexdigest()[:32]


def digest(entry: bytes) -> str:
    """The hash of an entry, as its successor carries it. 128 bits, for a shorter log."""
    return sha256(entry).hexdigest()[:32]


def event_id(recorded: Recorded, link: str, nth: int = 0) -> str:
    """The id clients know an event by: derived from its time, its place and its hash, so it is never stored.

    ``nth`` tells apart what clients hear of one event in several pieces.
    """
    tail = f"{link[:9]}{nth:05d}" if nth else link[:14]
    return f"evt_{pack(recorded.time, recorded.seq & 0xFFF, False)}{tail}"


def write(recorded: Recorded, prev: str, body: bytes) -> bytes:
    """The bytes of an entry. ``body`` is the event's JSON, which the caller has at hand."""
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
    """The name and version of an entry's event, without a look at the event; empty if the entry cannot be read."""
    try:
        return _envelope.decode(entry).type
    except UNREADABLE:
        return ""


def follows(entry: bytes, prev: str) -> bool:
    """Whether an entry carries this hash as its predecessor's. An unreadable one is for ``chain`` to report."""
    try:
        return _envelope.decode(entry).prev == prev
    except UNREADABLE:
        return True


def chain(
    session_id: str, entries: Iterable[bytes], *, after: int = 0, prev: str = ""
) -> Iterable[tuple[Recorded, str]]:
    """Each event with the hash of its entry, checked link by link. Raises Damaged at the first bad one."""
    prev = prev or genesis(session_id)
    for seq, entry in enumerate(entries, after + 1):
        recorded, claimed = read(entry, seq)
        if claimed != prev:
            raise Damaged(seq, "does not follow from the event before it; one of the two was altered")
        prev = digest(entry)
        yield recorded, prev


def admitted(entries: Iterable[bytes]) -> list[str]:
    """The ids under which these entries admit prompts; an entry that cannot be read admits none."""
    found: list[str] = []
    for entry in entries:
        if _ADMISSION in entry:
            with suppress(*UNREADABLE):
                found.append(_admitted.decode(entry).data.message.id)
    return found

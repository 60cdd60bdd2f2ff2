"""The intent journal: what is going to change, written whole and flushed before any file is touched.

A record is a header (magic, length, checksum, number) and an intent. Numbers follow each other without a gap, so the
rest of an older, longer journal can never be taken for records of this one.
"""

import struct
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

_HEADER = struct.Struct("<4sIIQ")
_MAGIC = b"TKJ1"


class Intent(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One write, with everything that is needed to do it again."""

    documents: list[tuple[str, bytes | None]] = []
    log: str | None = None
    after: int = 0
    entries: list[bytes] = []
    fence: int | None = None
    texts: list[tuple[str, str | None]] = []
    """The words of texts, separated by blanks; None removes."""
    removed_logs: list[str] = []
    removed_texts: list[str] = []
    """Paths; every text at or below one goes. The empty path is above everything."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Intent).decode


def record(number: int, intent: Intent) -> bytes:
    """An intent as it is written."""
    payload = _encode(intent)
    return _HEADER.pack(_MAGIC, len(payload), _checksum(number, payload), number) + payload


def records(data: bytes) -> Iterator[tuple[int, int, Intent]]:
    """Number, end offset and intent of each whole record, up to the first that is not."""
    offset, last = 0, None
    while offset + _HEADER.size <= len(data):
        magic, length, checksum, number = _HEADER.unpack_from(data, offset)
        payload = data[offset + _HEADER.size : offset + _HEADER.size + length]
        if magic != _MAGIC or len(payload) != length or checksum != _checksum(number, payload):
            return
        if last is not None and number != last + 1:
            return
        offset, last = offset + _HEADER.size + length, number
        yield number, offset, _decode(payload)


@dataclass
class LogChange:
    """What becomes of one log: the entries behind ``base`` are replaced by these."""

    base: int
    is_new: bool = False
    """The log was removed on the way, and so was its fence."""
    entries: list[bytes] = field(default_factory=list)
    fence: int | None = None


@dataclass
class Change:
    """What several intents amount to. Making it twice is the same as making it once."""

    documents: dict[str, bytes | None] = field(default_factory=dict)
    logs: dict[str, LogChange] = field(default_factory=dict)
    words: list[tuple[str, str | None, bool]] = field(default_factory=list)
    """Path, words, and whether everything below the path goes too; in the order they were written."""


def fold(intents: Iterable[Intent]) -> Change:
    """The last value of each document, and each log's new end."""
    change = Change()
    for intent in intents:
        for place, body in intent.documents:
            change.documents[place] = body
        for log in intent.removed_logs:
            change.logs[log] = LogChange(0, is_new=True)
        if intent.log is not None and (intent.entries or intent.fence is not None):
            log_change = change.logs.setdefault(intent.log, LogChange(intent.after))
            log_change.entries += intent.entries
            log_change.fence = intent.fence if intent.fence is not None else log_change.fence
        change.words += [(place, None, True) for place in intent.removed_texts]
        change.words += [(place, words, False) for place, words in intent.texts]
    return change


def _checksum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8)))

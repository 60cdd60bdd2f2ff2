"""The record of a write in the journal, which is synced before files are changed, so that the write can be redone."""

import struct
import zlib

import msgspec

_HEADER = struct.Struct("<4sIIQ")
"""Magic, length, checksum, number."""
_MAGIC = b"TKJ1"


class Write(msgspec.Struct, frozen=True, array_like=True, omit_defaults=True):
    """One write. It is idempotent."""

    documents: list[tuple[str, bytes | None]] = []
    """Paths and bodies; None removes."""
    log: str | None = None
    after: int = 0
    entries: list[bytes] = []
    fence: int | None = None
    texts: list[tuple[str, str | None]] = []
    """Paths, and words separated by blanks; None removes."""
    removed_logs: list[str] = []
    removed_texts: list[str] = []
    """Paths whose texts, at and below them, are removed. The empty path removes all."""


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Write).decode


def encoded(number: int, write: Write) -> bytes:
    """The record of a write in the journal."""
    payload = _encode(write)
    return _HEADER.pack(_MAGIC, len(payload), _checksum(number, payload), number) + payload


def decoded(data: bytes) -> tuple[list[Write], int]:
    """The complete records at the beginning of a journal, and their end. The engine of 0.2 left up to 64 records."""
    writes: list[Write] = []
    offset, expected = 0, None
    while len(data) - offset >= _HEADER.size and not is_cut_short(data, offset):
        magic, length, checksum, number = _HEADER.unpack_from(data, offset)
        end = offset + _HEADER.size + length
        payload = data[offset + _HEADER.size : end]
        if magic != _MAGIC or checksum != _checksum(number, payload) or number != (expected or number):
            break
        writes.append(_decode(payload))
        offset, expected = end, number + 1
    return writes, offset


def is_cut_short(data: bytes, offset: int) -> bool:
    """Whether the record at an offset is incomplete, as after the kill of its writer."""
    if len(data) - offset < _HEADER.size:
        return True
    magic, length, _, _ = _HEADER.unpack_from(data, offset)
    return bool(magic == _MAGIC and len(data) - offset - _HEADER.size < length)


def _checksum(number: int, payload: bytes) -> int:
    return zlib.crc32(payload, zlib.crc32(number.to_bytes(8)))

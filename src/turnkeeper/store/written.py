"""Messages as they are written: JSON that is decoded only by those who must look into it."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from turnkeeper.core import blobs
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.value import Value, encode
from turnkeeper.store import documents
from turnkeeper.store.engine import Key


class MessageWithParts(Value):
    """A message and its parts in order, as clients read them."""

    info: Message
    parts: tuple[Part, ...]


class _Place(Value):
    """Where a part stands."""

    seq: int = 0
    nth: int = 0


_read_place = msgspec.json.Decoder(_Place).decode


class Written(NamedTuple):
    """The documents of one message."""

    info: bytes
    parts: list[tuple[Key, bytes]]
    """By key, which is no order; text that was added to an open part stands below it."""

    def value(self) -> MessageWithParts:
        """The message itself."""
        return MessageWithParts(info=documents.read_message(self.info), parts=tuple(documents.in_order(self.parts)))

    def in_order(self) -> list[bytes]:
        """The documents of the parts in the order they came, each whole."""
        if len(self.parts) > 1:
            if any(len(key) > 3 for key, _ in self.parts):
                return [encode(part) for part in documents.in_order(self.parts)]
            self.parts.sort(key=_place)
        return [body for _, body in self.parts]

    def bodies(self) -> Iterator[bytes]:
        """Each document."""
        yield self.info
        for _, body in self.parts:
            yield body

    def spelt(self, texts: dict[str, bytes]) -> "Written":
        """The same with these blobs in the place of their marks."""
        return Written(blobs.spelt(self.info, texts), [(key, blobs.spelt(body, texts)) for key, body in self.parts])


def _place(part: tuple[Key, bytes]) -> tuple[int, int]:
    place = _read_place(part[1])
    return place.seq, place.nth

"""Messages as they are written: JSON that is decoded only by those who must look into it."""

from collections.abc import Iterator
from typing import NamedTuple

import msgspec

from turnkeeper.core import blobs
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.value import Value, encode
from turnkeeper.store import documents
from turnkeeper.store.damaged import UNREADABLE, DamagedDocument, DamagedNames, skipping
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
    key: Key = ("message",)

    def value(self) -> MessageWithParts:
        """The message itself. Raises DamagedDocument."""
        try:
            return MessageWithParts(info=documents.read_message(self.info), parts=tuple(documents.in_order(self.parts)))
        except UNREADABLE as error:
            damaged: DamagedNames = []
            self.readable(damaged)
            raise DamagedDocument(damaged[0] if damaged else "/".join(self.key), error) from error

    def values(self, damaged: DamagedNames | None) -> Iterator[MessageWithParts]:
        """The message itself, once. With a list for what is damaged: what of it can be read, if anything can."""
        try:
            yield self.value()
        except DamagedDocument:
            if damaged is None:
                raise
            rest = self.readable(damaged)
            if rest is not None:
                yield rest.value()

    def readable(self, damaged: DamagedNames) -> "Written | None":
        """The message without the parts that cannot be read; None if it cannot be read itself."""
        parts: list[tuple[Key, bytes]] = []
        for key, body in self.parts:
            with skipping(key, damaged):
                (documents.read_part if len(key) == 3 else documents.read_piece)(body)
                parts.append((key, body))
        with skipping(self.key, damaged):
            documents.read_message(self.info)
            return self._replace(parts=parts)
        return None

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
        parts = [(key, blobs.spelt(body, texts)) for key, body in self.parts]
        return self._replace(info=blobs.spelt(self.info, texts), parts=parts)


def _place(part: tuple[Key, bytes]) -> tuple[int, int]:
    place = _read_place(part[1])
    return place.seq, place.nth

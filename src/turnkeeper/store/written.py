"""Messages as they are written: JSON that is decoded only by those who must look into it."""

from collections.abc import Iterator
from typing import NamedTuple

from turnkeeper.core import blobs
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.value import Value
from turnkeeper.store import documents
from turnkeeper.store.engine import Key


class MessageWithParts(Value):
    """A message and its parts in order, as clients read them."""

    info: Message
    parts: tuple[Part, ...]


class Written(NamedTuple):
    """The documents of one message."""

    info: bytes
    parts: list[tuple[Key, bytes]]
    """By key, which is no order; text that was added to an open part stands below it."""

    def value(self) -> MessageWithParts:
        """The message itself."""
        return MessageWithParts(info=documents.read_message(self.info), parts=tuple(documents.in_order(self.parts)))

    def bodies(self) -> Iterator[bytes]:
        """Each document."""
        yield self.info
        for _, body in self.parts:
            yield body

    def spelt(self, texts: dict[str, bytes]) -> "Written":
        """The same with these blobs in the place of their marks."""
        return Written(blobs.spelt(self.info, texts), [(key, blobs.spelt(body, texts)) for key, body in self.parts])

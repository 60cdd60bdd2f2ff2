"""Values as official clients know them: without what only we keep, such as places in the log."""

from turnkeeper.model.message import Message, SystemMessage
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.store.queries import MessageWithParts


def session(value: Session) -> Session:
    """A session without where it was copied from and what was unknown in an import."""
    return value.but(origin=None, extra=None) if value.origin or value.extra else value


def message(value: Message) -> Message:
    """A message without its place in the log."""
    return value.but(seq=0, extra=None)


def part(value: Part) -> Part:
    """A part without its place in the log."""
    return value.but(seq=0, nth=0, extra=None)


def with_parts(value: MessageWithParts) -> MessageWithParts:
    """The same of both."""
    return MessageWithParts(info=message(value.info), parts=tuple(map(part, value.parts)))


def is_shown(value: Message) -> bool:
    """Whether clients of the first generation know such a message: what the system told the model, they do not."""
    return not isinstance(value, SystemMessage)

"""An event of the second generation as JSON: ``{"id", "type", "durable", "location", "data"}``."""

from typing import Final

from turnkeeper.model.value import Value, encode
from turnkeeper.server.v2.event import NextEvent
from turnkeeper.server.v2.shape import Location

END: Final = b"\n\n"
"""The end of a frame of a stream."""


class Durable(Value, rename={"aggregate": "aggregateID"}):
    """The position of an event in the log: the session, the event number, and the version of its shape."""

    aggregate: str
    seq: int
    version: int


class Second(Value):
    """An event; ``durable`` is set only if the log holds it."""

    id: str
    type: str
    durable: Durable | None = None
    location: Location | None = None
    data: object


def durable(event: NextEvent, *, is_local: bool) -> bytes:
    """An event of the log as JSON; in the stream of one session (``is_local``) without its directory."""
    return encode(
        Second(
            id=event.id,
            type=event.type,
            durable=Durable(aggregate=event.session_id, seq=event.number, version=event.version),
            location=None if is_local else Location(directory=event.directory),
            data=event.properties,
        )
    )

"""An event of the second generation as JSON: ``{"id", "type", "durable", "location", "data"}``."""

from typing import Final

from turnkeeper.model.value import Value, encode
from turnkeeper.server.v2.event import NextEvent
from turnkeeper.server.v2.shape import Location

END: Final = b"\n\n"
"""What ends a frame of a stream."""


class Durable(Value, rename={"aggregate": "aggregateID"}):
    """Its place in the log: of which session, under which number, and the version of its shape."""

    aggregate: str
    seq: int
    version: int


class Second(Value):
    """One event. What no log holds has no place in one."""

    id: str
    type: str
    durable: Durable | None = None
    location: Location | None = None
    data: object


def durable(event: NextEvent, *, is_local: bool) -> bytes:
    """One that the log holds; in the stream of one session it does not say where."""
    return encode(
        Second(
            id=event.id,
            type=event.type,
            durable=Durable(aggregate=event.session_id, seq=event.number, version=event.version),
            location=None if is_local else Location(directory=event.directory),
            data=event.properties,
        )
    )

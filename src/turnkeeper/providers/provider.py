"""Provider: the interface to a model. It takes a request and streams events."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent


@runtime_checkable
class Measuring(Protocol):
    """A provider that can count the messages of a request in its wire format, to locate a rejected message."""

    def wire_length(self, request: ModelRequest) -> int:
        """The number of messages of a request in the wire format."""
        ...


class Provider(Protocol):
    """Streams the answers of a model."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer in portions: the events that arrived together.

        An error of the provider or the network is not raised: it is the last event, an ``error`` with a typed Failure.
        There are no retries. Closing the generator closes the connection.
        """
        ...

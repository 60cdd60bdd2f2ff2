"""Provider: the seam to a model. Request in, stream events out."""

from collections.abc import AsyncIterator
from typing import Protocol

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent


class Provider(Protocol):
    """Something that answers requests."""

    def stream(self, request: ModelRequest) -> AsyncIterator[StreamEvent]:
        """The answer, as it comes. Never raises for what a provider or a network does: that is the last event, an
        ``error`` with a typed Failure. Never tries again by itself. Cancelling closes the connection.
        """
        ...

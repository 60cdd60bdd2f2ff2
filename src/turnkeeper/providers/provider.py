"""Provider: the seam to a model. Request in, stream events out."""

from collections.abc import AsyncGenerator, Sequence
from typing import Protocol, runtime_checkable

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent


@runtime_checkable
class Measuring(Protocol):
    """A provider that knows how many messages a request has on its wire: so a complaint about one can be placed."""

    def wire_length(self, request: ModelRequest) -> int:
        """How many messages the provider counts in this request."""
        ...


class Provider(Protocol):
    """Something that answers requests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer, in the portions in which it arrived: whoever shows it sends one delta for a portion.

        Never raises for what a provider or a network does: that is the last event, an ``error`` with a typed Failure.
        Never tries again by itself. Closing the generator closes the connection.
        """
        ...

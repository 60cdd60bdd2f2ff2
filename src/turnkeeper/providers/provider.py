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


class Begun(Protocol):
    """A request that is ready to be sent, or on its way but for its end.

    Whoever begins one drops it in the end, whatever happens.
    """

    def stream(self) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Send the end; the answer, as of ``Provider.stream``. Only once."""
        ...

    def drop(self) -> None:
        """Never send the end: the provider has seen nothing that it could answer. Nothing happens if it was sent."""
        ...


@runtime_checkable
class Beginning(Protocol):
    """A provider that can be sent most of a request before it may be asked, so that it reads while we write."""

    async def begin(self, request: ModelRequest) -> Begun | None:
        """Send all but the end, if that gains anything. Never waits.

        None, or whatever it raises, if nothing can be prepared: then ``stream`` meets it again, and says why.
        """
        ...


class Provider(Protocol):
    """Something that answers requests."""

    def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer, in the portions in which it arrived: whoever shows it sends one delta for a portion.

        Never raises for what a provider or a network does: that is the last event, an ``error`` with a typed Failure.
        Never tries again by itself. Closing the generator closes the connection.
        """
        ...

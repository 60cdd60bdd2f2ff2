"""Offline: the model that is always there. It follows rules, needs no key and no network, and says so."""

from collections.abc import AsyncGenerator, Sequence

import anyio

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.offline.answers import respond


class Offline:
    """A Provider. ``pause_s`` passes before every event, for people who want to watch it speak."""

    def __init__(self, *, pause_s: float = 0.0) -> None:
        self._pause_s = pause_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The answer by the rules."""
        for event in respond(request):
            await anyio.sleep(self._pause_s)
            yield [event]

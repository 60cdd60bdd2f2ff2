"""Offline: a rule-based provider without network and API key. Each answer says that it is not a language model."""

from collections.abc import AsyncGenerator, Sequence

import anyio

from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers.offline.answers import respond


class Offline:
    """A Provider that waits ``pause_s`` before every event, so that people can watch."""

    def __init__(self, *, pause_s: float = 0.0) -> None:
        self._pause_s = pause_s

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """The rule-based answer, one event a portion."""
        for event in respond(request):
            await anyio.sleep(self._pause_s)
            yield [event]

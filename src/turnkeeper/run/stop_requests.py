"""Stop requests: any process may ask for a session to be stopped; its owner finds the request in the store.

A request names the fence of the run that it means, so that one that comes late stops nothing else.
"""

from collections.abc import Awaitable, Callable, Mapping

import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.limits import STOP_POLL_S
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.run.leases import Pace
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, EngineError


class StopRequest(Value):
    """A request to stop the run of a session under this fence."""

    fence: int


_read = msgspec.json.Decoder(StopRequest).decode


async def request_stop(engine: Engine, session_id: str) -> None:
    """Ask the owner of a session to stop the run that is under way."""
    await engine.put({keys.stop_request(session_id): encode(StopRequest(fence=await engine.fence(session_id)))})


class StopRequests:
    """Looks for requests to stop the sessions of this runtime."""

    def __init__(
        self, engine: Engine, interrupt: Callable[[str], Awaitable[object]], group: TaskGroup, pace: Pace
    ) -> None:
        self._engine, self._interrupt, self._group, self._pace = engine, interrupt, group, pace

    async def heed(self, held: Callable[[], Mapping[str, int]]) -> None:
        """Stop the sessions that others ask to stop. ``held`` are those owned here, with their fences. Never ends."""
        seen: int | None = None
        while True:
            await self._pace.sleep(STOP_POLL_S)
            try:
                version = await self._engine.version()
                if version != seen:
                    await self._heed_once(held())
                seen = version
            except EngineError:
                seen = None  # The store cannot be read now, so no request can be written either.

    async def _heed_once(self, held: Mapping[str, int]) -> None:
        found = await self._engine.get([keys.stop_request(session_id) for session_id in held]) if held else []
        for session_id, body in zip(held, found, strict=True):
            if body is None:
                continue
            await self._engine.put({keys.stop_request(session_id): None})
            if _fence(body) == held[session_id]:
                self._group.start_soon(self._stop, session_id, name=f"stop {session_id}")

    async def _stop(self, session_id: str) -> None:
        await self._interrupt(session_id)


def _fence(body: bytes) -> int | None:
    try:
        return _read(body).fence
    except UNREADABLE:
        return None

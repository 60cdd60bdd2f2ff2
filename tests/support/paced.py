"""A clock for leases that a test advances, as a host would see it that was paused."""

import anyio
import anyio.lowlevel

from turnkeeper.run.leases import Pace


class Paced:
    """A clock that stands still until it is advanced."""

    def __init__(self) -> None:
        self._now = 1000.0
        self._sleepers: list[tuple[float, anyio.Event]] = []
        self._slept = anyio.Event()

    @property
    def pace(self) -> Pace:
        return Pace(lambda: self._now, self._sleep)

    def advance(self, seconds: float) -> None:
        self._now += seconds
        for due, woken in self._sleepers:
            if due <= self._now:
                woken.set()

    async def asleep(self, seconds: float) -> None:
        """Wait until a task waits for its time, which comes in ``seconds`` from now or later."""
        while not any(due - self._now >= seconds and not woken.is_set() for due, woken in self._sleepers):
            await self._slept.wait()

    async def _sleep(self, seconds: float) -> None:
        sleeper = (self._now + seconds, anyio.Event())
        self._sleepers.append(sleeper)
        self._slept.set()
        self._slept = anyio.Event()
        try:
            await anyio.lowlevel.checkpoint()
            if seconds > 0:
                await sleeper[1].wait()
        finally:
            self._sleepers.remove(sleeper)

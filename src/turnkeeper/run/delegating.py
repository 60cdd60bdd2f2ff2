"""A coordinator that runs nothing: it asks workers to run sessions, and waits until they have."""

import logging
from collections.abc import Awaitable, Callable

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.limits import WAKE_POLL_S
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.wakes import Wakes
from turnkeeper.store.engine import EngineError

log = logging.getLogger(__name__)


class DelegatingCoordinator(Coordinator):
    """Hands sessions to workers. What is done alone in a session, as a shell command of the user, is done here."""

    def __init__(self, group: TaskGroup, drain: Callable[[str, bool], Awaitable[str]], wakes: Wakes) -> None:
        super().__init__(group, drain)
        self._wakes = wakes

    def wake(self, session_id: str, *, resume: bool = False) -> None:
        """See to it that a worker looks at the session."""
        self._group.start_soon(self._post, session_id, resume, name=f"wake {session_id}")

    async def request(self, session_id: str, *, resume: bool = False) -> None:
        """See to it that a worker looks at the session; durably, once this returns."""
        await self._wakes.post(session_id, resume=resume)

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Have a worker run the session until it rests."""
        await self._wakes.post(session_id, resume=resume)
        return await self.wait(session_id)

    async def wait(self, session_id: str) -> Outcome:
        """Wait until no worker is asked to run the session any more."""
        outcome = await super().wait(session_id)
        await wait_for_worker(self._wakes, session_id)
        return outcome

    async def interrupt(self, session_id: str) -> bool:
        """Take back what was asked for, and stop what is done here; whether something was."""
        await self._wakes.withdraw(session_id)
        return await super().interrupt(session_id)

    def _restart(self, session_id: str, *, resume: bool) -> None:
        self._group.start_soon(self._post, session_id, resume, name=f"wake {session_id}")

    async def _post(self, session_id: str, resume: bool) -> None:
        try:
            await self._wakes.post(session_id, resume=resume)
        except EngineError as error:
            log.warning("no worker can be asked to run session %s: %s", session_id, error)


async def delegate(wakes: Wakes, session_id: str, *, resume: bool) -> str:
    """Have a worker run a session that may not be run here; returns the outcome."""
    await wakes.post(session_id, resume=resume)
    await wait_for_worker(wakes, session_id)
    return "a worker has run it"


async def wait_for_worker(wakes: Wakes, session_id: str) -> None:
    """Wait until no worker is asked to run the session any more."""
    while await wakes.waiting(session_id):  # noqa: ASYNC110 # Another process removes them.
        await anyio.sleep(WAKE_POLL_S)


def new_coordinator(
    group: TaskGroup, drain: Callable[[str, bool], Awaitable[str]], workers: Wakes | None
) -> Coordinator:
    """The coordinator of a runtime that runs sessions, or of one that asks ``workers`` to."""
    return Coordinator(group, drain) if workers is None else DelegatingCoordinator(group, drain, workers)

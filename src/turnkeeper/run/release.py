"""Release a session that is no longer run, also when the store takes no writes: then it is tried again until it does.

Until then the log names this process as the owner, and what the session's writer holds is in memory only. A session
that could not even be taken is tried again as well: no other process knows that it has a prompt to answer.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.limits import RELEASE_RETRY_S
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.engine import StaleFence, StoreUnavailable

log = logging.getLogger(__name__)


class Releases:
    """The sessions of this runtime that could not be released, or not be taken, yet."""

    def __init__(
        self,
        group: TaskGroup,
        sleep: Callable[[float], Awaitable[None]],
        wake: Callable[[str], None],
        *,
        runs: bool = True,
    ) -> None:
        """``runs``: sessions are run here. Else ``wake`` asks a worker, which can take only what is released."""
        self._group, self._sleep, self._wake, self._runs = group, sleep, wake, runs
        self._writers: dict[str, FencedWriter] = {}
        self._left: set[str] = set()
        self._not_taken: set[str] = set()
        self._lock = anyio.Lock()

    async def release(self, writer: FencedWriter, *, goes_on: bool) -> None:
        """Append what the writer holds and become idle; later, if the store takes no writes now.

        With ``goes_on`` the store stopped the session, and not the user. Then it stays busy until it is run again: if
        this process dies first, another one finds it so and takes it over.
        """
        try:
            if not goes_on:
                await writer.release()
                return
        except StoreUnavailable as error:
            log.warning("session %s cannot be released yet, and stays busy: %s", writer.session_id, error)
        self._writers[writer.session_id] = writer
        if goes_on and self._runs:
            self._left.add(writer.session_id)
        self._group.start_soon(self._retry, writer, goes_on, name=f"release {writer.session_id}")

    def is_owned(self, session_id: str) -> bool:
        """Whether a session was taken, and is still to be released."""
        return session_id in self._writers

    def is_left(self, session_id: str) -> bool:
        """Whether the store stopped the last run of a session, and it is still to be recovered."""
        return session_id in self._left

    def take_later(self, session_id: str) -> None:
        """Wake a session later that could not be taken, because the store is away."""
        if session_id not in self._not_taken:
            self._not_taken.add(session_id)
            self._group.start_soon(self._retry_taking, session_id, name=f"take {session_id}")

    async def finish(self, session_id: str) -> bool:
        """Release a session now that could not be released before, and do not take it later; whether it was to be.

        Raises StoreUnavailable if the store still takes no writes.
        """
        is_to_be_taken = session_id in self._not_taken
        self._not_taken.discard(session_id)
        return await self._finish(session_id) or is_to_be_taken

    async def _finish(self, session_id: str) -> bool:
        async with self._lock:
            writer = self._writers.get(session_id)
            if writer is None:
                return False
            with suppress(StaleFence):  # Another process owns the session now: what is held came too late.
                await writer.close_lost_turn(await writer.view())
                await writer.release()
            del self._writers[session_id]
            self._left.discard(session_id)
            return True

    async def flush(self, session_id: str) -> None:
        """Append what the last run of a session could not, before the next run. The session stays as busy as it is.

        Raises StoreUnavailable if the store still takes no writes.
        """
        async with self._lock:
            writer = self._writers.get(session_id)
            if writer is not None:
                with suppress(StaleFence):
                    await writer.flush()

    def forget(self, session_id: str) -> None:
        """There is nothing left to release or to take: the next run has taken the session, or found that it rests."""
        self._not_taken.discard(session_id)
        self._left.discard(session_id)
        writer = self._writers.pop(session_id, None)
        if writer is not None:
            writer.on_release()

    async def finish_all(self) -> None:
        """Try once to release every session that is still owned, and take none later."""
        self._not_taken.clear()
        for session_id in list(self._writers):
            with suppress(StoreUnavailable):
                await self.finish(session_id)

    async def _retry_taking(self, session_id: str) -> None:
        await self._sleep(RELEASE_RETRY_S)
        if session_id in self._not_taken:
            self._not_taken.discard(session_id)
            self._wake(session_id)

    async def _retry(self, writer: FencedWriter, goes_on: bool) -> None:
        while self._writers.get(writer.session_id) is writer:
            await self._sleep(RELEASE_RETRY_S)
            try:
                if not (goes_on and self._runs):
                    await self._finish(writer.session_id)
                if goes_on:
                    self._wake(writer.session_id)
            except StoreUnavailable:
                continue
            except Exception:
                # The top of a background job: what keeps one session from being released ends nothing else.
                log.exception("session %s cannot be released", writer.session_id)
                return

"""Keeps the leases of a runtime: renews the lease of the sessions it owns, and stops their runs if it cannot.

It beats only while the runtime owns a session. ``core/lease.py`` decides what to do, and when.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.labels import ANY_HOST
from turnkeeper.core.lease import Tenure, is_forgotten, next_at, next_step, stop_at
from turnkeeper.core.limits import HOSTS_TIDIED_BEATS
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, StatusChanged
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import Owner
from turnkeeper.model.value import UNREADABLE, encode
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.host import Host
from turnkeeper.run.leases import Leases, read_heartbeat, runtime_name
from turnkeeper.run.taking import take_session
from turnkeeper.store import keys
from turnkeeper.store.engine import EngineError, Key, StaleFence
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import process

log = logging.getLogger(__name__)


class LeaseKeeper:
    """Takes sessions for this runtime, and keeps the lease on them."""

    def __init__(
        self,
        store: Store,
        leases: Leases,
        group: TaskGroup,
        *,
        stop: Callable[[str], Awaitable[object]],
        wake: Callable[[str], None],
        while_owning: Callable[[Callable[[], Mapping[str, int]]], Awaitable[None]] | None = None,
        host: Host | None = None,
    ) -> None:
        """``stop`` ends the run of a session as if its process ended; ``wake`` makes it run again if it has work.

        ``while_owning`` runs as long as sessions are owned. It is given a function that returns them with their fences.
        """
        self._store, self.leases, self._group = store, leases, group
        self.host = host or Host(store, ANY_HOST)
        self._stop, self._wake, self._while_owning = stop, wake, while_owning
        self._held: dict[str, int] = {}
        self._stopped: set[str] = set()
        self._stopping: set[str] = set()
        self._tenure = Tenure(0)
        self._is_beating = False
        self._beat = 0
        self._role = ""
        self._concurrency: int | None = None
        self._is_announced = False
        self._address = ""
        self._is_draining = False

    @property
    def owner(self) -> Owner:
        """The owner that the log names for these sessions."""
        return self.leases.owner

    async def take(
        self, session_id: str, first: Callable[[SessionView], Sequence[Event]] = lambda view: (), *, at: str = ""
    ) -> FencedWriter:
        """Become the owner of a session as ``take_session`` says; also in the place of one whose lease has ended."""
        known = self._store.journal.cache.view(session_id)
        if known is not None and known.owner not in (None, self.owner):
            await self.leases.listen([session_id])
        begun = self.leases.pace.now()
        may_take = partial(self.leases.may_take, session_id)
        writer = await take_session(
            self._store, session_id, self.owner, partial(self._allowed, first), at=at, may_take=may_take
        )
        writer.on_release = partial(self._release, session_id, writer.fence)
        self._held[session_id] = writer.fence
        if not self._is_beating:
            self._begin(begun)
        return writer

    def is_cutting_off(self, session_id: str) -> bool:
        """Whether the run of a session is being stopped because its lease could not be kept."""
        return session_id in self._stopping

    def _allowed(self, first: Callable[[SessionView], Sequence[Event]], view: SessionView) -> Sequence[Event]:
        self.host.check(view)
        return first(view)

    def _begin(self, begun: float) -> None:
        # The append that took the session is a sign of life in itself; the first heartbeat can wait.
        self._is_beating, self._tenure = True, Tenure(begun)
        self._group.start_soon(self._work, name="heartbeats")

    def announce(self, role: str, concurrency: int | None = None, *, always: bool = True, address: str = "") -> None:
        """Say in heartbeats what this process is, so that people see who shares the store.

        It beats from now on. Unless ``always`` is set, it does so only while a session is owned, and once to tell the
        ``address`` of a server.
        """
        self._role, self._concurrency, self._is_announced, self._address = role, concurrency, always, address
        if self._is_needed and not self._is_beating:
            self._begin(self.leases.pace.now() - self.leases.terms.beat_s)

    def drain(self) -> None:
        """Say in the next heartbeats that no more sessions are taken."""
        self._is_draining = True

    @property
    def _is_needed(self) -> bool:
        is_to_be_told = self._address and not self._beat
        return bool(self._held or self._stopped or self._is_announced or is_to_be_told)

    def _release(self, session_id: str, fence: int) -> None:
        if self._held.get(session_id) == fence:
            del self._held[session_id]

    async def aclose(self) -> None:
        """Remove the heartbeat, unless a session is still owned."""
        self._is_announced, self._address = False, ""
        if self._beat and not self._held:
            with suppress(EngineError):
                await self._store.engine.put({self._key: None})

    async def _work(self) -> None:
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._work_beside)
                await self._keep()
                group.cancel_scope.cancel()
        finally:
            self._is_beating = False
        if self._is_needed:  # A session was taken in the moment when there was none.
            self._begin(self.leases.pace.now())

    async def _work_beside(self) -> None:
        if self._while_owning is not None:
            await self._while_owning(lambda: dict(self._held))

    async def _keep(self) -> None:
        terms, pace = self.leases.terms, self.leases.pace
        while self._is_needed:
            await pace.sleep(max(next_at(self._tenure, terms) - pace.now(), 0))
            if self._is_needed:
                await self._step()

    async def _step(self) -> None:
        terms, now = self.leases.terms, self.leases.pace.now()
        match next_step(self._tenure, terms, now):
            case "wait":
                return
            case "renew":
                await self._renew(stop_at(self._tenure, terms) - now)
            case "reclaim":
                if self._held:
                    log.warning("paused for %.0f s: asking whether the sessions were taken", now - self._tenure.renewed)
                await self._renew(terms.margin_s, reclaims=True)
                if self._tenure.failed is not None:
                    self._stop_all()
            case "stop":
                self._stop_all()
                await self._renew(terms.beat_s, reclaims=True)

    async def _renew(self, timeout_s: float, *, reclaims: bool = False) -> None:
        """Write a heartbeat; before it, with ``reclaims``, find out which sessions are still owned."""
        pace = self.leases.pace
        begun, is_done = pace.now(), False
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self._give_up, timeout_s, group.cancel_scope)
                if reclaims:
                    await self._reclaim()
                await self._write()
                is_done = True
                group.cancel_scope.cancel()
        except* EngineError as errors:
            log.warning("the heartbeat was not written: %s", errors.exceptions[0])
        self._tenure = Tenure(begun) if is_done else self._tenure._replace(failed=pace.now())
        if is_done:
            stopped, self._stopped = self._stopped, set()
            for session_id in sorted(stopped):
                self._wake(session_id)

    async def _give_up(self, timeout_s: float, scope: anyio.CancelScope) -> None:
        await self.leases.pace.sleep(timeout_s)
        self._stop_all()  # First: a write that hangs in a thread or a driver may not heed the cancellation.
        scope.cancel()

    async def _write(self) -> None:
        heartbeat = Heartbeat(
            owner=self.owner,
            beat=self._beat + 1,
            at=self._store.mint.now(),
            sessions=len(self._held),
            role=self._role,
            address=self._address,
            concurrency=self._concurrency,
            draining=self._is_draining,
            labels=self.host.labels.labels,
            only_labels=self.host.labels.only,
            lacking=self.host.lacking(),
        )
        forgotten = await self._forgotten() if self._beat % HOSTS_TIDIED_BEATS == 0 else []
        await self._store.engine.put({**dict.fromkeys(forgotten), self._key: encode(heartbeat)})
        self._beat += 1

    async def _forgotten(self) -> list[Key]:
        """The heartbeats of processes that ended long ago without taking their leave."""
        now, found = self._store.mint.now(), []
        for key, body in await self._store.engine.scan(("heartbeat",)):
            with suppress(*UNREADABLE):
                one = read_heartbeat(body)
                if is_forgotten(one, now) and process(one.owner) != "runs":
                    found.append(key)
        return found

    @property
    def _key(self) -> tuple[str, ...]:
        return keys.heartbeat(runtime_name(self.leases.owner))

    async def _reclaim(self) -> None:
        """Append to every session under its fence. One that was taken refuses it, and its run is stopped."""

        def decide(view: SessionView) -> list[Event]:
            is_own = view.owner == self.leases.owner
            return [StatusChanged(status=view.status, owner=view.owner)] if is_own else []

        for session_id, fence in list(self._held.items()):
            try:
                is_taken = (await self._store.journal.change(session_id, decide, fence=fence)).view.owner != self.owner
            except (StaleFence, NotFound):
                is_taken = True
            if is_taken and self._held.get(session_id) == fence:
                log.warning(
                    "session %s was taken over by another process while this one was stopped; its run ends here",
                    session_id,
                )
                self._release(session_id, fence)
                self._group.start_soon(self._stop_one, session_id, name=f"stop {session_id}")

    def _stop_all(self) -> None:
        for session_id in sorted(self._held.keys() - self._stopped):
            log.error("session %s is stopped: its lease could not be renewed and ends soon", session_id)
            self._stopped.add(session_id)
            self._group.start_soon(self._stop_one, session_id, name=f"stop {session_id}")

    async def _stop_one(self, session_id: str) -> None:
        self._stopping.add(session_id)
        try:
            await self._stop(session_id)
        finally:
            self._stopping.discard(session_id)

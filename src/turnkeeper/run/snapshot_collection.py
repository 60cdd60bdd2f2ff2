"""Snapshot collection: old snapshots are removed once a day, while no session runs."""

import logging
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.core.limits import SNAPSHOT_COLLECT_EVERY_S, SNAPSHOT_COLLECT_IDLE_S
from turnkeeper.core.restores import is_pending
from turnkeeper.model.refusal import NotFound
from turnkeeper.store.store import Store
from turnkeeper.workspace import snapshot_upkeep
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

log = logging.getLogger(__name__)

_EVERY_MS = int(SNAPSHOT_COLLECT_EVERY_S * 1000)


async def with_pending_undo(store: Store, sessions: Iterable[str]) -> set[str]:
    """The sessions that have a pending undo, or one that was cut off. Their snapshots must be kept."""
    pending = set()
    for session_id in sessions:
        with suppress(NotFound):  # It is in another store, or was deleted.
            if is_pending(await store.journal.view(session_id)):
                pending.add(session_id)
    return pending


class SnapshotCollection:
    """Collects the repositories that this process has opened. A session that begins to run stops it."""

    def __init__(
        self, store: Store, snapshots: Snapshots, group: TaskGroup, sleep: Callable[[float], Awaitable[None]]
    ) -> None:
        self._store, self._snapshots, self._group, self._sleep = store, snapshots, group, sleep
        self._running = 0
        self._scope: anyio.CancelScope | None = None
        self._collected: dict[Path, int] = {}

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Encloses the run of a session."""
        self._running += 1
        if self._scope is not None:
            self._scope.cancel()
        try:
            yield
        finally:
            self._running -= 1
            if not self._running and self._due():
                self._scope = anyio.CancelScope()
                self._group.start_soon(self._collect_all, self._scope, name="collect snapshots")

    def _due(self) -> list[ShadowRepository]:
        now = self._store.mint.now()
        last = self._collected
        return [one for one in self._snapshots.opened if now - last.get(one.place.git_dir, -_EVERY_MS) >= _EVERY_MS]

    async def _collect_all(self, scope: anyio.CancelScope) -> None:
        with scope:
            await self._sleep(SNAPSHOT_COLLECT_IDLE_S)
            for repository in self._due():
                try:
                    await self._collect(repository)
                except Exception:
                    # The top of a background task: it is tried again tomorrow.
                    log.exception("old snapshots of %r are not removed", str(repository.root))
                    self._collected[repository.place.git_dir] = self._store.mint.now()

    async def _collect(self, repository: ShadowRepository) -> None:
        place, now = repository.place, self._store.mint.now()
        last = await to_thread.run_sync(snapshot_upkeep.collected_at, place)
        if last is None or now - last >= _EVERY_MS:
            removed = await repository.collect()
            log.info("%d old snapshots of %r were removed", removed.snapshots, removed.directory)
            last = now
        self._collected[place.git_dir] = last

"""Snapshots of one turn: one before its calls, taken while the model thinks, and one after them.

Only a call waits for the first one. A turn without calls waits for none: it changes no file.
"""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.model.refusal import Refusal
from turnkeeper.workspace.snapshots import ShadowRepository

log = logging.getLogger(__name__)

OpenRepository: TypeAlias = Callable[[], Awaitable[ShadowRepository | None]]
"""Opens the shadow repository of a project; None where snapshots are off."""


async def no_snapshots() -> ShadowRepository | None:
    """Where snapshots are off."""
    return None


async def _nothing() -> None:
    pass


class TurnSnapshots:
    """Takes the snapshots of one turn."""

    def __init__(self, session_id: str, open: OpenRepository, group: TaskGroup) -> None:
        self._session_id, self._open, self._group = session_id, open, group
        self.before: str | None = None
        """The snapshot before the first call, once it is taken."""
        self.record: Callable[[], Awaitable[None]] = _nothing
        """Makes ``before`` durable, before a call acts."""
        self._recorded: str | None = None
        self._repository: ShadowRepository | None = None
        self._is_taken = anyio.Event()
        self._begun = self._ended = self._waiting = 0

    def begin(self) -> None:
        """Take the first snapshot in the background."""
        self._group.start_soon(self._take_first, name=f"snapshot {self._session_id}")

    @asynccontextmanager
    async def call(self) -> AsyncIterator[None]:
        """Encloses a call. It begins once the first snapshot is durable."""
        await self._is_taken.wait()
        await self._make_durable()
        self._begun += 1
        try:
            yield
        finally:
            self._ended += 1

    @contextmanager
    def waiting(self) -> Iterator[None]:
        """Encloses the wait of a call for the user."""
        self._waiting += 1
        try:
            yield
        finally:
            self._waiting -= 1

    async def after_waiting(self) -> None:
        """Take the first snapshot anew if no call has acted yet: the user may have edited files in the meantime."""
        if self._repository is None or self._ended or self._begun - self._waiting > 1:
            return
        taken = await self._repository.capture(self._session_id)
        if taken is not None:
            self.before = taken
            await self._make_durable()

    async def finish(self) -> TurnFiles | None:
        """What the calls did to the files; None if that is not known."""
        if self.before is None or self._repository is None:
            return None
        if not self._begun:
            return TurnFiles(before=self.before, after=self.before)
        after = await self._repository.capture(self._session_id)
        if after is None:
            return None
        try:
            names = await self._repository.changed(self.before, after) if after != self.before else ()
        except Refusal as refusal:
            log.warning("what a turn of %s changed is not known: %s", self._session_id, refusal)
            return None
        files = tuple(str(self._repository.root / name) for name in names)
        return TurnFiles(before=self.before, after=after, files=files)

    async def _make_durable(self) -> None:
        if self.before != self._recorded:
            self._recorded = self.before
            await self.record()

    async def _take_first(self) -> None:
        try:
            self._repository = await self._open()
            if self._repository is not None:
                self.before = await self._repository.capture(self._session_id)
        except Exception:
            # The top of a background task: a turn without snapshots is better than none.
            log.exception("no snapshot for %s", self._session_id)
        finally:
            self._is_taken.set()

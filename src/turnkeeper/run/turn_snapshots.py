"""Snapshots of one turn: one before its calls act, and one after them.

A call that may change files waits for the first one, which is taken when the call begins: what the user edited while
the model was thinking is not the turn's. For the same reason the snapshot after one turn is not the one before the
next. A turn that lasts for a moment takes a snapshot early, so that a call then finds little left to do. A short turn
without such a call takes none.
"""

import logging
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.file_changes import TurnFiles, names_below, told
from turnkeeper.core.limits import SNAPSHOT_DELAY_S
from turnkeeper.model.refusal import Refusal
from turnkeeper.workspace import claims
from turnkeeper.workspace.gaps import Captured
from turnkeeper.workspace.snapshots import ShadowRepository
from turnkeeper.workspace.step_changes import step_changes

log = logging.getLogger(__name__)

OpenRepository: TypeAlias = Callable[[], Awaitable[ShadowRepository | None]]
"""Opens the shadow repository of a project; None where snapshots are off."""


async def no_snapshots() -> ShadowRepository | None:
    """Where snapshots are off."""
    return None


async def _nothing() -> None:
    pass


async def no_callers() -> Sequence[str]:
    """Where no call waits for the session."""
    return ()


class TurnSnapshots:
    """Takes the snapshots of one turn."""

    def __init__(
        self,
        session_id: str,
        open: OpenRepository,
        group: TaskGroup,
        sleep: Callable[[float], Awaitable[None]],
        find_callers: Callable[[], Awaitable[Sequence[str]]] = no_callers,
    ) -> None:
        self._session_id, self._open, self._group, self._sleep = session_id, open, group, sleep
        self._find_callers = find_callers
        self._callers: Sequence[str] = ()
        """The sessions whose calls wait for this one: what it writes is their change, too."""
        self._before: Captured | None = None
        self.record: Callable[[], Awaitable[None]] = _nothing
        """Makes ``before`` durable, before a call acts."""
        self._recorded: str | None = None
        self._repository: ShadowRepository | None = None
        self._delay = anyio.CancelScope()
        self._is_early_over = anyio.Event()
        self._beginning = anyio.Lock()
        self._acting: set[str] = set()
        self._has_acted = False
        self._has_run_command = False
        self._written: set[str] = set()
        """The files that calls have named, relative to the top."""

    @property
    def before(self) -> str | None:
        """The newest snapshot before the first call acted."""
        return self._before.tree if self._before is not None else None

    @property
    def needs_last(self) -> bool:
        """Whether a snapshot is taken at the end of the turn."""
        return self.before is not None and self._has_acted

    def begin(self) -> None:
        """Take a snapshot in the background if the turn lasts for a moment."""
        if self._open is no_snapshots:
            self._is_early_over.set()
        else:
            self._group.start_soon(self._take_early, name=f"snapshot {self._session_id}")

    @asynccontextmanager
    async def call(self, part_id: str, *, is_command: bool = True) -> AsyncIterator[None]:
        """Encloses a call that may change files. It begins once the first snapshot is durable.

        A call that is no command names the files that it changes (``wrote``).
        """
        await self._act(part_id)
        try:
            yield
        finally:
            if part_id in self._acting:
                self._acting.discard(part_id)
                self._has_acted = True
                self._has_run_command |= is_command
                self._claim(() if is_command else self._written)

    @asynccontextmanager
    async def waiting(self, part_id: str) -> AsyncIterator[None]:
        """Encloses the wait of a call for the user. Then the first snapshot is taken anew, if no call has acted."""
        if part_id not in self._acting:  # The call changes no file.
            yield
            return
        self._acting.discard(part_id)
        yield
        await self._act(part_id)

    def wrote(self, path: Path) -> None:
        """Note that a call is about to write a file, so that no other session claims the change."""
        if self._repository is not None:
            real = Path(os.path.realpath(path.parent), path.name)
            names = names_below(str(self._repository.root), (str(real), os.path.realpath(path)))
            self._written.update(names)
            self._claim(names)

    async def finish(self) -> TurnFiles | None:
        """The changes of the calls to files; None if they are not known."""
        self._delay.cancel()
        before, repository = self._before, self._repository
        if before is None or repository is None:
            return None
        if not self._has_acted:
            return TurnFiles(before=before.tree, after=before.tree)
        after = await repository.take(self._session_id)
        if after is None:
            return None
        try:
            found = await step_changes(repository, self._session_id, before, after)
        except Refusal as refusal:
            log.warning("what a turn of %s changed is not known: %s", self._session_id, refusal)
            return None
        if not self._has_run_command:
            found = found.only(self._written)
        self._claim(found.files)
        top = repository.root
        return TurnFiles(
            before=before.tree,
            after=after.tree,
            files=tuple(str(top / name) for name in found.files),
            during=tuple(str(top / name) for name in found.files if name not in self._written),
            unrecorded=told(found.unrecorded),
        )

    def _claim(self, names: Collection[str]) -> None:
        if self._repository is not None:
            claims.add(self._repository.place, self._session_id, names, self._callers)

    async def _act(self, part_id: str) -> None:
        """Let a call act. The first one waits for a snapshot of the files as they are now."""
        self._delay.cancel()
        await self._is_early_over.wait()
        async with self._beginning:
            if not self._acting and not self._has_acted:
                self._callers = await self._find_callers()
                await self._take(with_ignored=True)
                if self.before != self._recorded:
                    self._recorded = self.before
                    await self.record()
            self._acting.add(part_id)

    async def _take_early(self) -> None:
        try:
            with self._delay:
                await self._sleep(SNAPSHOT_DELAY_S)
            if not self._delay.cancel_called:
                await self._take()
        finally:
            self._is_early_over.set()

    async def _take(self, *, with_ignored: bool = False) -> None:
        try:
            self._repository = await self._open()
            if self._repository is not None:
                self._before = await self._repository.take(self._session_id, with_ignored=with_ignored) or self._before
        except Exception:
            # Nothing that goes wrong here may end the turn: a turn without snapshots is better than none.
            log.exception("no snapshot for %s", self._session_id)

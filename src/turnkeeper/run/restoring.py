"""Restoring files: plans what a revert does to the files of a project, and carries the plan out."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec
from anyio import to_thread

from turnkeeper.core.revert import FileStep, Merging, Trees, file_edits, redo, undo
from turnkeeper.core.view import Restore
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.restore import FileRestore, FileState
from turnkeeper.model.session import FileDiff
from turnkeeper.store.crash import crash_point
from turnkeeper.workspace.restore import OTHER, READ_AT_ONCE, Restorer, read
from turnkeeper.workspace.snapshots import ShadowRepository


class FileRestoring(msgspec.Struct):
    """The files of one session's project."""

    repository: ShadowRepository
    session_id: str
    directory: Path
    """Where the session works. It stays, also if it becomes empty."""
    stored: set[str] = msgspec.field(default_factory=set)
    """The contents that planning has stored: what files are now, and what was merged."""

    @property
    def root(self) -> str:
        """The top that all names are relative to."""
        return str(self.repository.root)

    async def undo(self, steps: Sequence[FileStep], done: Restore | None) -> tuple[FileRestore, ...]:
        """What becomes of the files of these steps. ``done`` is what a revert that is still staged has done."""
        pending = {one.file: one.undone for one in done.files if one.undone is not None} if done is not None else {}
        edits = file_edits(steps, await self._trees(steps))
        names = sorted({*edits, *pending})
        now = await self._now(names)
        return await self._decided(undo(name, now.get(name), edits.get(name, ()), pending.get(name)) for name in names)

    async def redo(self, done: Restore) -> tuple[FileRestore, ...]:
        """What becomes of the files when the revert is cleared."""
        pending = {one.file: one.undone for one in done.files if one.undone is not None}
        now = await self._now(sorted(pending))
        return await self._decided(redo(name, now.get(name), edit) for name, edit in sorted(pending.items()))

    async def keep(self) -> None:
        """Keep what planning has stored until the session is removed or its snapshots are."""
        if self.stored:
            await self.repository.keep(self.session_id, sorted(self.stored))

    async def write(self, files: Sequence[FileRestore]) -> dict[str, str]:
        """Bring the files to their new states; those that were left as they are, with the reasons."""
        permissions = await self.repository.permissions() if any(one.now is None for one in files) else {}
        restorer = Restorer(self.repository.root, self._contents, self.directory, crash_point, permissions)
        return await restorer.restore(files)

    async def diff_now(self, before: str | None, names: Iterable[str]) -> tuple[FileDiff, ...]:
        """How these files differ now from a tree, as git prints it; nothing if there is none."""
        after = await self.repository.capture(self.session_id) if before is not None else None
        if before is None or after is None:
            return ()
        try:
            return await self.repository.git_diff(before, after, sorted(names))
        except NotFound:
            return ()

    async def diff(self, before: str, after: str, names: Iterable[str]) -> tuple[FileDiff, ...]:
        """How these files differ between two trees; nothing if one of them is no longer kept."""
        try:
            return await self.repository.diff(before, after, sorted(names))
        except NotFound:
            return ()

    async def _trees(self, steps: Sequence[FileStep]) -> Trees:
        """The files of the steps' trees; None for a tree that is no longer kept."""
        wanted: dict[str, set[str]] = {}
        for step in steps:
            for tree in (step.start, step.end):
                if tree is not None:
                    wanted.setdefault(tree, set()).update(step.files)
        return {tree: await self._entries(tree, sorted(names)) for tree, names in wanted.items()}

    async def _entries(self, tree: str, names: Sequence[str]) -> Mapping[str, FileState] | None:
        try:
            found = await self.repository.entries(tree, names)
        except NotFound:
            return None
        return {name: FileState(mode=one.mode, blob=one.blob) for name, one in found.items()}

    async def _now(self, names: Sequence[str]) -> dict[str, FileState]:
        """The files on disk. Their contents are stored, so that they can be merged and brought back."""
        now: dict[str, FileState] = {}
        for begin in range(0, len(names), READ_AT_ONCE):
            found = await to_thread.run_sync(read, self.repository.root, names[begin : begin + READ_AT_ONCE])
            kept = [(name, one) for name, one in found.items() if one.mode != OTHER]
            blobs = await self.repository.store([one.content for _, one in kept])
            self.stored.update(blobs)
            now |= {name: FileState(mode=one.mode, blob=blob) for (name, one), blob in zip(kept, blobs, strict=True)}
            now |= {name: FileState(mode=OTHER, blob="") for name, one in found.items() if one.mode == OTHER}
        return now

    async def _decided(self, decisions: Iterable[Merging]) -> tuple[FileRestore, ...]:
        found = [await self._merged(decision) for decision in decisions]
        return tuple(one for one in found if one.kind != "unchanged" or one.undone is not None)

    async def _merged(self, decision: Merging) -> FileRestore:
        """Carry out the merges that a decision asks for."""
        try:
            wanted = next(decision)
            while True:
                merged = await self.repository.merge(*wanted)
                self.stored.update([merged] if merged is not None else [])
                wanted = decision.send(merged)
        except StopIteration as decided:
            restored: FileRestore = decided.value
            return restored

    async def _contents(self, blobs: Sequence[str]) -> Mapping[str, bytes]:
        try:
            return await self.repository.read(blobs)
        except NotFound:
            found = [await self._content(blob) for blob in blobs]  # One is gone; the others are still wanted.
            return {blob: content for one in found for blob, content in one.items()}

    async def _content(self, blob: str) -> Mapping[str, bytes]:
        try:
            return await self.repository.read([blob])
        except NotFound:
            return {}

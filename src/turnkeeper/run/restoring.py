"""Restoring files: plans what a revert does to the files of a project, and carries the plan out."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from anyio import to_thread

from turnkeeper.core.revert import (
    NO_TEXT,
    SAME_LINES,
    FileStep,
    Merge,
    Merging,
    Trees,
    file_edits,
    merged_anew,
    redo,
    undo,
)
from turnkeeper.core.view import Restore
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.restore import OTHER_MODE, FileEdit, FileRestore, FileState
from turnkeeper.model.session import FileDiff
from turnkeeper.store.crash import crash_point
from turnkeeper.workspace import claims
from turnkeeper.workspace.file_states import blob_name
from turnkeeper.workspace.restore import READ_AT_ONCE, Progress, Restorer, no_progress, read
from turnkeeper.workspace.snapshots import ShadowRepository

_SNIFFED_BYTES: Final = 8000
"""How much git looks at to tell whether a file is text."""


class FileRestoring(msgspec.Struct):
    """The files of one session's project."""

    repository: ShadowRepository
    session_id: str
    directory: Path
    """The directory of the session. It is kept, even if it becomes empty."""
    stored: set[str] = msgspec.field(default_factory=set)
    """The contents that planning has stored: what files are now, and what was merged."""

    @property
    def root(self) -> str:
        """The top that all names are relative to."""
        return str(self.repository.root)

    async def undo(self, steps: Sequence[FileStep], done: Restore | None) -> tuple[FileRestore, ...]:
        """The planned changes that undo these steps. ``done`` is a revert that is still staged."""
        pending = _pending(done)
        edits = file_edits(steps, await self._trees(steps))
        known = [*pending.values(), *(edit for found in edits.values() for edit in found)]
        return await self._planned(
            {*edits, *pending}, known, lambda name, now: undo(name, now, edits.get(name, ()), pending.get(name))
        )

    async def redo(self, done: Restore) -> tuple[FileRestore, ...]:
        """The planned changes that clear a revert."""
        pending = _pending(done)
        return await self._planned(pending, [*pending.values()], lambda name, now: redo(name, now, pending[name]))

    async def merge_anew(self, files: Iterable[FileRestore]) -> dict[str, FileRestore]:
        """The planned changes of files that others changed after their restore was cut off."""
        planned = {one.file: one for one in files}
        known = [FileEdit(before=one.to, after=one.now) for one in planned.values()]
        return await self._decided(planned, known, lambda name, now: merged_anew(planned[name], now))

    async def keep(self) -> None:
        """Keep what planning has stored until the session is removed or its snapshots are."""
        if self.stored:
            await self.repository.keep(self.session_id, sorted(self.stored))

    async def write(self, files: Sequence[FileRestore], progress: Progress = no_progress) -> dict[str, str]:
        """Bring the files to their new states; those that were left as they are, with the reasons."""
        # A plan of an earlier version may name files of the store.
        files = [one for one in files if not self.repository.own.has(one.file)]
        permissions = await self.repository.permissions() if any(one.now is None for one in files) else {}
        top = self.repository.root
        # A command of another session that runs meanwhile has not changed these files.
        claims.add(self.repository.place, self.session_id, [one.file for one in files if one.writes])
        restorer = Restorer(top, self._contents, self.directory, crash_point, permissions, progress)
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

    async def _planned(
        self,
        names: Iterable[str],
        known: Iterable[FileEdit | None],
        decide: Callable[[str, FileState | None], Merging],
    ) -> tuple[FileRestore, ...]:
        """Decide about each file; those that are known to a redo, or that change."""
        decided = await self._decided([name for name in names if not self.repository.own.has(name)], known, decide)
        found = [decided[name] for name in sorted(decided)]
        return tuple(one for one in found if one.kind != "unchanged" or one.undone is not None)

    async def _decided(
        self,
        names: Iterable[str],
        known: Iterable[FileEdit | None],
        decide: Callable[[str, FileState | None], Merging],
    ) -> dict[str, FileRestore]:
        """Decide about each file. Those behind a link come last: there is none of them if the link goes."""
        now, links = await self._now(sorted(names), _blobs(known))
        decided: dict[str, FileRestore] = {}
        for name in sorted(names, key=lambda one: (one in links, one)):
            link = decided.get(links.get(name, ""))
            is_link_gone = link is not None and link.writes and link.to is None
            decided[name] = await self._merged(decide(name, None if is_link_gone else now.get(name)))
        return decided

    async def _now(self, names: Sequence[str], known: Collection[str]) -> tuple[dict[str, FileState], dict[str, str]]:
        """The files on disk, and the links that others are behind.

        Contents that are not ``known`` are stored, so that they can be merged and brought back.
        """
        now: dict[str, FileState] = {}
        links: dict[str, str] = {}
        digits = len(next(iter(known), ""))
        for begin in range(0, len(names), READ_AT_ONCE):
            found = await to_thread.run_sync(_hashed, self.repository.root, names[begin : begin + READ_AT_ONCE], digits)
            new = [one for one in found if one.state.mode != OTHER_MODE and one.state.blob not in known]
            blobs = await self.repository.store([one.content for one in new])
            self.stored.update(blobs)
            now |= {one.name: one.state for one in found}
            now |= {one.name: one.state.but(blob=blob) for one, blob in zip(new, blobs, strict=True)}
            links |= {one.name: one.link for one in found if one.link is not None}
        return now, links

    async def _merged(self, decision: Merging) -> FileRestore:
        """Carry out the merges that a decision asks for."""
        wanted = merged = None
        try:
            wanted = next(decision)
            while True:
                merged = await self.repository.merge(*wanted)
                self.stored.update([merged] if merged is not None else [])
                wanted = decision.send(merged)
        except StopIteration as decided:
            restored: FileRestore = decided.value
        if restored.reason == SAME_LINES and wanted is not None and await self._is_binary(wanted):
            return restored.but(reason=NO_TEXT)
        return restored

    async def _is_binary(self, wanted: Merge) -> bool:
        """Whether one of the contents is no text, as git sees it."""
        return any(b"\0" in content[:_SNIFFED_BYTES] for content in (await self._contents(wanted)).values())

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


class _Hashed(NamedTuple):
    """A file on disk."""

    name: str
    state: FileState
    content: bytes
    link: str | None


def _hashed(root: Path, names: Sequence[str], digits: int) -> list[_Hashed]:
    found = read(root, names)
    blobs = {name: "" if one.mode == OTHER_MODE else blob_name(one.content, digits) for name, one in found.items()}
    return [
        _Hashed(name, FileState(mode=one.mode, blob=blobs[name]), one.content, one.link) for name, one in found.items()
    ]


def _pending(done: Restore | None) -> dict[str, FileEdit]:
    """The changes that a revert that is still staged has made to files."""
    return {one.file: one.undone for one in done.files if one.undone is not None} if done is not None else {}


def _blobs(edits: Iterable[FileEdit | None]) -> frozenset[str]:
    """The contents that snapshots have."""
    states = [state for edit in edits if edit is not None for state in (edit.before, edit.after)]
    return frozenset(state.blob for state in states if state is not None and state.blob)

"""Fork a session into a new worktree that has the files of the moment, so that two attempts run side by side."""

from collections.abc import Mapping
from pathlib import Path

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.sessions import fork as forking
from turnkeeper.sessions.changes import SnapshotReader, tree_before
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.worktree import new_worktree


async def fork(
    store: Store,
    reader: SnapshotReader,
    session_id: str,
    target: Path,
    environ: Mapping[str, str],
    *,
    message_id: str | None = None,
    at: int | None = None,
) -> Session:
    """Fork a session as of an event, or before a message, into a new worktree. If it fails, there is neither."""
    known = await tree_before(store, session_id, message_id if at is None else at)
    if known is None:
        raise NotFound(f"session {session_id!r} has no snapshot of files to restore; fork it without a worktree")
    repository = await reader.repository(known.directory)
    async with new_worktree(repository, known.tree, target, environ) as top:
        directory = Path(known.directory)
        below = directory.relative_to(repository.root) if directory.is_relative_to(repository.root) else Path()
        place = await identify(top / below if (top / below).is_dir() else top, environ=environ)
        return await forking.fork(store, session_id, message_id=message_id, at=at, place=place)

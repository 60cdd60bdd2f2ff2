"""Changes of files: what a session, one of its prompts or turns did to files, or what differs between two moments."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from turnkeeper.core import history_trees
from turnkeeper.core.file_changes import names_below, not_recorded
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.history_trees import KnownTree, TurnPatch
from turnkeeper.core.revert import unknown_turns
from turnkeeper.core.stored_changes import stored_change
from turnkeeper.model.config import Config
from turnkeeper.model.file_change import FileChange
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import FileDiff
from turnkeeper.sessions.past import past
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.workspace import tree_changes
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

Moment: TypeAlias = int | str
"""The seq of an event, or the id of a message."""


class SnapshotReader:
    """Reads the snapshots of any directory, also where none are taken any longer."""

    def __init__(self, environ: Mapping[str, str], now: Callable[[], int], store: tuple[Path, ...] = ()) -> None:
        """``store`` are the files or folders of the store, which count as no change."""
        self._environ, self._snapshots = environ, Snapshots(environ, now, store=store)
        self._known: dict[str, ShadowRepository] = {}

    async def repository(self, directory: str) -> ShadowRepository:
        """The shadow repository of a directory. Raises NotFound if there can be none."""
        if directory in self._known:
            return self._known[directory]
        place = await identify(directory, environ=self._environ)
        found = await self._snapshots.of(place, Config())
        if found is None:
            raise NotFound(f"there are no snapshots of {directory!r}, because git is missing or it holds your home")
        self._known[directory] = found
        return found

    async def changes(
        self, before: KnownTree, after: KnownTree, files: Sequence[str] | None = None, *, exact: bool = False
    ) -> tuple[FileChange, ...]:
        """The changes between two snapshots, of all files or of these. Raises NotFound if one is no longer kept."""
        repository = await self.repository(before.directory)
        if after.directory != before.directory and (await self.repository(after.directory)).root != repository.root:
            raise Invalid(
                f"the session worked in {before.directory!r} and then in {after.directory!r}; their files are not the "
                "same, so name two moments in one directory"
            )
        names = names_below(str(repository.root), files) if files is not None else None
        return await tree_changes.changes(repository, before.tree, after.tree, names, exact=exact)


async def of_session(
    queries: Queries, reader: SnapshotReader, session_id: str, *, exact: bool = False
) -> tuple[FileChange, ...]:
    """The file changes of a session without undone ones: the current ones, or those at the moment of the queries."""
    stored = await queries.diffs(session_id)
    session, first = await queries.session(session_id), (await queries.state(session_id)).first_patch
    if session.revert is not None:
        stored = ()  # While an undo is pending, these are the changes that it took back.
    elif first is None:
        return tuple(map(stored_change, stored))
    history = list(history_trees.in_force(await _history(queries, session_id), session.revert))
    begin = next((place for place, one in enumerate(history) if first and one.info.id == first.message_id), 0)
    return await _shown(reader, history_trees.joined(history_trees.patches(history[begin:])), stored, exact)


async def of_message(
    store: Store, reader: SnapshotReader, session_id: str, message_id: str, *, exact: bool = False
) -> tuple[FileChange, ...]:
    """The file changes of the turns that answer a prompt, or of one turn."""
    asked = await store.queries.message(session_id, message_id)
    turns, stored = [asked], tuple[FileDiff, ...]()
    if isinstance(asked.info, UserMessage):
        turns = _answers(await _history(store.queries, session_id), message_id)
        stored = asked.info.summary.diffs if asked.info.summary is not None else ()
    return await _shown(reader, history_trees.joined(history_trees.patches(turns)), stored, exact)


async def not_known(store: Store, session_id: str, message_id: str | None = None) -> str | None:
    """The possible changes of a session, a prompt or a turn that are not known, as text; None if there are none."""
    turns = await _history(store.queries, session_id)
    if message_id is not None:
        asked = await store.queries.message(session_id, message_id)
        turns = _answers(turns, message_id) if isinstance(asked.info, UserMessage) else [asked]
    items = [HistoryItem(message=one.info, parts=one.parts) for one in turns]
    lost = unknown_turns(items)
    words = f"what these turns changed is not known: {', '.join(lost)}" if lost else None
    return "; ".join(filter(None, (words, not_recorded(items)))) or None


async def between(
    store: Store,
    reader: SnapshotReader,
    session_id: str,
    start: Moment | None,
    end: Moment | None,
    *,
    exact: bool = False,
) -> tuple[FileChange, ...]:
    """The differences of the files between two moments: by default from the first snapshot to the newest one."""
    history = await _history(store.queries, session_id)
    known = [tree for one in history for tree in history_trees.trees(one)]
    before = await _tree_at(store, session_id, history, start, is_end=False) if start is not None else None
    if end is not None:
        after = await _tree_at(store, session_id, history, end, is_end=True)
    else:
        after = await tree_before(store, session_id, None)
    if not known:
        raise NotFound(f"session {session_id!r} has no snapshot of files; its turns called no tools, or took none")
    return await reader.changes(before or known[0], after or known[0], exact=exact)


async def tree_at(store: Store, session_id: str, seq: int) -> KnownTree | None:
    """The newest snapshot that was known after an event; None if there was none yet."""
    then = await past(store, session_id, seq)
    return history_trees.newest(await _history(then.queries, session_id), (await then.session()).revert)


async def tree_before(store: Store, session_id: str, moment: Moment | None) -> KnownTree | None:
    """The snapshot nearest to a moment, by default the newest one; None if the session has none at all."""
    history = await _history(store.queries, session_id)
    if moment is None:
        found = history_trees.newest(history, (await store.queries.session(session_id)).revert)
    else:
        found = await _tree_at(store, session_id, history, moment, is_end=False)
    return found or next((tree for one in history for tree in history_trees.trees(one)), None)


async def _tree_at(
    store: Store, session_id: str, history: Sequence[MessageWithParts], moment: Moment, *, is_end: bool
) -> KnownTree | None:
    """The snapshot nearest to a moment. A prompt is the moment before it ran; a turn as the end is its end."""
    if isinstance(moment, int):
        return await tree_at(store, session_id, moment)
    message = next((one for one in history if one.info.id == moment), None)
    if message is None:
        raise NotFound(f"there is no message {moment!r} in session {session_id!r}")
    if isinstance(message.info, AssistantMessage):
        own = history_trees.trees(message)
    else:
        own = [tree for one in _answers(history, moment) for tree in history_trees.trees(one)]
        is_end = False
    if own:
        return own[-1 if is_end else 0]
    return history_trees.newest(one for one in history if one.info.seq < message.info.seq)


async def _shown(
    reader: SnapshotReader, patch: TurnPatch | None, stored: Sequence[FileDiff], exact: bool
) -> tuple[FileChange, ...]:
    """The changes from the snapshots, which tell renames; from what is stored if they are no longer kept."""
    if patch is None:
        return tuple(map(stored_change, stored))
    try:
        return await reader.changes(patch.before, patch.after, patch.files, exact=exact)
    except (NotFound, Invalid):
        if not stored:
            raise
        return tuple(map(stored_change, stored))


def _answers(history: Sequence[MessageWithParts], prompt_id: str) -> list[MessageWithParts]:
    return [one for one in history if isinstance(one.info, AssistantMessage) and one.info.parent_id == prompt_id]


async def _history(queries: Queries, session_id: str) -> list[MessageWithParts]:
    # Marks instead of blobs: only the snapshots of the messages are read.
    return [one async for some in queries.walk(session_id, with_marks=True) for one in some]

"""Summaries of file changes: the diffs of a session and of its newest prompt, made in the background."""

import logging

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.file_changes import TurnFiles, files_since, names_below, summarised
from turnkeeper.core.history import History
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import UserMessage
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.turn_snapshots import OpenRepository
from turnkeeper.store.store import Store

log = logging.getLogger(__name__)


class Changed(msgspec.Struct, frozen=True):
    """A turn changed files: since which snapshot the session changes them, and what the turns of the prompt did."""

    first: str
    prompt: TurnFiles
    user: UserMessage
    open: OpenRepository


class ChangeSummaries:
    """Records summaries, each session's in a task of its own. Of several that wait only the newest is made."""

    def __init__(self, store: Store, group: TaskGroup) -> None:
        self._store, self._group = store, group
        self._newest: dict[str, Changed] = {}
        self._under_way: dict[str, anyio.Event] = {}

    def begin(self, session_id: str, changed: Changed) -> None:
        """Record the summary in the background."""
        self._newest[session_id] = changed
        if session_id not in self._under_way:
            self._under_way[session_id] = anyio.Event()
            self._group.start_soon(self._record_all, session_id, name=f"changes of {session_id}")

    def after_turn(
        self, view: SessionView, history: History, user: UserMessage, files: TurnFiles | None, open: OpenRepository
    ) -> None:
        """Record the summary of a turn in the background, if it changed files."""
        if files is not None and files.files:
            first = view.first_patch.tree if view.first_patch is not None else files.before
            self.begin(view.session.id, Changed(first, files_since(history, user.id, files), user, open))

    async def wait(self, session_id: str) -> None:
        """Wait until the summaries of a session are recorded."""
        if (under_way := self._under_way.get(session_id)) is not None:
            await under_way.wait()

    async def _record_all(self, session_id: str) -> None:
        try:
            while (changed := self._newest.pop(session_id, None)) is not None:
                await self._record(session_id, changed)
        except Refusal as refusal:  # Snapshots are gone, such as with the repository that a command removed.
            log.warning("the changes of %s are not summarised: %s", session_id, refusal)
        except Exception:
            # The top of a background task: a session without a summary is no reason to end anything.
            log.exception("the changes of %s are not summarised", session_id)
        finally:
            self._newest.pop(session_id, None)
            self._under_way.pop(session_id).set()

    async def _record(self, session_id: str, changed: Changed) -> None:
        repository = await changed.open()
        if repository is None:
            return
        names = names_below(str(repository.root), changed.prompt.files)
        known = [diff.file for diff in await self._store.queries.diffs(session_id) if diff.file is not None]
        prompt, after = changed.prompt, changed.prompt.after
        of_prompt = await repository.diff(prompt.before, after, names)
        of_session = of_prompt
        if (changed.first, set(names)) != (prompt.before, {*known, *names}):
            of_session = await repository.diff(changed.first, after, sorted({*known, *names}))
        events = summarised(of_session, changed.user, of_prompt)
        await self._store.journal.append(session_id, *events)

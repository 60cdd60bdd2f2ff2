"""Past: what sessions were and did: earlier states, changes of files, and who wrote a line."""

from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.workspace.project import identify

if TYPE_CHECKING:
    from turnkeeper.core.blame import Blame
    from turnkeeper.core.session_diff import SessionDiff
    from turnkeeper.model.file_change import FileChange
    from turnkeeper.sessions.changes import SnapshotReader
    from turnkeeper.sessions.past import PastSession


@checked
class Past(Running):
    """The methods that look back. Imports are inside of them, because most programs do not."""

    async def at(self, session_id: str, seq: int) -> "PastSession":
        """A session as it was after event ``seq``: ``await (await tk.at(session_id, 12)).messages()``."""
        from turnkeeper.sessions.past import past

        return await past(self.store, session_id, seq)

    async def changes(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        start: int | str | None = None,
        end: int | str | None = None,
        at: int | None = None,
        exact: bool = False,
    ) -> "tuple[FileChange, ...]":
        """What a session, a prompt or a turn changed on disk, or what differs between two moments of the session.

        A moment is the seq of an event or the id of a message: of a prompt, before it ran; of a turn, before it as the
        start and after it as the end. ``at``: what the session had changed after this event. Unlike ``diffs``, this
        tells renames and binary files, and leaves out what is undone. ``exact``: patches that git can apply once they
        are encoded with ``surrogateescape``; otherwise long ones are empty, and what is not UTF-8 is replaced.
        """
        from turnkeeper.sessions import changes
        from turnkeeper.sessions.past import past

        if [message_id is not None, start is not None or end is not None, at is not None].count(True) > 1:
            raise Invalid("give a message, or an event, or a start and an end, and only one of them")

        if message_id is not None:
            return await changes.of_message(self.store, self._snapshots, session_id, message_id, exact=exact)
        if start is None and end is None:
            queries = self.store.queries if at is None else (await past(self.store, session_id, at)).queries
            return await changes.of_session(queries, self._snapshots, session_id, exact=exact)
        return await changes.between(self.store, self._snapshots, session_id, start, end, exact=exact)

    async def changes_not_known(self, session_id: str, *, message_id: str | None = None) -> str | None:
        """What a session, a prompt or a turn may have changed on disk and no snapshot tells; None if nothing."""
        from turnkeeper.sessions import changes

        return await changes.not_known(self.store, session_id, message_id)

    async def compare(self, session_id: str, before: int, after: int) -> "SessionDiff":
        """What differs in a session between two of its events: messages, files, context, permissions and cost."""
        from turnkeeper.sessions.compare import compared

        return await compared(self.store, self._snapshots, session_id, before, after)

    async def blame(self, file: str | Path) -> "Blame":
        """Which session, turn and tool call last wrote each line of a file, as far as snapshots are kept.

        The sessions are those of the project that the file is in. Raises Invalid for a binary file or a directory.
        """
        from turnkeeper.sessions.blame import blame

        return await blame(self.store, self._snapshots, Path(file), self._environ)

    async def fork(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        at: int | None = None,
        directory: str | Path | None = None,
        worktree: str | Path | None = None,
    ) -> Session:
        """Create a session with a copy of the history, or of the messages before ``message_id``.

        With ``at``, the history is copied as it was after that event. ``directory`` is where the copy works.
        ``worktree`` is a new directory for it, with the files of that moment: a new worktree of the repository, or a
        plain copy if there is none. If anything fails, there is neither a session nor a worktree.
        """
        from turnkeeper.sessions import fork, fork_worktree

        if worktree is not None:
            if directory is not None:
                raise Invalid("give a directory that exists, or a new worktree, and not both")
            target = Path(worktree).expanduser().absolute()
            return await fork_worktree.fork(
                self.store, self._snapshots, session_id, target, self._environ, message_id=message_id, at=at
            )
        place = await identify(directory) if directory is not None else None
        return await fork.fork(self.store, session_id, message_id=message_id, at=at, place=place)

    @property
    def _snapshots(self) -> "SnapshotReader":
        from turnkeeper.sessions.changes import SnapshotReader

        return SnapshotReader(self._environ, self.store.mint.now, self.store.places)

    async def plan_file(self, session_id: str) -> Path:
        """The file that the plan of a session is written to; it need not exist."""
        from turnkeeper.run.plan_mode import PlanFile
        from turnkeeper.workspace.project import stored_place

        session = await self.get(session_id)
        return PlanFile.of(session, await stored_place(session.directory), self._environ).path

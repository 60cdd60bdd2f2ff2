"""Reverting: undo and redo what sessions did to their history and to files."""

from collections.abc import Callable

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked
from turnkeeper.model.restore import Reverted


@checked
class Reverting(Running):
    """The methods for reverts. Imports are inside of them, because programs that only read should start fast."""

    async def revert(
        self, session_id: str, message_id: str, *, part_id: str | None = None, dry_run: bool = False
    ) -> Reverted:
        """Set aside the history from a message or part on, and put the files back that its steps changed.

        What others changed in them since is kept, or the file is left as it is and named as a conflict. The next prompt
        removes what was set aside; ``unrevert`` brings it back. ``dry_run`` only says what would become of each file.
        Raises Busy while the session runs.
        """
        from turnkeeper.core.revert_plan import RevertTarget
        from turnkeeper.sessions import revert

        target = RevertTarget(message_id=message_id, part_id=part_id)
        return await revert.revert(self.store, self.runtime, session_id, target, dry_run=dry_run)

    async def unrevert(self, session_id: str, *, dry_run: bool = False) -> Reverted:
        """Bring back the history and the files that a revert has set aside."""
        from turnkeeper.sessions import revert

        return await revert.unrevert(self.store, self.runtime, session_id, dry_run=dry_run)

    async def undo(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        dry_run: bool = False,
        progress: Callable[[int, int], None] | None = None,
    ) -> Reverted:
        """Revert the last prompt and what followed it; if that is reverted already, the prompt before it, too.

        A revert that was cut off is finished first, and files that could not be written are tried again. ``progress``
        is told how many files are done, and of how many.
        """
        from turnkeeper.sessions import revert
        from turnkeeper.workspace.restore import no_progress

        told = progress or no_progress
        return await revert.undo(
            self.store, self.runtime, session_id, message_id=message_id, dry_run=dry_run, progress=told
        )

    async def redo(
        self, session_id: str, *, dry_run: bool = False, progress: Callable[[int, int], None] | None = None
    ) -> Reverted:
        """Bring back the first prompt that was undone, with what followed it. ``progress`` is as for ``undo``."""
        from turnkeeper.sessions import revert
        from turnkeeper.workspace.restore import no_progress

        told = progress or no_progress
        return await revert.redo(self.store, self.runtime, session_id, dry_run=dry_run, progress=told)

    async def stage_revert(self, session_id: str, message_id: str, *, files: bool = True) -> Reverted:
        """Revert what comes after a message, and keep the message: the second generation of the API."""
        from turnkeeper.core.revert_plan import RevertTarget
        from turnkeeper.sessions import revert

        target = RevertTarget(message_id=message_id, keeps_message=True, with_files=files)
        return await revert.revert(self.store, self.runtime, session_id, target)

    async def commit_revert(self, session_id: str) -> None:
        """Remove what comes after the message of a pending revert for good. The message stays."""
        from turnkeeper.sessions import revert

        await revert.commit(self.store, self.runtime, session_id)

"""Requests: permission requests and questions that wait for the user, and what was approved for good."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from turnkeeper.api.running import Running
from turnkeeper.core.arguments import checked

if TYPE_CHECKING:
    from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest, SavedApproval
    from turnkeeper.model.question import QuestionRequest
    from turnkeeper.run.answers import AnswerDoor


@checked
class Requests(Running):
    """The methods that list and answer requests to the user."""

    async def run_answered(self) -> None:
        """Run each session whose waiting call was answered by a process that does not run it. Never ends.

        A server does this: see ``serving``.
        """
        from turnkeeper.sessions import answers

        await answers.watch(self.store, self._sleep, self._go_on)

    async def permissions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> "Sequence[PermissionRequest]":
        """Permission requests that wait for an answer; of one directory or session, or all."""
        from turnkeeper.sessions import answers

        place = str(directory) if directory is not None else None
        return await answers.permissions(self.store, directory=place, session_id=session_id)

    async def reply(
        self,
        request_id: str,
        answer: "PermissionAnswer",
        *,
        message: str | None = None,
        absence: "Absence | None" = None,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None:
        """Answer a permission request. If no process runs the session it is then run here, unless ``resume`` is False.

        ``always`` is saved for the project and also answers what else of the session it covers. A rejection rejects
        what else of the session waits; a message with it is advice for the model, which then goes on. ``absence`` says
        why a rejection is not the user's own, which the model is told.
        """
        from turnkeeper.sessions import answers

        found = await answers.reply(
            self._door, request_id, answer, message=message, absence=absence, session_id=session_id
        )
        if resume:
            await self._go_on(found)

    async def questions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> "Sequence[QuestionRequest]":
        """Questions of models that wait for an answer; of one directory or session, or all."""
        from turnkeeper.sessions import answers

        place = str(directory) if directory is not None else None
        return await answers.questions(self.store, directory=place, session_id=session_id)

    async def answer(
        self,
        request_id: str,
        given: Sequence[Sequence[str]] | None,
        *,
        absence: "Absence | None" = None,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None:
        """Answer questions of a model: for each the chosen labels or a text of your own. None dismisses them.

        ``absence`` says why a dismissal is not the user's own, which the model is told.
        """
        from turnkeeper.sessions import answers

        found = await answers.answer_questions(self._door, request_id, given, absence=absence, session_id=session_id)
        if resume:
            await self._go_on(found)

    async def approvals(self, *, project_id: str | None = None) -> "Sequence[SavedApproval]":
        """What was allowed for good, in one project or in all."""
        return self._door.approvals.saved(project_id)

    async def revoke(self, approval_id: str) -> bool:
        """Take back what was allowed for good; whether it was."""
        return self._door.approvals.revoke(approval_id)

    @property
    def _door(self) -> "AnswerDoor":
        from turnkeeper.run.answers import AnswerDoor
        from turnkeeper.workspace.approvals import Approvals

        if self._running is not None:
            return AnswerDoor(self.store, self._running.approvals)
        mint = self.store.mint
        return AnswerDoor(self.store, Approvals(self._environ, mint.now, mint.ascending))

    async def _go_on(self, session_id: str) -> bool:
        """Run a session whose call was answered, unless a process runs it: that one finds the answer in the log."""
        from turnkeeper.workspace.owner import is_alive

        owner = (await self.store.queries.state(session_id)).owner
        is_free = session_id not in self.running and (owner is None or not is_alive(owner))
        if self.group is not None and is_free:
            await self.runtime.request(session_id)
        return is_free

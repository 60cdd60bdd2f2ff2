"""The one door for answers: an answer to a request of a call is recorded here, in any process."""

from collections.abc import Callable
from typing import get_args

import msgspec

from turnkeeper.core.answers import answer_to, approved_by, reply_to
from turnkeeper.core.view import OpenAsk, SessionView
from turnkeeper.model.event import Event
from turnkeeper.model.permission import PermissionAnswer, PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply
from turnkeeper.model.refusal import Invalid
from turnkeeper.store.crash import crash_point
from turnkeeper.store.store import Store
from turnkeeper.workspace.approvals import Approvals


class AnswerDoor(msgspec.Struct, frozen=True):
    """Records answers. Needs no process that runs the session."""

    store: Store
    approvals: Approvals

    async def reply(self, session_id: str, request_id: str, reply: Reply) -> None:
        """Answer a permission request. "always" is also saved for the project.

        Raises NotAsked if the request is not open, and Conflict if it has another answer.
        """
        if not isinstance(reply, Reply) or reply.answer not in get_args(PermissionAnswer):
            raise Invalid(
                f"{reply!r:.80} is no reply; a request is answered with {', '.join(get_args(PermissionAnswer))}"
            )
        view = await self._whole(session_id)
        rules = self.approvals.rules(self.approvals.place(view.session))
        request = next((ask.request for ask in view.asks if ask.request.id == request_id), None)
        if reply.answer == "always" and reply_to(view, request_id, reply) and isinstance(request, PermissionRequest):
            # Saved before the answer is recorded: a kill in between must not lose what holds for good.
            self.approvals.add(view.session, approved_by(request))
        await self._record(view, lambda now: reply_to(now, request_id, reply, rules))

    async def answer(self, session_id: str, request_id: str, reply: QuestionReply) -> None:
        """Answer or dismiss questions. Raises as ``reply`` does, and Invalid unless each question has its answer."""
        view = await self._whole(session_id)
        await self._record(view, lambda now: answer_to(now, request_id, reply))

    async def _record(self, known: SessionView, decide: Callable[[SessionView], list[Event]]) -> None:
        requests = {ask.request.id: ask for ask in known.asks}

        def spelt_out(ask: OpenAsk) -> OpenAsk:
            same = requests.get(ask.request.id)
            return ask.but(request=same.request) if same is not None else ask

        crash_point("run.before-reply")
        await self.store.journal.change(
            known.session.id, lambda view: decide(view.but(asks=tuple(map(spelt_out, view.asks))))
        )
        crash_point("run.after-reply")

    async def _whole(self, session_id: str) -> SessionView:
        """The session, with the requests as they were asked: a view has marks in the place of long texts."""
        view = await self.store.journal.view(session_id)
        return view.but(asks=tuple([await self.store.queries.whole(ask) for ask in view.asks]))

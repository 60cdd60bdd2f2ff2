"""Asking the user for a call: the request is recorded, the answer awaited in the log and recorded as applied.

The answer may come from a responder of this process, from any client, from another process on the store, or from the
deadline. All of them answer through one door (``run/answers.py``), and the first counts.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import TypeVar

import anyio
import msgspec

from turnkeeper.core.answers import NotAsked
from turnkeeper.core.view import OpenAsk, PermissionAsk, QuestionAsk
from turnkeeper.mint import Mint
from turnkeeper.model.config import AskConfig
from turnkeeper.model.event import (
    AnswerApplied,
    Event,
    PermissionAsked,
    PermissionReplied,
    QuestionAsked,
    QuestionRejected,
    QuestionReplied,
)
from turnkeeper.model.permission import AskedBy, PermissionRequest, Reply, Rule
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.refusal import Conflict, Invalid
from turnkeeper.outside_code import contained
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.outages import once_stored
from turnkeeper.run.permission import Asker, NobodyToAsk, QuestionAsker
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.store import Store
from turnkeeper.tools.tool import Rejected, ToolFailure
from turnkeeper.workspace.approvals import ApprovedPlace

log = logging.getLogger(__name__)

R = TypeVar("R")
T = TypeVar("T")


class Responders(msgspec.Struct, frozen=True):
    """The callbacks of this process that answer requests. None: the answer comes from elsewhere."""

    permission: Asker | None = None
    question: QuestionAsker | None = None
    is_attended: bool = True
    """Whether requests that an earlier process left may be answered here. If not, their calls go on waiting."""


class Asking(msgspec.Struct, frozen=True):
    """Asks the user for the calls of one turn."""

    writer: FencedWriter
    approved: ApprovedPlace
    """The place whose approvals apply to the session."""
    store: Store
    mint: Mint
    sleep: Callable[[float], Awaitable[None]]
    door: AnswerDoor
    responders: Responders
    config: AskConfig = AskConfig()

    def approvals(self) -> tuple[Rule, ...]:
        """The permanent approvals for the session's directory."""
        return self.door.approvals.rules(self.approved)

    async def permission(self, call: "WaitingCall", request: PermissionRequest, open_patterns: Sequence[str]) -> Reply:
        """The user's reply, once it is recorded as applied.

        ``open_patterns`` are those that only the user can allow. Without any the reply is "once", unless the user has
        replied otherwise to an earlier run of the call.
        """
        earlier = await self._earlier(request, open_patterns)
        if earlier is None:
            if not open_patterns:
                return Reply(answer="once")
            request = self._with_deadline(request.but(patterns=tuple(open_patterns)))
            await self.writer.append(PermissionAsked(request=request, restarts=call.restarts), at="ask")
        else:
            request = earlier.request

        async def answer(reply: Reply) -> None:
            # The user has answered and is not asked again, so an answer waits for the store, as all records do.
            record = partial(self.door.reply, self.writer.session_id, request.id, reply)
            await once_stored(record, self.sleep)

        if earlier is not None and not open_patterns and earlier.reply is None:
            await answer(Reply(answer="once"))

        refused: list[str] = []

        async def respond() -> None:
            if self.responders.permission is not None:
                try:
                    given = await _given_by("ask", self.responders.permission, request)
                except NobodyToAsk:
                    given = Reply(answer="reject", absence="nobody")
                if not isinstance(given, Reply) or given.answer not in ("once", "always", "reject"):
                    # Python checks no types, and what is no answer must not allow anything.
                    shown = given.answer if isinstance(given, Reply) else given
                    refused.append(f"{shown!r} is no answer: only 'once' and 'always' allow this call.")
                    given = Reply(answer="reject")
                await answer(given)

        async def at_deadline() -> None:
            is_allowed = request.default == "once"
            await answer(Reply(answer="once") if is_allowed else Reply(answer="reject", absence="late"))

        ask = await self._answered(call, request, respond, at_deadline)
        assert isinstance(ask, PermissionAsk), "a permission was asked"
        assert ask.reply is not None, "the answer is there"
        if ask.reply == Reply(answer="reject") and refused:
            raise Rejected(refused[0])
        return ask.reply

    async def question(self, call: "WaitingCall", request: QuestionRequest) -> QuestionReply:
        """The user's answers, once they are recorded as applied; those to the same questions, if asked before."""
        asks = await self._asks_of(request.tool)
        same = (ask for ask in asks if isinstance(ask, QuestionAsk) and ask.request.questions == request.questions)
        earlier = next(same, None)
        if earlier is None:
            if (timeout_s := self.config.timeout) is not None:
                request = request.but(deadline=self.mint.now() + round(timeout_s * 1000))
            await self.writer.append(QuestionAsked(request=request, restarts=call.restarts), at="ask")
        else:
            request = earlier.request

        async def answer(reply: QuestionReply) -> None:
            record = partial(self.door.answer, self.writer.session_id, request.id, reply)
            await once_stored(record, self.sleep)

        async def respond() -> None:
            if self.responders.question is not None:
                given = await _given_by("question", self.responders.question, request)
                if not isinstance(given, QuestionReply):
                    raise ToolFailure(f"The callback `question` gave {given!r:.80}; it must give a QuestionReply.")
                try:
                    await answer(given)
                except Invalid as error:
                    raise ToolFailure(f"The callback `question` gave no answer that fits: {error}.") from error

        ask = await self._answered(call, request, respond, lambda: answer(QuestionReply(absence="late")))
        assert isinstance(ask, QuestionAsk), "a question was asked"
        assert ask.reply is not None, "the answer is there"
        return ask.reply

    def _with_deadline(self, request: PermissionRequest) -> PermissionRequest:
        if (timeout_s := self.config.timeout) is None:
            return request
        deadline = self.mint.now() + round(timeout_s * 1000)
        return request.but(deadline=deadline, default=self.config.default or "reject")

    async def _earlier(self, request: PermissionRequest, open_patterns: Sequence[str]) -> PermissionAsk | None:
        """The request that an earlier run of the call made for these patterns, and whose answer is not applied."""
        wanted = set(open_patterns)
        for ask in await self._asks_of(request.tool):
            if isinstance(ask, PermissionAsk) and ask.request.permission == request.permission:
                asked = set(ask.request.patterns)
                if wanted <= asked if wanted else asked <= set(request.patterns):
                    return ask
        return None

    async def _asks_of(self, by: AskedBy) -> list[OpenAsk]:
        """The requests of a call whose answers are not applied, as they were asked."""
        journal = self.store.journal
        view = journal.cache.view(self.writer.session_id) or await journal.view(self.writer.session_id)
        own = [ask for ask in view.asks if ask.request.tool == by and not ask.is_applied]
        return [await self.store.queries.whole(ask) for ask in own]

    async def _answered(
        self,
        call: "WaitingCall",
        request: PermissionRequest | QuestionRequest,
        respond: Callable[[], Awaitable[None]],
        default: Callable[[], Awaitable[None]],
    ) -> OpenAsk:
        """The request with its answer, which is recorded as applied: from then on the call may act."""
        call.waits = True
        errors: list[Exception] = []

        async def aside(work: Callable[[], Awaitable[None]]) -> None:
            try:
                with contained(is_whole_task=True), suppress(NotAsked, Conflict):  # Another answer was first.
                    await work()
            except Exception as error:
                # Raised below: the task group would make an exception group of it.
                errors.append(error)
                group.cancel_scope.cancel()

        async def at_deadline() -> None:
            if request.deadline is not None:
                await self.sleep(max(request.deadline - self.mint.now(), 0) / 1000)
                await default()

        async def heard() -> None:
            await once_stored(partial(self._heard, request.id), self.sleep)
            group.cancel_scope.cancel()

        async with anyio.create_task_group() as group:
            group.start_soon(aside, heard)
            group.start_soon(aside, respond)
            group.start_soon(aside, at_deadline)
        if errors:
            call.waits = False
            raise errors[0]
        return await once_stored(partial(self._apply, call, request.id), self.sleep)

    async def _apply(self, call: "WaitingCall", request_id: str) -> OpenAsk:
        ask = await self._find(request_id)
        assert ask is not None, "a call that waits is not settled"
        whole = await self.store.queries.whole(ask)
        call.waits = False
        try:
            if not ask.is_applied:
                await self.writer.append(AnswerApplied(request_id=request_id), at="answer")
        except StoreUnavailable:
            call.waits = True
            raise
        return whole

    async def _heard(self, request_id: str) -> None:
        """Wait until the log has the answer."""
        journal = self.store.journal
        view = await journal.view(self.writer.session_id)
        if any(ask.request.id == request_id and ask.reply is not None for ask in view.asks):
            return
        async with aclosing(journal.tail(self.writer.session_id, view.seq)) as news:
            async for recorded in news:
                if is_answer(recorded.event, request_id):
                    return

    async def _find(self, request_id: str) -> OpenAsk | None:
        view = await self.store.journal.view(self.writer.session_id)
        return next((ask for ask in view.asks if ask.request.id == request_id), None)


class WaitingCall:
    """The state of a call that its turn needs to know when it is stopped."""

    restarts = True
    """Whether the call may be run again from its beginning if its process dies while it waits."""
    waits = False
    """Whether the call waits for the user or for a Child Session, so that another process may go on with it."""

    def is_stopped(self) -> bool:
        """Whether the user stops the session. Else its process is ending."""
        return True


async def _given_by(name: str, callback: Callable[[R], Awaitable[T]], request: R) -> T:
    """The answer of a callback of the caller. Raises ToolFailure, which names the callback, if it fails."""
    try:
        with contained(is_whole_task=True):
            return await callback(request)
    except NobodyToAsk:
        raise
    except Exception as error:
        # The callback is the caller's own code; without its name the tool would be blamed.
        log.warning("the callback %r for requests to the user failed", name, exc_info=error)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        raise ToolFailure(f"The user could not be asked: the callback `{name}` failed: {said}") from error


def is_answer(event: Event, request_id: str) -> bool:
    """Whether an event is the answer to a request."""
    return isinstance(event, PermissionReplied | QuestionReplied | QuestionRejected) and event.request_id == request_id

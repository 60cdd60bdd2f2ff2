"""Requests of a session that a server or another process runs: asked here, and answered there."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TYPE_CHECKING

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.cli.request_lines import open_requests
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.session import Session
from turnkeeper.run.permission import Asker, NobodyToAsk, QuestionAsker

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client


class RemoteRequests:
    """Asks the requests of a session here and sends the replies. One that is answered elsewhere first is withdrawn."""

    def __init__(
        self, client: "Turnkeeper | Client", session_id: str, ask: Asker, question: QuestionAsker, group: TaskGroup
    ) -> None:
        self._client, self._session_id, self._group = client, session_id, group
        self._ask, self._question = ask, question
        self._asked: dict[str, anyio.CancelScope] = {}
        self._family = {session_id}
        """The session and its descendants, whose requests are asked here, too."""
        self._open = 0
        """How many requests wait for their answer."""
        self._all_answered = anyio.Event()

    async def begin(self, *, is_attended: bool) -> None:
        """Ask the requests that are already open. Without a user they are left alone, also if they are announced."""
        for one in await self._open_requests():
            if is_attended:
                self._start(one)
            else:
                self._asked[one.id] = anyio.CancelScope()

    async def _open_requests(self) -> list[PermissionRequest | QuestionRequest]:
        directory = (await self._client.get(self._session_id)).directory
        self._family |= {one.id for one in await self._client.children(self._session_id, recursive=True)}
        return [one for one in await open_requests(self._client, directory) if one.session_id in self._family]

    async def wait_answered(self) -> None:
        """Wait until all that was asked here is answered, also by others, and the session rests.

        A server that was started again leaves a session at rest whose requests are still open.
        """
        while self._open:
            await self._all_answered.wait()
            await self._client.wait(self._session_id)

    async def follow(self, notifications: "AsyncIterator[Notification | Delta]") -> None:
        """Ask what the descendants of the session ask from now on. ``notifications`` are those of all sessions."""
        async for one in notifications:
            if not isinstance(one, Notification):
                continue
            match one.type, one.properties:
                case "server.connected", _:  # Another server, which may have asked before this subscriber was back.
                    with suppress(NotFound):  # The session was removed.
                        for missed in await self._open_requests():
                            self._start(missed)
                case "session.created", {"info": Session(id=made, parent_id=parent_id)} if parent_id in self._family:
                    self._family.add(made)
            if one.session_id in self._family and one.session_id != self._session_id:
                self.take(one)

    def take(self, one: Notification | Delta) -> None:
        """Ask a new request, or withdraw one that was answered."""
        if not isinstance(one, Notification):
            return
        match one.type:
            case "permission.asked":
                self._start(msgspec.convert(one.properties, PermissionRequest))
            case "question.asked":
                self._start(msgspec.convert(one.properties, QuestionRequest))
            case "permission.replied" | "question.replied" | "question.rejected":
                scope = self._asked.get(str(one.properties.get("requestID")))
                if scope is not None:
                    scope.cancel()

    def withdraw(self) -> None:
        """Ask no longer what is open: the session was stopped."""
        for scope in self._asked.values():
            scope.cancel()

    def _start(self, asked: PermissionRequest | QuestionRequest) -> None:
        if asked.id not in self._asked:
            self._asked[asked.id] = anyio.CancelScope()
            if not self._open:
                self._all_answered = anyio.Event()
            self._open += 1
            self._group.start_soon(self._answer, asked, name=f"ask {asked.id}")

    async def _answer(self, asked: PermissionRequest | QuestionRequest) -> None:
        try:
            await self._asked_here(asked)
        finally:
            self._open -= 1
            if not self._open:
                self._all_answered.set()

    async def _asked_here(self, asked: PermissionRequest | QuestionRequest) -> None:
        with self._asked[asked.id]:
            try:
                if isinstance(asked, PermissionRequest):
                    reply = await self._permission(asked)
                    await self._client.reply(asked.id, reply.answer, message=reply.feedback, absence=reply.absence)
                else:
                    given = await self._question(asked)
                    await self._client.answer(asked.id, given.answers, absence=given.absence)
            except (NotFound, Conflict):
                return  # Another client has answered, or the session was stopped.

    async def _permission(self, asked: PermissionRequest) -> Reply:
        try:
            return await self._ask(asked)
        except NobodyToAsk:
            return Reply(answer="reject", absence="nobody")

"""Open requests to the user on the full screen. The rest of the screen does not wait for their answers."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import anyio

from turnkeeper.cli.request_lines import origin
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest

if TYPE_CHECKING:
    from turnkeeper.model.session import Session


@dataclass(eq=False)
class OpenAsk:
    """An open request, which is on the screen or in the queue for it."""

    request: PermissionRequest | QuestionRequest
    asked_by: str = ""
    """The Child Session that asks."""
    reply: Reply | QuestionReply | None = None
    is_answered: anyio.Event = field(default_factory=anyio.Event)

    def give(self, reply: Reply | QuestionReply) -> None:
        """Answer the request. Only the first answer counts."""
        if not self.is_answered.is_set():
            self.reply = reply
            self.is_answered.set()


class OpenAsks:
    """Queue of the open requests, oldest first."""

    def __init__(self) -> None:
        self.waiting: list[OpenAsk] = []
        self.lock = anyio.Lock()
        """Never held: the session goes on while a question is open."""
        self.sessions: Callable[[str], Awaitable[Session]] | None = None

    async def ask(self, request: PermissionRequest) -> Reply:
        """Wait for the answer to a permission request. It leaves the screen if another client answers."""
        reply = await self._answered(request)
        assert isinstance(reply, Reply)
        return reply

    async def answer(self, request: QuestionRequest) -> QuestionReply:
        """Wait for the answers to questions."""
        reply = await self._answered(request)
        assert isinstance(reply, QuestionReply)
        return reply

    async def _answered(self, request: PermissionRequest | QuestionRequest) -> Reply | QuestionReply | None:
        asked_by = await origin(self.sessions, request.session_id) if self.sessions is not None else ""
        one = OpenAsk(request, asked_by)
        self.waiting.append(one)
        try:
            await one.is_answered.wait()
        finally:
            self.waiting.remove(one)
        return one.reply

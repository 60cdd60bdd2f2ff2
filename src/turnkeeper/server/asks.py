"""Asks: questions to the user that wait for an answer from some client."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal

import anyio

from turnkeeper.api import Turnkeeper
from turnkeeper.core.permission import Allow, decide
from turnkeeper.model.notification import Notification
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.errors import Missing

if TYPE_CHECKING:
    # Loaded with the first run: a server that only looks at sessions starts faster without.
    from turnkeeper.run.permission import PermissionRequest, Reply


class AskedBy(Value):
    """The call that asks."""

    message_id: str
    call_id: str


class PendingPermission(Value):
    """A question as clients know it: may this call do that?"""

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    tool: AskedBy | None = None


class _Waiting:
    """One question under way."""

    def __init__(self, request: "PermissionRequest", directory: str) -> None:
        self.request, self.directory = request, directory
        self.answered = anyio.Event()
        self.reply: Reply | None = None


class Asks:
    """Puts what the rules leave open to whoever is connected, and waits. Give ``ask`` to the Settings of a store."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._turnkeeper: Turnkeeper | None = None

    def serve(self, turnkeeper: Turnkeeper) -> None:
        """From now on ask through the subscribers of this store."""
        self._turnkeeper = turnkeeper

    async def ask(self, request: "PermissionRequest") -> "Reply":
        """Ask, and wait until a client replies. Who is interrupted meanwhile takes the question back."""
        assert self._turnkeeper is not None, "nobody was told where to ask"
        session = await self._turnkeeper.get(request.session_id)
        waiting = self._waiting[request.id] = _Waiting(request, session.directory)
        self._tell(waiting, "permission.asked", pending(request))
        try:
            await waiting.answered.wait()
        finally:
            if self._waiting.pop(request.id, None) is not None:
                self._tell(waiting, "permission.replied", _replied(request, "reject"))
        assert waiting.reply is not None, "answered, and without an answer"
        return waiting.reply

    def pending(self, *, directory: str | None = None, session_id: str | None = None) -> "list[PermissionRequest]":
        """What waits for an answer, oldest first; of one directory or session, or all."""
        return [
            one.request
            for one in self._waiting.values()
            if directory in (None, one.directory) and session_id in (None, one.request.session_id)
        ]

    def reply(self, request_id: str, reply: "Reply", *, session_id: str | None = None) -> None:
        """Answer a question. Raises Missing if it does not wait (any more).

        "always" also answers what else of the session it covers; a rejection rejects what else of it waits.
        """
        waiting = self._waiting.get(request_id)
        if waiting is None or session_id not in (None, waiting.request.session_id):
            raise Missing("Permission", request_id)
        self._answer(waiting, reply)
        others = [one for one in self._waiting.values() if one.request.session_id == waiting.request.session_id]
        if reply.answer == "reject":
            self._answer_all(others, reply.but(feedback=None), lambda _: True)
        elif reply.answer == "always":
            self._answer_all(others, reply.but(answer="once"), _covered_by(waiting.request))

    def _answer_all(
        self, waiting: Iterable[_Waiting], reply: "Reply", wanted: "Callable[[PermissionRequest], bool]"
    ) -> None:
        for one in waiting:
            if wanted(one.request):
                self._answer(one, reply)

    def _answer(self, waiting: _Waiting, reply: "Reply") -> None:
        del self._waiting[waiting.request.id]
        waiting.reply = reply
        self._tell(waiting, "permission.replied", _replied(waiting.request, reply.answer))
        waiting.answered.set()

    def _tell(self, waiting: _Waiting, kind: str, said: Value) -> None:
        assert self._turnkeeper is not None
        names = zip(said.__struct_fields__, said.__struct_encode_fields__, strict=True)
        self._turnkeeper.publish(
            Notification(
                type=kind,
                session_id=waiting.request.session_id,
                directory=waiting.directory,
                seq=0,
                properties={name: getattr(said, field) for field, name in names},
            )
        )


class Replied(Value):
    """That a question was answered."""

    session_id: str
    request_id: str
    reply: Literal["once", "always", "reject"]


def pending(request: "PermissionRequest") -> PendingPermission:
    """A question as clients know it."""
    return PendingPermission(
        id=request.id,
        session_id=request.session_id,
        permission=request.permission,
        patterns=request.patterns,
        metadata=request.metadata,
        always=request.always,
        tool=AskedBy(message_id=request.message_id, call_id=request.call_id),
    )


def _replied(request: "PermissionRequest", answer: Literal["once", "always", "reject"]) -> Replied:
    return Replied(session_id=request.session_id, request_id=request.id, reply=answer)


def _covered_by(approved: "PermissionRequest") -> "Callable[[PermissionRequest], bool]":
    rules = tuple(
        Rule(permission=approved.permission, pattern=pattern, action="allow")
        for pattern in approved.always or approved.patterns
    )
    return lambda other: isinstance(decide((), other.permission, other.patterns, rules), Allow)

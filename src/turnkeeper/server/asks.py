"""Permission requests of running sessions that wait for a reply from a client."""

from typing import TYPE_CHECKING, Literal

import anyio

from turnkeeper.api import Turnkeeper
from turnkeeper.core.permission import Allow, decide
from turnkeeper.model.notification import Notification
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.errors import Missing

if TYPE_CHECKING:
    # Not imported at run time: a server that only reads sessions starts faster without it.
    from turnkeeper.run.permission import PermissionRequest, Reply


class AskedBy(Value):
    """The tool call that needs the permission."""

    message_id: str
    call_id: str


class PendingPermission(Value):
    """A permission request as clients receive it."""

    id: str
    session_id: str
    permission: str
    patterns: tuple[str, ...]
    metadata: JsonObject
    always: tuple[str, ...]
    tool: AskedBy | None = None


class _Waiting:
    """A permission request without a reply."""

    def __init__(self, request: "PermissionRequest", directory: str) -> None:
        self.request, self.directory = request, directory
        self.answered = anyio.Event()
        self.reply: Reply | None = None


class Asks:
    """Publishes permission requests to clients and waits for their replies. Pass ``ask`` to the Settings of a store."""

    def __init__(self) -> None:
        self._waiting: dict[str, _Waiting] = {}
        self._turnkeeper: Turnkeeper | None = None

    def serve(self, turnkeeper: Turnkeeper) -> None:
        """Publish requests to the subscribers of this store. Called once, before the first ``ask``."""
        self._turnkeeper = turnkeeper

    async def ask(self, request: "PermissionRequest") -> "Reply":
        """Publish a request and wait for a reply. If the wait is cancelled, the request is published as rejected."""
        assert self._turnkeeper is not None, "serve() was not called"
        session = await self._turnkeeper.get(request.session_id)
        waiting = self._waiting[request.id] = _Waiting(request, session.directory)
        self._publish(waiting, "permission.asked", pending(request))
        try:
            await waiting.answered.wait()
        finally:
            if self._waiting.pop(request.id, None) is not None:
                self._publish(waiting, "permission.replied", _replied(request, "reject"))
        assert waiting.reply is not None, "an answered request has a reply"
        return waiting.reply

    def pending(self, *, directory: str | None = None, session_id: str | None = None) -> "list[PermissionRequest]":
        """Requests without a reply, oldest first: of a directory, of a session, or all."""
        return [
            one.request
            for one in self._waiting.values()
            if directory in (None, one.directory) and session_id in (None, one.request.session_id)
        ]

    def reply(self, request_id: str, reply: "Reply", *, session_id: str | None = None) -> None:
        """Reply to a request. Raises Missing if no such request waits.

        "always" also allows the session's other waiting requests that it covers; "reject" rejects all of them.
        """
        waiting = self._waiting.get(request_id)
        if waiting is None or session_id not in (None, waiting.request.session_id):
            raise Missing("Permission", request_id)
        self._answer(waiting, reply)
        others = [one for one in self._waiting.values() if one.request.session_id == waiting.request.session_id]
        for one in others:
            if reply.answer == "reject":
                self._answer(one, reply.but(feedback=None))
            elif reply.answer == "always" and _covers(waiting.request, one.request):
                self._answer(one, reply.but(answer="once"))

    def _answer(self, waiting: _Waiting, reply: "Reply") -> None:
        del self._waiting[waiting.request.id]
        waiting.reply = reply
        self._publish(waiting, "permission.replied", _replied(waiting.request, reply.answer))
        waiting.answered.set()

    def _publish(self, waiting: _Waiting, kind: str, value: Value) -> None:
        assert self._turnkeeper is not None
        names = zip(value.__struct_fields__, value.__struct_encode_fields__, strict=True)
        self._turnkeeper.publish(
            Notification(
                type=kind,
                session_id=waiting.request.session_id,
                directory=waiting.directory,
                seq=0,
                properties={name: getattr(value, field) for field, name in names},
            )
        )


class Replied(Value):
    """The notification that a request has a reply."""

    session_id: str
    request_id: str
    reply: Literal["once", "always", "reject"]


def pending(request: "PermissionRequest") -> PendingPermission:
    """A permission request as clients receive it."""
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


def _covers(approved: "PermissionRequest", other: "PermissionRequest") -> bool:
    rules = tuple(
        Rule(permission=approved.permission, pattern=pattern, action="allow")
        for pattern in approved.always or approved.patterns
    )
    return isinstance(decide((), other.permission, other.patterns, rules), Allow)

"""Answering: the questions of a server's session are put to whoever sits here."""

import anyio
from anyio.abc import TaskGroup

from turnkeeper.client import Client
from turnkeeper.client.values import PendingPermission
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.refusal import NotFound
from turnkeeper.run.permission import Asker, PermissionRequest


class Answering:
    """Puts each question of a session to an asker, and sends the answer; who else answers it first, ends it."""

    def __init__(self, client: Client, session_id: str, ask: Asker, group: TaskGroup) -> None:
        self._client, self._session_id, self._ask, self._group = client, session_id, ask, group
        self._asked: dict[str, anyio.CancelScope] = {}

    async def begin(self) -> None:
        """Ask what was asked before anybody listened."""
        directory = (await self._client.get(self._session_id)).directory
        for one in await self._client.permissions(directory=directory):
            if one.session_id == self._session_id:
                self._put(one)

    def take(self, one: Notification | Delta) -> None:
        """Hear of a question, or of its end."""
        if not isinstance(one, Notification):
            return
        if one.type == "permission.asked":
            import msgspec

            self._put(msgspec.convert(one.properties, PendingPermission))
        elif one.type == "permission.replied":
            scope = self._asked.get(str(one.properties.get("requestID")))
            if scope is not None:
                scope.cancel()

    def _put(self, asked: PendingPermission) -> None:
        if asked.id not in self._asked:
            self._asked[asked.id] = anyio.CancelScope()
            self._group.start_soon(self._answer, asked)

    async def _answer(self, asked: PendingPermission) -> None:
        with self._asked[asked.id]:
            reply = await self._ask(_request(asked))
            try:
                await self._client.reply(asked.id, reply.answer, message=reply.feedback)
            except NotFound:
                return  # Somebody else has answered, or the session was stopped.


def _request(asked: PendingPermission) -> PermissionRequest:
    return PermissionRequest(
        id=asked.id,
        session_id=asked.session_id,
        message_id=asked.tool.message_id if asked.tool is not None else "",
        call_id=asked.tool.call_id if asked.tool is not None else "",
        permission=asked.permission,
        patterns=asked.patterns,
        always=asked.always,
        metadata=asked.metadata,
    )

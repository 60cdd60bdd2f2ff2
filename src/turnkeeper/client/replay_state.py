"""ReplayState: what a subscriber has received of one session, to send exactly what it missed after a reconnection."""

from collections.abc import Iterable, Iterator

from turnkeeper.model.message import AssistantMessage, BaseMessage, Message
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import KINDS, Notification
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.status import Busy, Idle, Retrying, Status
from turnkeeper.model.value import Value, encode


class ReplayState:
    """The state of messages and parts as the subscriber last received them. Only their hashes are kept."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._messages: dict[str, int] = {}
        self._parts: dict[str, dict[str, int]] = {}
        self._status: Status | None = None

    def begin(self, messages: Iterable[MessageWithParts]) -> None:
        """Record the messages that exist at the start; they are not sent."""
        for one in messages:
            self._messages[one.info.id] = _hash(one.info)
            self._parts[one.info.id] = {part.id: _hash(part) for part in one.parts}

    def has(self, message: MessageWithParts) -> bool:
        """Whether the subscriber has received this message."""
        return message.info.id in self._messages

    def note(self, received: Notification) -> None:
        """Record that the subscriber has received a notification."""
        match received.type, received.properties:
            case "message.updated", {"info": BaseMessage() as message}:
                self._messages[message.id] = _hash(message)
            case "message.part.updated", {"part": BasePart() as part}:
                self._parts.setdefault(part.message_id, {})[part.id] = _hash(part)
            case "message.part.removed", {"messageID": str(message_id), "partID": str(part_id)}:
                self._parts.get(message_id, {}).pop(part_id, None)
            case "message.removed", {"messageID": str(message_id)}:
                self._messages.pop(message_id, None)
                self._parts.pop(message_id, None)
            case "session.status", {"status": Idle() | Busy() | Retrying() as status}:
                self._status = status

    def news(self, messages: Iterable[MessageWithParts], status: Status) -> list[Notification]:
        """Notifications for everything stored that the subscriber has not received; they count as received now."""
        found = [one for message in messages for one in self._message(message)]
        if self._status is not None and status != self._status:
            found.append(self._notification("session.status", status=status))
            if isinstance(status, Idle):
                found.append(self._notification("session.idle"))
        for one in found:
            self.note(one)
        return found

    def _message(self, one: MessageWithParts) -> Iterator[Notification]:
        message, received = one.info, self._parts.get(one.info.id, {})
        if message.id not in self._messages and (begun := _begun(message)) is not None:
            yield self._notification("message.updated", info=begun)
        elif not isinstance(message, AssistantMessage) and self._messages.get(message.id) != _hash(message):
            yield self._notification("message.updated", info=message)
        for part_id in [name for name in received if name not in {part.id for part in one.parts}]:
            yield self._notification("message.part.removed", messageID=message.id, partID=part_id)
        for part in one.parts:
            if received.get(part.id) != _hash(part):
                yield self._notification("message.part.updated", part=part)
        if isinstance(message, AssistantMessage) and self._messages.get(message.id) != _hash(message):
            yield self._notification("message.updated", info=message)

    def _notification(self, kind: str, **properties: object) -> Notification:
        properties = {"sessionID": self._session_id, **properties}
        made = KINDS.get(kind, Notification)
        return made(type=kind, session_id=self._session_id, directory="", seq=0, properties=properties)


def _begun(message: Message) -> Message | None:
    """A completed turn as it was when it began: subscribers expect a notification of the beginning first."""
    if isinstance(message, AssistantMessage) and message.time.completed is not None:
        return message.but(time=message.time.but(completed=None), error=None, finish=None)
    return None


def _hash(value: Value) -> int:
    return hash(encode(value))

"""Known: what a subscriber was told of one session, so that what it was not told can be told later, and once."""

from collections.abc import Iterable, Iterator

from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Notification
from turnkeeper.model.parts import Part
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.status import Idle, Status
from turnkeeper.model.value import Value, encode


class ReplayState:
    """The state of messages and parts as last told. Of each only a number is kept."""

    def __init__(self, session_id: str) -> None:
        self._session_id = session_id
        self._messages: dict[str, int] = {}
        self._parts: dict[str, dict[str, int]] = {}
        self._status: Status | None = None

    def begin(self, messages: Iterable[MessageWithParts]) -> None:
        """What is there already is not told."""
        for one in messages:
            self._messages[one.info.id] = _number(one.info)
            self._parts[one.info.id] = {part.id: _number(part) for part in one.parts}

    def has(self, message: MessageWithParts) -> bool:
        """Whether a message was told of."""
        return message.info.id in self._messages

    def note(self, told: Notification) -> None:
        """This was told."""
        match told.type, told.properties:
            case "message.updated", {"info": Value() as message}:
                self._messages[message.id] = _number(message)  # type: ignore[attr-defined] # By its type.
            case "message.part.updated", {"part": BasePart() as part}:
                self._parts.setdefault(part.message_id, {})[part.id] = _number(part)
            case "message.part.removed", {"messageID": str(message_id), "partID": str(part_id)}:
                self._parts.get(message_id, {}).pop(part_id, None)
            case "message.removed", {"messageID": str(message_id)}:
                self._messages.pop(message_id, None)
                self._parts.pop(message_id, None)
            case "session.status", {"status": Value() as status}:
                self._status = status  # type: ignore[assignment] # By its type.

    def news(self, messages: Iterable[MessageWithParts], status: Status) -> list[Notification]:
        """What is stored and was not told, in the order it would have been; it counts as told from now on."""
        found = [one for message in messages for one in self._message(message)]
        if self._status is not None and status != self._status:
            found.append(self._said("session.status", status=status))
            if isinstance(status, Idle):
                found.append(self._said("session.idle"))
        for one in found:
            self.note(one)
        return found

    def _message(self, one: MessageWithParts) -> Iterator[Notification]:
        message, told = one.info, self._parts.get(one.info.id, {})
        if message.id not in self._messages and (begun := _begun(message)) is not None:
            yield self._said("message.updated", info=begun)
        elif not isinstance(message, AssistantMessage) and self._messages.get(message.id) != _number(message):
            yield self._said("message.updated", info=message)
        for part_id in [name for name in told if name not in {part.id for part in one.parts}]:
            yield self._said("message.part.removed", messageID=message.id, partID=part_id)
        for part in one.parts:
            if told.get(part.id) != _number(part):
                yield self._part(part)
        if isinstance(message, AssistantMessage) and self._messages.get(message.id) != _number(message):
            yield self._said("message.updated", info=message)

    def _part(self, part: Part) -> Notification:
        return self._said("message.part.updated", part=part)

    def _said(self, kind: str, **properties: object) -> Notification:
        said = {"sessionID": self._session_id, **properties}
        return Notification(type=kind, session_id=self._session_id, directory="", seq=0, properties=said)


def _begun(message: Message) -> Message | None:
    """A turn as it was when it began: those who listen hear of each turn first that it began."""
    if isinstance(message, AssistantMessage) and message.time.completed is not None:
        return message.but(time=message.time.but(completed=None), error=None, finish=None)
    return None


def _number(value: Value) -> int:
    return hash(encode(value))

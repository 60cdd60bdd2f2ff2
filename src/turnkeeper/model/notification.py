"""Notification: a message to subscribers about a session. Derived from events, not stored.

Each kind of notification has its class, so that a subscriber can use ``match``::

    match notification:
        case PartUpdated(part=TextPart(text=text)): ...
        case PermissionWaits(request=request): ...
"""

from collections.abc import Mapping
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from turnkeeper.model.failure import Failure
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import PermissionAnswer, PermissionRequest, Reply
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, Value

T = TypeVar("T")


def _converted(value: object, kind: type[T]) -> T:
    """A property as its type. In this process it has that type; of a newer server it may be JSON of another shape."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise AttributeError(str(error)) from error


class Notification(Value):
    """A change of a session, under its API name. ``seq`` is the seq of its event.

    ``id`` and ``time`` are derived from the event; both are empty for a notification without an event.
    """

    type: str
    session_id: str
    directory: str
    seq: int
    properties: JsonObject
    id: str = ""
    time: int = 0
    project_id: str | None = None

    @property
    def droppable(self) -> bool:
        """Whether a slow subscriber may miss it: no, it announces a durable change."""
        return False

    def _property(self, name: str) -> object:
        """A property. Raises AttributeError for a missing one, so that a pattern of ``match`` does not match."""
        if name not in self.properties:
            raise AttributeError(f"{self.type} has no property {name!r}")
        return self.properties[name]

    def _session(self) -> Session:
        return _converted(self._property("info"), Session)


class SessionAdded(Notification):
    """``session.created``: a session was created."""

    @property
    def session(self) -> Session:
        """The new session."""
        return self._session()


class SessionUpdated(Notification):
    """``session.updated``: a session changed."""

    @property
    def session(self) -> Session:
        """The session as it is now."""
        return self._session()


class SessionDeleted(Notification):
    """``session.deleted``: a session was removed. No other notification of it follows."""

    @property
    def session(self) -> Session:
        """The session as it was."""
        return self._session()


class StatusUpdated(Notification):
    """``session.status``: a session is idle, busy, or waits to try again."""

    @property
    def status(self) -> Status:
        """The status now."""
        found = self._property("status")
        if not isinstance(found, Status):
            raise AttributeError(f"status has an unknown shape: {found!r:.80}")
        return found


class SessionIdle(Notification):
    """``session.idle``: a session rests."""


class SessionFailed(Notification):
    """``session.error``: a turn failed."""

    @property
    def error(self) -> Failure:
        """The failure of the turn."""
        found = self._property("error")
        if not isinstance(found, Failure):
            raise AttributeError(f"error has an unknown shape: {found!r:.80}")
        return found


class SessionCompacted(Notification):
    """``session.compacted``: a Summary replaced older history for the model."""


class MessageUpdated(Notification):
    """``message.updated``: a message was added, or changed."""

    @property
    def message(self) -> Message:
        """The message as it is now, without its parts."""
        found = self._property("info")
        if not isinstance(found, Message):
            raise AttributeError(f"info has an unknown shape: {found!r:.80}")
        return found


class MessageDeleted(Notification):
    """``message.removed``: a message was removed from the history."""

    @property
    def message_id(self) -> str:
        """The message that was removed."""
        return _converted(self._property("messageID"), str)


class PartUpdated(Notification):
    """``message.part.updated``: a part was added, or changed. Text that grows is sent as deltas before."""

    @property
    def part(self) -> Part:
        """The part as it is now."""
        found = self._property("part")
        if not isinstance(found, Part):
            raise AttributeError(f"part has an unknown shape: {found!r:.80}")
        return found


class PartDeleted(Notification):
    """``message.part.removed``: a part was removed from its message."""

    @property
    def message_id(self) -> str:
        """The message that had the part."""
        return _converted(self._property("messageID"), str)

    @property
    def part_id(self) -> str:
        """The part that was removed."""
        return _converted(self._property("partID"), str)


class TodosUpdated(Notification):
    """``todo.updated``: the task list of a session changed."""

    @property
    def todos(self) -> tuple[Todo, ...]:
        """The task list now."""
        return _converted(self._property("todos"), tuple[Todo, ...])


class DiffUpdated(Notification):
    """``session.diff``: the changes of a session on disk were computed again."""

    @property
    def diffs(self) -> tuple[FileDiff, ...]:
        """All changes of the session, file by file."""
        return _converted(self._property("diff"), tuple[FileDiff, ...])


class PermissionWaits(Notification):
    """``permission.asked``: a call waits for a permission. ``reply`` answers it."""

    @property
    def request(self) -> PermissionRequest:
        """What is asked."""
        return _converted(dict(self.properties), PermissionRequest)


class PermissionSettled(Notification):
    """``permission.replied``: a permission request has its answer."""

    @property
    def request_id(self) -> str:
        """The request."""
        return _converted(self._property("requestID"), str)

    @property
    def reply(self) -> PermissionAnswer:
        """The answer. A request that was taken back counts as rejected."""
        return _converted({"answer": self._property("reply")}, Reply).answer


class QuestionWaits(Notification):
    """``question.asked``: a model waits for answers of the user. ``answer`` gives them."""

    @property
    def request(self) -> QuestionRequest:
        """What is asked."""
        return _converted(dict(self.properties), QuestionRequest)


class QuestionSettled(Notification):
    """``question.replied`` or ``question.rejected``: questions have their answers, or were dismissed."""

    @property
    def request_id(self) -> str:
        """The request."""
        return _converted(self._property("requestID"), str)

    @property
    def answers(self) -> tuple[tuple[str, ...], ...] | None:
        """For each question the chosen labels; None if they were dismissed."""
        return (
            _converted(self._property("answers"), tuple[tuple[str, ...], ...]) if "answers" in self.properties else None
        )


class Delta(Value):
    """A fragment of streaming text, not stored; the next ``message.part.updated`` has the whole text."""

    session_id: str
    directory: str
    message_id: str
    part_id: str
    field: str
    delta: str
    offset: int
    kind: Literal["text", "reasoning"] = "text"
    """The type of the part."""
    type: str = "message.part.delta"

    @property
    def droppable(self) -> bool:
        """Whether a slow subscriber may miss it: yes, the text is in the part."""
        return True


KINDS: Final[Mapping[str, type[Notification]]] = {
    "session.created": SessionAdded,
    "session.updated": SessionUpdated,
    "session.deleted": SessionDeleted,
    "session.status": StatusUpdated,
    "session.idle": SessionIdle,
    "session.error": SessionFailed,
    "session.compacted": SessionCompacted,
    "session.diff": DiffUpdated,
    "message.updated": MessageUpdated,
    "message.removed": MessageDeleted,
    "message.part.updated": PartUpdated,
    "message.part.removed": PartDeleted,
    "todo.updated": TodosUpdated,
    "permission.asked": PermissionWaits,
    "permission.replied": PermissionSettled,
    "question.asked": QuestionWaits,
    "question.replied": QuestionSettled,
    "question.rejected": QuestionSettled,
}
"""The class of each kind. A kind that is not in it is a plain Notification."""

AnyNotification: TypeAlias = (
    SessionAdded
    | SessionUpdated
    | SessionDeleted
    | StatusUpdated
    | SessionIdle
    | SessionFailed
    | SessionCompacted
    | DiffUpdated
    | MessageUpdated
    | MessageDeleted
    | PartUpdated
    | PartDeleted
    | TodosUpdated
    | PermissionWaits
    | PermissionSettled
    | QuestionWaits
    | QuestionSettled
    | Delta
    | Notification
)
"""What a subscriber receives."""

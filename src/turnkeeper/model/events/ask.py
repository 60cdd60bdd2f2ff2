"""Requests to the user: permissions and questions, with their answers."""

from turnkeeper.model.events.base import EventBase
from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest
from turnkeeper.model.question import QuestionRequest


class PermissionAsked(EventBase):
    """A running call waits for the user's permission.

    ``restarts``: the call has done nothing yet, so it may be run again from its beginning.
    """

    KIND = "permission.asked"
    request: PermissionRequest
    restarts: bool = True


class PermissionReplied(EventBase):
    """A permission request was answered, by the user, by another answer that covers it, or at its deadline."""

    KIND = "permission.replied"
    request_id: str
    reply: PermissionAnswer
    feedback: str | None = None
    absence: Absence | None = None


class QuestionAsked(EventBase):
    """A running call waits for the user's answers. ``restarts`` is as in ``PermissionAsked``."""

    KIND = "question.asked"
    request: QuestionRequest
    restarts: bool = True


class QuestionReplied(EventBase):
    """The user answered: for each question the chosen labels or the typed text."""

    KIND = "question.replied"
    request_id: str
    answers: tuple[tuple[str, ...], ...]


class QuestionRejected(EventBase):
    """The questions were dismissed, by the user or in the place of one."""

    KIND = "question.rejected"
    request_id: str
    absence: Absence | None = None


class AnswerApplied(EventBase):
    """The waiting call goes on with its answer. From here on it may have acted, so it is never run again."""

    KIND = "answer.applied"
    request_id: str

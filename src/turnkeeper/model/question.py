"""Questions that a model puts to the user, with options to choose from, and the answers to them."""

from turnkeeper.model.permission import Absence, AskedBy
from turnkeeper.model.value import Private, Value


class Option(Value):
    """One answer that can be chosen."""

    label: str
    description: str


class Question(Value):
    """One question. ``custom``: the user may also type an answer."""

    question: str
    header: str
    options: tuple[Option, ...]
    multiple: bool | None = None
    custom: bool | None = None


class QuestionRequest(Value):
    """Questions that one call asks together, in the shape that clients know."""

    id: str
    session_id: str
    questions: tuple[Question, ...]
    tool: AskedBy
    deadline: Private[int | None] = None
    """The time when the questions count as dismissed, in milliseconds since 1970."""


class QuestionReply(Value):
    """The answer: for each question the chosen labels or the typed text. None: the user dismissed the questions."""

    answers: tuple[tuple[str, ...], ...] | None = None
    absence: Absence | None = None
    """Set if the questions were dismissed in the place of a user."""

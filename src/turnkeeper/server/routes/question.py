"""Questions of models to the user, and the answers to them."""

from collections.abc import Sequence

from turnkeeper.model.permission import Absence
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.public import public
from turnkeeper.server.request import AnyRequest, HttpRequest, PlainRequest
from turnkeeper.server.route import route


class Answers(Value):
    """For each question the chosen labels, or the typed text."""

    answers: tuple[tuple[str, ...], ...]


class Dismissal(Value):
    """How questions are dismissed."""

    absence: Absence | None = None
    """Why they are not dismissed by the user, which the model is told."""


async def list_pending(call: PlainRequest) -> list[QuestionRequest]:
    """Pending questions of a directory."""
    place = await call.place()
    return [public(one) for one in await call.turnkeeper.questions(directory=place.directory)]


async def reply(call: HttpRequest[None, Answers]) -> bool:
    """Answer a question."""
    await answer(call, call.body.answers)
    return True


async def reject(call: HttpRequest[Dismissal, None]) -> bool:
    """Dismiss a question."""
    await answer(call, None, absence=call.query.absence)
    return True


async def answer(
    call: AnyRequest,
    given: Sequence[Sequence[str]] | None,
    *,
    absence: Absence | None = None,
    session_id: str | None = None,
) -> None:
    """Answer questions, or dismiss them. Raises Missing if they do not wait (any more)."""
    name = call.params["requestID"]
    try:
        await call.turnkeeper.answer(name, given, absence=absence, session_id=session_id)
    except NotFound as error:  # The request, or its session.
        raise Missing("Question", name) from error


ROUTES = (
    route("GET", "/question", "question.list", list_pending),
    route("POST", "/question/{requestID}/reply", "question.reply", reply, NotFound, Conflict),
    route("POST", "/question/{requestID}/reject", "question.reject", reject, NotFound, Conflict),
)

"""Questions of tools to the user. No tool asks questions yet, so the list is empty and a reply is refused."""

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.errors import Missing
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import Route


class Answers(Value):
    """For each question the chosen labels, or the typed text."""

    answers: tuple[tuple[str, ...], ...]


async def list_pending(call: PlainRequest) -> list[JsonObject]:
    """Pending questions: an empty list, because no tool asks questions."""
    return []


async def reply(call: HttpRequest[None, Answers]) -> bool:
    """Answer a question. Always refused, because no tool asks questions."""
    raise Missing("Question", call.params["requestID"])


async def reject(call: PlainRequest) -> bool:
    """Dismiss a question. Always refused, because no tool asks questions."""
    raise Missing("Question", call.params["requestID"])


ROUTES = (
    Route(method="GET", path="/question", operation="question.list", handler=list_pending, answer=list[JsonObject]),
    Route(
        method="POST",
        path="/question/{requestID}/reply",
        operation="question.reply",
        handler=reply,
        body=Answers,
        answer=bool,
        errors=(NotFound,),
    ),
    Route(
        method="POST",
        path="/question/{requestID}/reject",
        operation="question.reject",
        handler=reject,
        answer=bool,
        errors=(NotFound,),
    ),
)

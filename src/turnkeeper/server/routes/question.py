"""Questions of tools to the user. No tool asks any yet, so none waits."""

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.call import HttpRequest, PlainRequest
from turnkeeper.server.errors import Missing
from turnkeeper.server.route import Route


class Answers(Value):
    """For each question the labels that were chosen, or what was typed."""

    answers: tuple[tuple[str, ...], ...]


async def list_pending(call: PlainRequest) -> list[JsonObject]:
    """What waits for an answer."""
    return []


async def reply(call: HttpRequest[None, Answers]) -> bool:
    """Answer a question."""
    raise Missing("Question", call.params["requestID"])


async def reject(call: PlainRequest) -> bool:
    """Dismiss a question."""
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

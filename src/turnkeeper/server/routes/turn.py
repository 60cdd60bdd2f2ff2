"""What makes a session work: prompts, the user's own commands, and stopping."""

from contextlib import suppress
from typing import Final, TypeVar

import anyio.lowlevel

from turnkeeper.model.message import AssistantMessage, ModelChoice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.prompt import Prompt
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server import elsewhere
from turnkeeper.server.call import HttpRequest, PlainRequest
from turnkeeper.server.public import public
from turnkeeper.server.route import Route
from turnkeeper.server.streams.hub import Hub
from turnkeeper.sessions import prompt as prompting
from turnkeeper.store.engine import StoreFull, StoreUnavailable

B = TypeVar("B")

HASTY: Final = "opencode/"
"""How clients call themselves that go as soon as they are answered, whatever their stream still holds (`opencode run`
reads its answer before its stream if both come at once)."""

HASTE_S: Final = 0.05
"""How long the answer of such a client is held back. Nobody notices: it takes a second to start."""

NEWEST: Final = 3
"""Messages looked at for the newest answer before the whole history is: it is the last one, but for news."""


class ShellBody(Value):
    """A command of the user's."""

    message_id: str | None = None
    agent: str
    model: ModelChoice | None = None
    command: str


class SummariseBody(Value):
    """Who writes the Summary, and whether the session goes on with its work afterwards."""

    provider_id: str
    model_id: str
    auto: bool = False


async def prompt(call: HttpRequest[None, Prompt]) -> MessageWithParts:
    """Admit a prompt and answer with the last thing the assistant said once the session rests."""
    if call.body.no_reply:
        tk = call.turnkeeper
        return public(await prompting.note(tk.store, tk.runtime, call.session_id, call.body))
    receipt = await call.turnkeeper.prompt(call.session_id, call.body)
    return await answered(call, receipt.message_id)


async def answered(call: HttpRequest[None, B], message_id: str | None = None) -> MessageWithParts:
    """The last thing the assistant said once the session rests and all streams have it.

    Raises Busy if the session was stopped before it took up the prompt ``message_id``: nothing was said about that.
    """
    outcome = await elsewhere.wait(call.turnkeeper, call.session_id)
    await _tell_first(call)
    if outcome.store != "ok":
        raise (StoreFull if outcome.store == "full" else StoreUnavailable)(outcome.reason)
    if outcome.kind == "refused":
        raise Invalid(outcome.reason)
    if outcome.kind == "crashed":
        raise RuntimeError(f"the run of {call.session_id} crashed: {outcome.reason}")
    view = await call.turnkeeper.store.journal.view(call.session_id)
    if any(waiting.message.id == message_id for waiting in view.inbox):
        raise Busy("the session was stopped before this prompt was taken up; it waits for the next run")
    return public(await _newest_answer(call))


async def _tell_first(call: HttpRequest[None, B]) -> None:
    """Let streams have all that happened before the answer: some clients hear no more once they have that."""
    hubs = call.service.made(Hub)
    for hub in hubs:
        hub.flush()
    await anyio.lowlevel.checkpoint()  # The streams write now.
    if call.headers.get("user-agent", "").startswith(HASTY):
        for hub in hubs:
            if hub.subscribers:
                await hub.metre.sleep(HASTE_S)


async def _newest_answer(call: HttpRequest[None, B]) -> MessageWithParts:
    page = await call.turnkeeper.messages(call.session_id, limit=NEWEST)
    for message in reversed(page.items):
        if isinstance(message.info, AssistantMessage):
            return message
    async for message in call.turnkeeper.stream(call.session_id):
        if isinstance(message.info, AssistantMessage):
            return message
    raise NotFound("the session was stopped before anything was said")


async def prompt_async(call: HttpRequest[None, Prompt]) -> None:
    """Admit a prompt; what comes of it is told as events."""
    await call.turnkeeper.prompt(call.session_id, call.body)


async def shell(call: HttpRequest[None, ShellBody]) -> MessageWithParts:
    """Run a command of the user's; no model is asked."""
    given = call.body
    done = await call.turnkeeper.shell(call.session_id, given.command, agent=given.agent, model=given.model)
    await _tell_first(call)
    return public(done)


async def summarise(call: HttpRequest[None, SummariseBody]) -> bool:
    """Let a Summary take the place of older history."""
    given = call.body
    model = ModelChoice(provider_id=given.provider_id, model_id=given.model_id)
    await call.turnkeeper.compact(call.session_id, force=True, auto=given.auto, model=model)
    await _tell_first(call)
    return True


async def abort(call: PlainRequest) -> bool:
    """Stop a session. Refused while another process runs it, for only that one can stop it."""
    with suppress(NotFound):  # Clients expect a yes all the same.
        await call.turnkeeper.abort(call.session_id)
    return True


ROUTES = (
    Route(
        method="POST",
        path="/session/{sessionID}/message",
        operation="session.prompt",
        handler=prompt,
        body=Prompt,
        answer=MessageWithParts,
        errors=(Busy, Conflict, Invalid, NotFound),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/prompt_async",
        operation="session.prompt_async",
        handler=prompt_async,
        body=Prompt,
        status=204,
        errors=(Busy, Conflict, Invalid, NotFound),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/shell",
        operation="session.shell",
        handler=shell,
        body=ShellBody,
        answer=MessageWithParts,
        errors=(Busy, Invalid, NotFound),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/summarize",
        operation="session.summarize",
        handler=summarise,
        body=SummariseBody,
        answer=bool,
        errors=(Busy, Invalid, NotFound),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/abort",
        operation="session.abort",
        handler=abort,
        answer=bool,
        errors=(Busy,),
    ),
)

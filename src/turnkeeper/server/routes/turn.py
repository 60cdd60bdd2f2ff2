"""Prompts, shell commands, summaries and interrupts: the requests that start or stop work in a session."""

from contextlib import suppress
from typing import Final, TypeVar

import anyio.lowlevel

from turnkeeper.model.message import AssistantMessage, ModelChoice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.prompt import Prompt
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.public import public
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.streams.hub import Hub
from turnkeeper.server.wait_idle import wait_idle
from turnkeeper.sessions import prompt as prompting
from turnkeeper.store.engine import StoreFull, StoreUnavailable

B = TypeVar("B")

HASTY: Final = "opencode/"
"""The user agent of clients that exit with the response and lose the rest of their stream. `opencode run` reads the
response first if both arrive at once.
"""

HASTE_S: Final = 0.05
"""Delay of the response to such a client. It is not noticeable: the client takes a second to start."""

NEWEST: Final = 3
"""Messages searched for the newest answer before the whole history is. Only system messages can follow an answer."""


class ShellBody(Value):
    """A shell command of the user."""

    message_id: str | None = None
    agent: str
    model: ModelChoice | None = None
    command: str


class SummariseBody(Value):
    """The model that writes the Summary, and whether the session continues its work afterwards."""

    provider_id: str
    model_id: str
    auto: bool = False


async def prompt(call: HttpRequest[None, Prompt]) -> MessageWithParts:
    """Admit a prompt; the response is the last answer of the assistant, sent when the session is idle."""
    if call.body.no_reply:
        tk = call.turnkeeper
        return public(await prompting.note(tk.store, tk.runtime, call.session_id, call.body))
    receipt = await call.turnkeeper.prompt(call.session_id, call.body)
    return await answered(call, receipt.message_id)


async def answered(call: HttpRequest[None, B], message_id: str | None = None) -> MessageWithParts:
    """Wait until the session is idle and its events are sent to all streams; the last answer of the assistant.

    Raises Busy if the session was stopped before it promoted the prompt ``message_id``.
    """
    outcome = await wait_idle(call.turnkeeper, call.session_id)
    await _flush_streams(call)
    if outcome.store != "ok":
        raise (StoreFull if outcome.store == "full" else StoreUnavailable)(outcome.reason)
    if outcome.kind == "refused":
        raise Invalid(outcome.reason)
    if outcome.kind == "crashed":
        raise RuntimeError(f"the run of {call.session_id} crashed: {outcome.reason}")
    view = await call.turnkeeper.store.journal.view(call.session_id)
    if any(waiting.message.id == message_id for waiting in view.inbox):
        raise Busy("the session was stopped before it promoted this prompt, which waits for the next run")
    return public(await _newest_answer(call))


async def _flush_streams(call: HttpRequest[None, B]) -> None:
    """Send all events before the response: some clients stop reading their stream after the response."""
    hubs = call.service.made(Hub)
    for hub in hubs:
        hub.flush()
    await anyio.lowlevel.checkpoint()  # Let the streams write.
    if call.headers.get("user-agent", "").startswith(HASTY):
        for hub in hubs:
            if hub.subscribers:
                await hub.settings.sleep(HASTE_S)


async def _newest_answer(call: HttpRequest[None, B]) -> MessageWithParts:
    page = await call.turnkeeper.messages(call.session_id, limit=NEWEST)
    for message in reversed(page.items):
        if isinstance(message.info, AssistantMessage):
            return message
    async for message in call.turnkeeper.iter_messages(call.session_id):
        if isinstance(message.info, AssistantMessage):
            return message
    raise NotFound("the session was stopped before the assistant answered")


async def prompt_async(call: HttpRequest[None, Prompt]) -> None:
    """Admit a prompt and respond at once; the answer is published as events."""
    await call.turnkeeper.prompt(call.session_id, call.body)


async def shell(call: HttpRequest[None, ShellBody]) -> MessageWithParts:
    """Run a shell command of the user, without a model; its output becomes part of the history."""
    given = call.body
    done = await call.turnkeeper.shell(call.session_id, given.command, agent=given.agent, model=given.model)
    await _flush_streams(call)
    return public(done)


async def summarise(call: HttpRequest[None, SummariseBody]) -> bool:
    """Replace older history by a Summary."""
    given = call.body
    model = ModelChoice(provider_id=given.provider_id, model_id=given.model_id)
    await call.turnkeeper.compact(call.session_id, force=True, auto=given.auto, model=model)
    await _flush_streams(call)
    return True


async def abort(call: PlainRequest) -> bool:
    """Stop a session, whichever process runs it. Refused if that process does not stop it in time."""
    with suppress(NotFound):  # Clients expect true also for an unknown session.
        await call.turnkeeper.stop(call.session_id)
    return True


async def resume(call: PlainRequest) -> None:
    """Continue a session whose last turn failed, was stopped or cut off, and respond at once."""
    await call.turnkeeper.get(call.session_id)
    await call.turnkeeper.runtime.request(call.session_id, resume=True)


ROUTES = (
    route("POST", "/session/{sessionID}/message", "session.prompt", prompt, Busy, Conflict, NotFound),
    route("POST", "/session/{sessionID}/prompt_async", "session.prompt_async", prompt_async, Busy, Conflict, NotFound),
    route("POST", "/session/{sessionID}/shell", "session.shell", shell, Busy, NotFound),
    route("POST", "/session/{sessionID}/summarize", "session.summarize", summarise, Busy, NotFound),
    route("POST", "/session/{sessionID}/abort", "session.abort", abort, Busy),
    route("POST", "/tk/session/{sessionID}/resume", "turnkeeper.session.resume", resume, NotFound),
)

"""Sessions, second generation: create, list, prompt, interrupt."""

from typing import Annotated

import msgspec

from turnkeeper.model.message import ModelChoice
from turnkeeper.model.refusal import Busy, Conflict, NotFound
from turnkeeper.model.session import SessionModel
from turnkeeper.model.value import Value
from turnkeeper.server.errors import checked_directory
from turnkeeper.server.names import ProjectName, SessionName
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.routes.session import status
from turnkeeper.server.v2 import prompting
from turnkeeper.server.v2.prompting import PromptBody
from turnkeeper.server.v2.reading import Order, decode_cursor
from turnkeeper.server.v2.session import ListPlace, SessionInfo, SessionsPage, SessionsQuery, session_info, sessions
from turnkeeper.server.v2.shape import AdmittedPrompt, Location
from turnkeeper.server.wait_idle import wait_idle
from turnkeeper.sessions import edit

Positive = Annotated[int, msgspec.Meta(ge=1)]


class ApiNewSession(Value):
    """Fields of a new session. If a session with this id exists, it is returned unchanged."""

    id: SessionName | None = None
    agent: str | None = None
    model: SessionModel | None = None
    location: Location | None = None


class ApiListQuery(Value):
    """Which sessions to return. A cursor also holds the order."""

    limit: Positive = 50
    order: Order = "desc"
    search: str | None = None
    directory: str | None = None
    project: ProjectName | None = None
    subpath: str | None = None
    cursor: str | None = None


class AgentBody(Value):
    """The agent of the following turns."""

    agent: str


class ModelBody(Value):
    """The model of the following turns."""

    model: SessionModel


class One(Value):
    """One session."""

    data: SessionInfo


class AdmissionAnswer(Value):
    """The receipt of an admitted prompt."""

    data: AdmittedPrompt


class RunningSession(Value, tag_field="type", tag="running"):
    """A session that is running."""


class Active(Value, omit_defaults=False):
    """The running sessions by id."""

    data: dict[str, RunningSession]


async def create(call: HttpRequest[None, ApiNewSession]) -> One:
    """Create a session."""
    given = call.body
    named = given.location.directory if given.location is not None else None
    made = await call.turnkeeper.create(
        id=given.id,
        directory=checked_directory(named, "Payload") if named is not None else call.directory,
        agent=given.agent,
        model=given.model,
    )
    return One(data=session_info(made))


async def list_sessions(call: HttpRequest[ApiListQuery, None]) -> SessionsPage:
    """A page of sessions."""
    given = call.query
    if given.directory is not None:
        checked_directory(given.directory, "Query")
    wanted = SessionsQuery(directory=given.directory, project=given.project, subpath=given.subpath, search=given.search)
    place = decode_cursor(given.cursor, ListPlace) if given.cursor else None
    return await sessions(call.turnkeeper.store, wanted, limit=given.limit, order=given.order, place=place)


async def active(call: PlainRequest) -> Active:
    """The running sessions, of this process and of others."""
    return Active(data=dict.fromkeys(await status(call), RunningSession()))


async def get(call: PlainRequest) -> One:
    """A session."""
    return One(data=session_info(await call.turnkeeper.get(call.session_id)))


async def prompt(call: HttpRequest[None, PromptBody]) -> AdmissionAnswer:
    """Admit a prompt; it is durable when the response is sent."""
    return AdmissionAnswer(data=await prompting.prompt(call.turnkeeper, call.session_id, call.body))


async def interrupt(call: PlainRequest) -> None:
    """Stop a session, whichever process runs it, and wait until its calls are settled."""
    await call.turnkeeper.stop(call.session_id)


async def wait(call: PlainRequest) -> None:
    """Wait until a session is idle, whichever process runs it."""
    await wait_idle(call.turnkeeper, call.session_id)


async def compact(call: PlainRequest) -> None:
    """Replace the history so far by a summary."""
    await call.turnkeeper.compact(call.session_id, force=True)


async def switch_agent(call: HttpRequest[None, AgentBody]) -> None:
    """Use another agent for the following turns."""
    agent = call.directories.config(await call.place()).agent(call.body.agent)
    await edit.patch(call.turnkeeper.store, call.session_id, lambda session: session.but(agent=agent.name))


async def switch_model(call: HttpRequest[None, ModelBody]) -> None:
    """Use another model for the following turns."""
    model = call.body.model
    choice = ModelChoice(provider_id=model.provider_id, model_id=model.id, variant=model.variant)
    call.turnkeeper.runtime.model(choice, await call.place())
    await edit.patch(call.turnkeeper.store, call.session_id, lambda session: session.but(model=model))


ROUTES = (
    route("POST", "/api/session", "v2.session.create", create),
    route("GET", "/api/session", "v2.session.list", list_sessions),
    route("GET", "/api/session/active", "v2.session.active", active),
    route("GET", "/api/session/{sessionID}", "v2.session.get", get, NotFound),
    route("POST", "/api/session/{sessionID}/prompt", "v2.session.prompt", prompt, NotFound, Conflict),
    route("POST", "/api/session/{sessionID}/interrupt", "v2.session.interrupt", interrupt, Busy, NotFound),
    route("POST", "/api/session/{sessionID}/wait", "v2.session.wait", wait, NotFound),
    route("POST", "/api/session/{sessionID}/compact", "v2.session.compact", compact, NotFound, Busy),
    route("POST", "/api/session/{sessionID}/agent", "v2.session.switchAgent", switch_agent, NotFound),
    route("POST", "/api/session/{sessionID}/model", "v2.session.switchModel", switch_model, NotFound),
)

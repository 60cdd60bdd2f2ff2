"""Commands with templates: list them, and send one as a prompt."""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from turnkeeper.context.texts import text
from turnkeeper.core.commands import expanded, find, hints, is_subtask
from turnkeeper.model.agent import Agent
from turnkeeper.model.config import CommandConfig
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Notification
from turnkeeper.model.prompt import FileInput, Prompt, SubtaskInput, TextInput
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.catalogue import Catalogue
from turnkeeper.server.mask import Mask
from turnkeeper.server.names import MessageName
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import Route
from turnkeeper.server.routes.turn import answered
from turnkeeper.workspace.project import ProjectPlace

B = TypeVar("B")


INIT: Final = "init"


class CommandEntry(Value):
    """A command as clients receive it."""

    name: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    source: Literal["command"]
    template: str
    subtask: bool | None = None
    hints: tuple[str, ...] = ()


class CommandBody(Value):
    """The name of a command, and its arguments."""

    message_id: str | None = None
    agent: str | None = None
    model: str | None = None
    arguments: str
    command: str
    variant: str | None = None
    parts: tuple[FileInput, ...] = ()


class InitBody(Value):
    """The model that examines the repository, and the id of the prompt."""

    provider_id: str
    model_id: str
    message_id: MessageName


async def commands(call: PlainRequest) -> list[CommandEntry]:
    """Commands with templates: the built-in command and those of the configuration."""
    place = await call.place()
    known, mask = _known(call, place), call.service.part(Catalogue).mask(place)
    return [_entry(name, command, mask) for name, command in sorted(known.items())]


async def command(call: HttpRequest[None, CommandBody]) -> MessageWithParts:
    """Send a command's template, with its arguments, as a prompt; the response is sent when the session is idle."""
    return await _send(call, call.body)


async def init(call: HttpRequest[None, InitBody]) -> bool:
    """Send the `init` command, which writes or improves AGENTS.md; the response is sent when the session is idle."""
    given = call.body
    model = f"{given.provider_id}/{given.model_id}"
    await _send(call, CommandBody(command=INIT, arguments="", model=model, message_id=given.message_id))
    return True


def _known(call: HttpRequest[None, B], place: ProjectPlace) -> Mapping[str, CommandConfig]:
    """The built-in command and those of the configuration, which may replace the built-in one."""
    config, _ = call.turnkeeper.runtime.directories.catalog(place)
    built_in = CommandConfig(template=text(INIT), description="Write or improve AGENTS.md.")
    return {INIT: built_in, **config.command}


async def _send(call: HttpRequest[None, B], given: CommandBody) -> MessageWithParts:
    place = await call.place()
    chosen = find(_known(call, place), given.command)
    agent = await call.turnkeeper.runtime.agent(chosen.agent or given.agent, place)
    prompt = _subtask(chosen, given, agent) if is_subtask(chosen, agent) else _prompt(chosen, given)
    receipt = await call.turnkeeper.prompt(call.session_id, prompt)
    session = await call.turnkeeper.get(call.session_id)
    answer = await answered(call)
    executed = {"name": given.command, "arguments": given.arguments, "messageID": receipt.message_id}
    call.turnkeeper.publish(
        Notification(
            type="command.executed",
            session_id=session.id,
            directory=session.directory,
            seq=0,
            properties={**executed, "sessionID": session.id},
            project_id=session.project_id,
        )
    )
    return answer


def _prompt(chosen: CommandConfig, given: CommandBody) -> Prompt:
    """The template as a prompt for the command's agent and model."""
    model = chosen.model or given.model
    return Prompt(
        message_id=given.message_id,
        parts=(TextInput(text=expanded(chosen.template, given.arguments)), *given.parts),
        agent=chosen.agent or given.agent,
        model=_choice(model) if model is not None else None,
        variant=given.variant,
    )


def _subtask(chosen: CommandConfig, given: CommandBody, agent: Agent) -> Prompt:
    """The template as a subtask for the command's agent. The model of the request answers then."""
    subtask = SubtaskInput(
        prompt=expanded(chosen.template, given.arguments),
        description=chosen.description or given.command,
        agent=agent.name,
        model=_choice(chosen.model) if chosen.model is not None else agent.model,
        command=given.command,
    )
    return Prompt(
        message_id=given.message_id,
        parts=(subtask,),
        agent=given.agent,
        model=_choice(given.model) if given.model is not None else None,
        variant=given.variant,
    )


def _entry(name: str, command: CommandConfig, mask: Mask) -> CommandEntry:
    return CommandEntry(
        name=name,
        description=mask.text(command.description) if command.description is not None else None,
        agent=command.agent,
        model=command.model,
        source="command",
        template=mask.text(command.template),
        subtask=command.subtask,
        hints=hints(command.template),
    )


def _choice(model: str) -> ModelChoice:
    provider_id, slash, model_id = model.partition("/")
    if not slash or not provider_id or not model_id:
        raise Invalid(f"{model!r} names no model; write provider/model")
    return ModelChoice(provider_id=provider_id, model_id=model_id)


ROUTES = (
    Route(method="GET", path="/command", operation="command.list", handler=commands, answer=list[CommandEntry]),
    Route(
        method="POST",
        path="/session/{sessionID}/command",
        operation="session.command",
        handler=command,
        body=CommandBody,
        answer=MessageWithParts,
        errors=(Busy, Conflict, Invalid, NotFound),
    ),
    Route(
        method="POST",
        path="/session/{sessionID}/init",
        operation="session.init",
        handler=init,
        body=InitBody,
        answer=bool,
        errors=(Busy, Conflict, Invalid, NotFound),
    ),
)

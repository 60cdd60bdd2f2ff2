"""Commands with templates: which there are, and to say one."""

from collections.abc import Mapping
from typing import Final, Literal, TypeVar

from turnkeeper.context.texts import text
from turnkeeper.core.commands import expanded, find, hints
from turnkeeper.model.config import CommandConfig
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Notification
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.model.refusal import Busy, Conflict, Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.call import HttpRequest, PlainRequest
from turnkeeper.server.catalogue import Catalogue
from turnkeeper.server.masked import Mask
from turnkeeper.server.names import MessageName
from turnkeeper.server.route import Route
from turnkeeper.server.routes.turn import answered
from turnkeeper.workspace.project import ProjectPlace

B = TypeVar("B")


INIT: Final = "init"


class CommandWords(Value):
    """A command as clients list it."""

    name: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    source: Literal["command"]
    template: str
    subtask: bool | None = None
    hints: tuple[str, ...] = ()


class CommandBody(Value):
    """Which command, and what stands behind its name."""

    message_id: str | None = None
    agent: str | None = None
    model: str | None = None
    arguments: str
    command: str
    variant: str | None = None
    parts: tuple[FileInput, ...] = ()


class InitBody(Value):
    """Who looks at the repository, and the id of the prompt."""

    provider_id: str
    model_id: str
    message_id: MessageName


async def commands(call: PlainRequest) -> list[CommandWords]:
    """Every command of a directory."""
    place = await call.place()
    known, mask = _known(call, place), call.service.part(Catalogue).mask(place)
    return [_words(name, command, mask) for name, command in sorted(known.items())]


async def command(call: HttpRequest[None, CommandBody]) -> MessageWithParts:
    """Say a command: its template with the arguments in it is a prompt like any other."""
    return await _say(call, call.body)


async def init(call: HttpRequest[None, InitBody]) -> bool:
    """Have AGENTS.md written: the command of that name, with nothing behind it."""
    given = call.body
    model = f"{given.provider_id}/{given.model_id}"
    await _say(call, CommandBody(command=INIT, arguments="", model=model, message_id=given.message_id))
    return True


def _known(call: HttpRequest[None, B], place: ProjectPlace) -> Mapping[str, CommandConfig]:
    """The commands there are: the built-in one, unless the configuration has another of its name, and its own."""
    config, _ = call.turnkeeper.runtime.directories.catalog(place)
    built_in = CommandConfig(template=text(INIT), description="Write or improve AGENTS.md.")
    return {INIT: built_in, **config.command}


async def _say(call: HttpRequest[None, B], given: CommandBody) -> MessageWithParts:
    chosen = find(_known(call, await call.place()), given.command)
    if chosen.subtask:
        raise Invalid(f"the command {given.command!r} is for a subagent, and there are none yet")
    model = chosen.model or given.model
    prompt = Prompt(
        message_id=given.message_id,
        parts=(TextInput(text=expanded(chosen.template, given.arguments)), *given.parts),
        agent=chosen.agent or given.agent,
        model=_choice(model) if model is not None else None,
        variant=given.variant,
    )
    receipt = await call.turnkeeper.prompt(call.session_id, prompt)
    session = await call.turnkeeper.get(call.session_id)
    answer = await answered(call)
    told = {"name": given.command, "arguments": given.arguments, "messageID": receipt.message_id}
    call.turnkeeper.publish(
        Notification(
            type="command.executed",
            session_id=session.id,
            directory=session.directory,
            seq=0,
            properties={**told, "sessionID": session.id},
            project_id=session.project_id,
        )
    )
    return answer


def _words(name: str, command: CommandConfig, mask: Mask) -> CommandWords:
    return CommandWords(
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
    Route(method="GET", path="/command", operation="command.list", handler=commands, answer=list[CommandWords]),
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

"""Commands with templates: list them, and send one as a prompt."""

from typing import TypeVar

import msgspec

from turnkeeper.model.command import CommandCall, CommandSource
from turnkeeper.model.message import model_choice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.prompt import FileInput
from turnkeeper.model.refusal import Busy, Conflict, Forbidden, NotFound
from turnkeeper.model.value import Value
from turnkeeper.run.commands import INIT
from turnkeeper.server.catalogue import Catalogue
from turnkeeper.server.names import MessageName
from turnkeeper.server.request import HttpRequest, PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.routes.turn import answered
from turnkeeper.sessions import command as sending

B = TypeVar("B")


class CommandEntry(Value):
    """A command as clients receive it."""

    name: str
    description: str | None = None
    agent: str | None = None
    model: str | None = None
    source: CommandSource
    template: str
    subtask: bool | None = None
    hints: tuple[str, ...] = ()


class CommandBody(Value):
    """The name of a command, and its arguments. ``input`` is further text, in which nothing is replaced or run."""

    message_id: str | None = None
    agent: str | None = None
    model: str | None = None
    arguments: str
    command: str
    variant: str | None = None
    parts: tuple[FileInput, ...] = ()
    input: str = ""


class InitBody(Value):
    """The model that examines the repository, and the id of the prompt."""

    provider_id: str
    model_id: str
    message_id: MessageName


async def commands(call: PlainRequest) -> list[CommandEntry]:
    """Commands with templates: built-in ones, those of the configuration and of markdown files, and skills."""
    found = await call.service.part(Catalogue).commands(await call.place())
    return msgspec.convert(found, list[CommandEntry], from_attributes=True)


async def command(call: HttpRequest[None, CommandBody]) -> MessageWithParts:
    """Send a command's template, with its arguments, as a prompt; the response is sent when the session is idle."""
    given = call.body
    model = model_choice(given.model) if given.model is not None else None
    return await _send(
        call,
        CommandCall(
            command=given.command,
            arguments=given.arguments,
            input=given.input,
            message_id=given.message_id,
            agent=given.agent,
            model=model,
            variant=given.variant,
            parts=given.parts,
        ),
    )


async def init(call: HttpRequest[None, InitBody]) -> bool:
    """Send the `init` command, which writes or improves AGENTS.md; the response is sent when the session is idle."""
    given = call.body
    model = model_choice(f"{given.provider_id}/{given.model_id}")
    await _send(call, CommandCall(command=INIT, model=model, message_id=given.message_id))
    return True


async def _send(call: HttpRequest[None, B], given: CommandCall) -> MessageWithParts:
    tk = call.turnkeeper
    await tk.runtime.lease_keeper.host.check_prompt(call.session_id)
    receipt = await sending.send(tk.store, tk.runtime, call.session_id, given)
    await tk.runtime.request(call.session_id)
    session = await tk.get(call.session_id)
    answer = await answered(call, receipt.message_id)
    tk.publish(sending.executed(session, given, receipt.message_id))
    return answer


ROUTES = (
    route("GET", "/command", "command.list", commands),
    route("POST", "/session/{sessionID}/command", "session.command", command, Busy, Conflict, Forbidden, NotFound),
    route("POST", "/session/{sessionID}/init", "session.init", init, Busy, Conflict, Forbidden, NotFound),
)

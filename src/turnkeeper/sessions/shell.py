"""Run a shell command of the user in a session. The model gets its output with the next prompt."""

from turnkeeper.core.admission import model_of
from turnkeeper.model.message import AssistantMessage, MessageTime, ModelChoice, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.prompt import Prompt
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session
from turnkeeper.plugins import calls
from turnkeeper.run.runtime import Runtime
from turnkeeper.run.shell import ShellCommand
from turnkeeper.sessions.prompt import last_model
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace


async def shell(
    store: Store,
    runtime: Runtime,
    place: ProjectPlace,
    session: Session,
    command: str,
    *,
    agent: str | None = None,
    model: ModelChoice | None = None,
) -> MessageWithParts:
    """Run a command to its end, or until it is stopped; the message with its output.

    Raises Busy while the session runs, and Invalid for an unknown agent or model.
    """
    _check(command)
    known = runtime.directories.config(place)
    chosen, config = known.agent(agent or session.agent), known.config
    last = await last_model(store, session)
    user = UserMessage(
        id=store.mint.message_id(),
        session_id=session.id,
        time=MessageTime(created=store.mint.now()),
        agent=chosen.name,
        model=model_of(
            Prompt(parts=(), model=model),
            chosen,
            session.model,
            lambda: last or runtime.directories.default_model(place),
        ),
    )
    if model is not None:
        runtime.model(model, place)
    directories = runtime.directories
    plugins = (await directories.setup(place)).plugins
    environ = await calls.environ(plugins, directories.environ(config), place.directory, session_id=session.id)
    running = ShellCommand(
        store.mint,
        user,
        command,
        place,
        runtime.group,
        environ,
        runtime.is_cut_off,
        directories.bounds(config, session.id),
    )
    await runtime.alone(session.id, running.run)
    return await _answer(store, session.id, user.id)


def _check(command: str) -> None:
    if not command.strip():
        raise Invalid("the command is empty; say what to run")
    if "\0" in command:
        raise Invalid("the command holds a NUL character, which no program can be given")
    try:
        command.encode()
    except UnicodeEncodeError as error:
        raise Invalid(f"the command holds half a character ({error.reason}); send whole ones") from error


async def _answer(store: Store, session_id: str, user_id: str) -> MessageWithParts:
    async for message in store.queries.stream(session_id):
        if isinstance(message.info, AssistantMessage) and message.info.parent_id == user_id:
            return message
    raise NotFound("the command was stopped before it began")

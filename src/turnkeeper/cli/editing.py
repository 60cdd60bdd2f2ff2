"""Commands that change sessions: create, fork, archive, restore, rename, move."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer
from turnkeeper.cli.screen import Screen, one_line
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.session import Session
    from turnkeeper.model.value import JsonObject

Title = Annotated[str | None, Parameter(metavar="TEXT", help="The title.", allow_leading_hyphen=True)]


async def create(
    *,
    title: Title = None,
    directory: Annotated[
        Path | None, Parameter(metavar="DIR", help="Its directory; the current one by default.")
    ] = None,
    parent: Annotated[
        str | None,
        Parameter(metavar="ID", help="Make it a Child Session of this session.", completer=candidates.sessions),
    ] = None,
    agent: Annotated[str | None, Parameter(metavar="NAME", help="Its agent.", completer=candidates.agents)] = None,
    model: Annotated[
        str | None, Parameter(metavar="PROVIDER/MODEL", help="Its model.", completer=candidates.models)
    ] = None,
    metadata: Annotated[str | None, Parameter(metavar="JSON", help="A JSON object to store with it.")] = None,
    label: Annotated[
        str | None, Parameter(metavar="LABEL", help="Only workers with this label run it; they have its directory.")
    ] = None,
    id: Annotated[str | None, Parameter(metavar="ID", help="Its id. An existing session is left unchanged.")] = None,
    options: Options,
) -> None:
    """Create a session.

    The default title is the time. The answer is the new session. An agent or a
    model that the directory does not have is refused with exit code 2.

    For example:
      turnkeeper session create --title "Wind over the bay"
      turnkeeper session create --parent calm-otter --directory ~/code/weather
      id=$(turnkeeper session create --json | jq -r .id)
    """
    from turnkeeper.model.session import SessionModel

    place = _there(directory, label, is_near=options.is_near) if directory is not None else None
    chosen = names.model(model)
    async with options.sessions() as tk:
        if local_store(tk) is not None:
            await _check_known(options, place or Path.cwd(), agent, chosen)
        exists = id is not None and await _exists(tk, id)
        session = await tk.create(
            title=title,
            directory=place,
            parent_id=await names.session(tk, parent) if parent is not None else None,
            agent=agent,
            model=SessionModel(id=chosen.model_id, provider_id=chosen.provider_id) if chosen is not None else None,
            metadata=_metadata(metadata) if metadata is not None else None,
            label=label,
            id=id,
        )
    verb = "Exists already, unchanged:" if exists else "Created"
    answer(options, session, lambda screen: _done(screen, verb, session))


async def _check_known(options: Options, directory: Path, agent: str | None, model: "ModelChoice | None") -> None:
    """Raise UsageError for an agent or a model that the configuration of the directory does not have."""
    if agent is None and model is None:
        return
    from turnkeeper.cli.models import local_catalog
    from turnkeeper.core.agents import find_agent
    from turnkeeper.providers import choice
    from turnkeeper.run.configured import configured_agents

    config, catalog = await local_catalog(options.environ, directory)
    try:
        if agent is not None:
            find_agent(configured_agents(config, options.environ), agent)
        if model is not None:
            choice.find(catalog, model)
    except Invalid as error:
        raise UsageError(str(error)) from error
    except NotFound as error:
        raise UsageError(f"{error} (`turnkeeper models PROVIDER` lists the models of a provider)") from error


async def _exists(tk: "Turnkeeper | Client", session_id: str) -> bool:
    try:
        await tk.get(session_id)
    except (Invalid, NotFound):  # ``create`` refuses what is no id.
        return False
    return True


async def fork(
    id: names.SessionName,
    /,
    *,
    message: Annotated[str | None, Parameter(metavar="ID", help="Copy only the messages before this one.")] = None,
    at: Annotated[
        int | None,
        Parameter(metavar="SEQ", converter=names.whole, help="Copy it as it was after this event."),
    ] = None,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="The directory of the copy.")] = None,
    worktree: Annotated[
        Path | None, Parameter(metavar="DIR", help="A new git worktree for the copy, with the files of that moment.")
    ] = None,
    options: Options,
) -> None:
    """Copy the history of a session, or its beginning, into a new session.

    --worktree adds a worktree to your repository and writes the files of the
    nearest snapshot there, so that two attempts run side by side. Ignored files
    are not in it. A directory without git is copied. DIR must be new or empty.

    For example:
      turnkeeper session fork calm-otter
      turnkeeper session fork ses_e1f51c506ffe --message msg_1e0ae3b0a001
      turnkeeper session fork calm-otter --at 40 --worktree ../second-attempt
    """
    if directory is not None:
        options.require_store("fork --directory")
        if worktree is not None:
            raise UsageError("give --directory or --worktree, not both")
    async with options.sessions() as tk:
        session_id = await names.session(tk, id)
        session = await tk.fork(
            session_id,
            message_id=await names.message(tk, session_id, message) if message is not None else None,
            at=at,
            directory=names.directory(directory) if directory is not None else None,
            worktree=names.new_directory(worktree, is_near=options.is_near) if worktree is not None else None,
        )

    def text(screen: Screen) -> str:
        where = f"  {screen.path(session.directory)}" if worktree is not None else ""
        return f"{_done(screen, 'Forked', session)}{where}"

    answer(options, session, text)


async def archive(id: names.SessionName, /, *, options: Options) -> None:
    """Hide a session from the list. Nothing is deleted.

    For example:
      turnkeeper session archive calm-otter
    """
    async with options.sessions() as tk:
        session = await tk.archive(await names.session(tk, id))
    answer(options, session, lambda screen: _done(screen, "Archived", session))


async def restore(id: names.SessionName, /, *, options: Options) -> None:
    """Show an archived session in the list again.

    For example:
      turnkeeper session restore calm-otter
    """
    async with options.sessions() as tk:
        session = await tk.restore(await names.session(tk, id))
    answer(options, session, lambda screen: _done(screen, "Restored", session))


async def rename(
    id: names.SessionName,
    title: Annotated[str, Parameter(metavar="TITLE", help="The new title; after -- it may begin with a hyphen.")],
    /,
    *,
    options: Options,
) -> None:
    """Give a session a title.

    For example:
      turnkeeper session rename calm-otter "Wind and tide"
    """
    async with options.sessions() as tk:
        session = await tk.rename(await names.session(tk, id), title)
    answer(options, session, lambda screen: _done(screen, "Renamed", session))


async def move(
    id: names.SessionName,
    directory: Annotated[Path | None, Parameter(metavar="DIR", help="Its new directory.")] = None,
    /,
    *,
    label: Annotated[str | None, Parameter(metavar="LABEL", help="Only workers with this label run it.")] = None,
    no_label: Annotated[bool, Parameter(help="Any worker runs it.")] = False,
    options: Options,
) -> None:
    """Move a session to another directory and its project, or to other workers.

    A label says what a worker has; see `turnkeeper worker`. With --label the
    directory need not exist here, only where workers have the label. A run under
    way goes on where it is.

    For example:
      turnkeeper session move calm-otter ~/code/weather
      turnkeeper session move calm-otter --label gpu
      turnkeeper session move calm-otter --no-label
    """
    if label is not None and no_label:
        raise UsageError("give --label or --no-label, not both")
    if directory is None and label is None and not no_label:
        raise UsageError("say where to: a directory, --label or --no-label")
    there = _there(directory, label) if directory is not None else None
    async with options.open() as tk:
        session = await tk.move(await names.session(tk, id), there, label="" if no_label else label)

    def text(screen: Screen) -> str:
        where = f"  {screen.path(session.directory)}"
        return f"{_done(screen, 'Moved', session)}{where}{f'  {session.label}' if session.label else ''}"

    answer(options, session, text)


def _there(directory: Path, label: str | None, *, is_near: bool = True) -> Path:
    """The directory that is meant. With a label it may be on other machines only, and is then given whole."""
    return names.directory(directory, is_near=is_near and (label is None or directory.expanduser().is_dir()))


def _done(screen: Screen, verb: str, session: "Session") -> str:
    return f"{verb} {screen.paint(session.id, 'cyan')}  {one_line(session.title)}"


def _metadata(text: str) -> "JsonObject":
    import msgspec  # Unlike the json module it refuses NaN and any depth.

    try:
        value = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise UsageError(f"--metadata is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise UsageError("--metadata must be a JSON object, as in '{\"ticket\": 7}'")
    return value

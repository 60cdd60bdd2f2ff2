"""The command that sends a prompt and shows what comes of it."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import failures, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.reach import Sessions
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session
    from turnkeeper.run.coordinator import Outcome

COMPACT = "/compact"


async def run(
    *message: Annotated[str, Parameter(metavar="MESSAGE", help="What to say. Standard input is added to it.")],
    session: Annotated[
        str | None, Parameter(name=("--session", "-s"), metavar="ID", help="Go on in this session.")
    ] = None,
    continue_: Annotated[
        bool, Parameter(name=("--continue", "-c"), help="Go on in the newest session of the directory.")
    ] = False,
    fork: Annotated[bool, Parameter(help="Go on in a copy of it; with --session or --continue.")] = False,
    model: Annotated[
        str | None, Parameter(name=("--model", "-m"), metavar="PROVIDER/MODEL", help="Who answers.")
    ] = None,
    agent: Annotated[str | None, Parameter(metavar="NAME", help="The agent to use.")] = None,
    variant: Annotated[str | None, Parameter(metavar="NAME", help="A variant of the model, such as high.")] = None,
    file: Annotated[
        list[str] | None,
        Parameter(name=("--file", "-f"), metavar="PATH", help="Attach a file; PATH:10-20 for lines. May be repeated."),
    ] = None,
    format: Annotated[
        Literal["default", "json"], Parameter(metavar="FORMAT", help="json: one object a line, as things happen.")
    ] = "default",
    title: Annotated[
        str | None, Parameter(metavar="TEXT", help='The title of a new session; "" takes it from the message.')
    ] = None,
    auto: Annotated[bool, Parameter(help="Allow whatever would be asked. What is denied stays denied.")] = False,
    thinking: Annotated[bool, Parameter(help="Show all of the model's thoughts.")] = False,
    dir: Annotated[Path | None, Parameter(metavar="DIR", help="Where to work; by default here.")] = None,
    options: Options = EVERYWHERE,
) -> int:
    """Send a prompt, and show text, thoughts and tool calls as they come, until the session rests.

    On a terminal all of it is shown live. Elsewhere each finished text goes to standard output and the rest to
    standard error; --format json (or --json) writes one object a line: step_start, text, file, reasoning, tool_use,
    step_finish, error. Ctrl-C stops the turn and records what there is; a second one quits at once, and
    `session resume` goes on later.

    A message that begins with ! is a command: it is run in the session, and the model hears of it with the next
    prompt. /compact lets a summary take the place of older history, as `session compact --force` does.

    What the rules leave open is asked at the terminal: y allows it once, a always, n refuses, and other words are
    advice for the model. Where nobody can be asked it is refused, unless --auto is given. Ends with 1 if the turn
    failed, the answer is empty or cut off, or a call was refused, and with 130 if it was stopped.

    Examples:
      turnkeeper run "list the files, then read README.md"
      turnkeeper run -c 'now run `make test`'
      turnkeeper run -c '!git status'
      git diff | turnkeeper run -m anthropic/claude-sonnet-4-5 "review this"
      turnkeeper run --auto --format json -f notes.md:1-40 "turn these into tasks"
    """
    from turnkeeper.cli.live import Live
    from turnkeeper.run.runtime import Settings

    if fork and session is None and not continue_:
        raise UsageError("--fork copies a session; name it with --session, or take the newest with --continue")
    if session is not None and continue_:
        raise UsageError("give --session or --continue, not both")
    if session is not None and dir is not None and not fork:
        raise UsageError("a session works where it was made; leave out --dir, or add --fork")
    directory = names.directory(dir if dir is not None else Path.cwd(), is_near=options.is_near)
    said = _said(message)
    if file and not options.is_near:
        options.only_here("--file")
    inputs = [attachment(one, directory) for one in file or []]
    if not said and not inputs:
        raise UsageError('give a message: turnkeeper run "list the files"')
    live = Live(as_json=options.json or format == "json", thinking=thinking, auto=auto)
    if options.address is not None:
        place = directory if dir is not None or options.is_near else None
        async with options.client(place) as client:
            chosen = await _session(client, session, place if session is None else None, continue_, fork)
            chosen = chosen or await client.create(title=_title(title, said))
            prompt = _prompt(said, inputs, agent, names.model(model), variant)
            return await _far(client, live, chosen.id, said, prompt)
    async with options.run(directory, Settings(ask=live.ask, environ=options.environ)) as tk:
        chosen = await _session(tk, session, directory if dir is not None or session is None else None, continue_, fork)
        wanted = await _model(tk, live, model, agent, chosen, directory, is_asked=not said.startswith("!"))
        if chosen is None:
            chosen = await tk.create(title=_title(title, said))
        if said == COMPACT and not inputs:
            return await _compact(tk, live, chosen.id, wanted)
        if said.startswith("!") and not inputs:
            return await _shell(tk, live, chosen.id, said[1:], agent, wanted)
        return await _send(tk, live, chosen.id, _prompt(said, inputs, agent, wanted, variant))


async def _far(client: "Client", live: "Live", session_id: str, said: str, prompt: "Prompt") -> int:
    """The same on a server."""
    from turnkeeper.cli import far

    is_alone = len(prompt.parts) == 1
    if said == COMPACT and is_alone:
        return await far.compact(client, live, session_id, prompt.model)
    if said.startswith("!") and is_alone:
        return await far.shell(client, live, session_id, said[1:], prompt.agent, prompt.model)
    return await far.send(client, live, session_id, prompt)


async def _send(tk: "Turnkeeper", live: "Live", session_id: str, prompt: "Prompt") -> int:
    """Admit a prompt and show the session until it rests."""
    from turnkeeper.cli.live import found_open
    from turnkeeper.workspace.owner import is_alive

    view = await tk.store.journal.view(session_id)
    if view.owner is not None and is_alive(view.owner):
        await tk.prompt(session_id, prompt, resume=False)
        live.display.note(
            f"Process {view.owner.pid} on {view.owner.host} runs {session_id} and takes the prompt up at its next "
            f"step; `turnkeeper session messages {session_id}` shows what comes of it."
        )
        return failures.OK
    if (found := found_open(view)) is not None:
        live.display.note(found)

    async def work() -> "Outcome":
        await tk.prompt(session_id, prompt, resume=False)
        return await tk.run(session_id)

    return await live.run(tk, session_id, work)


async def _shell(
    tk: "Turnkeeper", live: "Live", session_id: str, command: str, agent: str | None, model: "ModelChoice | None"
) -> int:
    """Run a command of the user's; no model is asked."""
    from turnkeeper.cli.live import found_open
    from turnkeeper.run.coordinator import Outcome

    if (found := found_open(await tk.store.journal.view(session_id))) is not None:
        live.display.note(found)
        await tk.abort(session_id)

    async def work() -> Outcome:
        await tk.shell(session_id, command, agent=agent, model=model)
        return Outcome(kind="rested", reason="done")

    return await live.run(tk, session_id, work)


async def _compact(tk: "Turnkeeper", live: "Live", session_id: str, model: "ModelChoice | None") -> int:
    """Compact the session and show its summary."""
    from turnkeeper.run.coordinator import Outcome

    async def work() -> Outcome:
        done = await tk.compact(session_id, force=True, model=model)
        if done.summary is None:
            live.display.note(f"Nothing was done: {done.reason}.")
        return Outcome(kind="rested", reason="done")

    return await live.run(tk, session_id, work, shows_summary=True)


def attachment(given: str, directory: Path) -> "tuple[Path, str, int | None, int | None]":
    """A file that somebody names, perhaps with lines: path, media type, first and last line. Raises Invalid."""
    import mimetypes
    import re

    path, lines = Path(given).expanduser(), None
    if not (directory / path).exists() and (lines := re.fullmatch(r"(.+?):(\d+)(?:-(\d+))?", given)):
        path = Path(lines[1]).expanduser()
    path = (directory / path).resolve()
    if not path.exists():
        raise Invalid(f"{given!r} is not there; name a file or a directory that exists")
    guessed = mimetypes.guess_type(path.name)[0] or "text/plain"
    readable = guessed.startswith("image/") or guessed == "application/pdf"
    mime = "application/x-directory" if path.is_dir() else guessed if readable else "text/plain"
    first = int(lines[2]) if lines else None
    return path, mime, first, int(lines[3] or lines[2]) if lines else None


def _said(message: tuple[str, ...]) -> str:
    """The message, and what is piped in below it."""
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")
    words = " ".join(message)
    return f"{words}\n{piped}" if words.strip() and piped.strip() else words.strip() or piped.strip()


async def _session(
    tk: Sessions, name: str | None, directory: Path | None, newest: bool, fork: bool
) -> "Session | None":
    """The session to go on in; None for a new one."""
    if name is not None:
        found = await tk.get(await names.session(tk, name))
    elif newest:
        page = await tk.list(directory=directory, limit=1)
        if not page.items:
            raise NotFound(f"no session works in {str(directory)!r} yet; leave out --continue to begin one")
        found = page.items[0]
    else:
        return None
    elsewhere = directory if directory is not None and str(directory) != found.directory else None
    return await tk.fork(found.id, directory=elsewhere) if fork else found


async def _model(
    tk: "Turnkeeper",
    live: "Live",
    given: str | None,
    agent: str | None,
    session: "Session | None",
    directory: Path,
    *,
    is_asked: bool,
) -> "ModelChoice | None":
    """The model to ask for; None leaves it to the agent, the session and the configuration.

    Raises Invalid, before there is a session, if a model that is to be asked has no key.
    """
    from turnkeeper.providers.catalog import OFFLINE
    from turnkeeper.sessions.prompt import last_model
    from turnkeeper.workspace.project import identify

    place = await identify(Path(session.directory) if session is not None else directory)
    directories = tk.runtime.directories
    config, _ = directories.catalog(place)
    own = (await tk.runtime.agent(agent or (session.agent if session is not None else None), place)).model
    if (choice := names.model(given)) is not None:
        directories.model(place, choice)
    if is_asked and (first := choice or own) is not None:
        directories.require(place, first)
    if choice is not None:
        return choice
    last = (session.model or await last_model(tk.store, session)) if session is not None else None
    if own is not None or (last is not None and last.provider_id != OFFLINE.provider_id):
        return None
    # A session that fell back to the offline model must not stay with it once there is a key.
    default = directories.default_model(place)
    if is_asked:
        directories.require(place, default)
    if default.provider_id == OFFLINE.provider_id and not config.model:
        live.display.note(
            "No model has a key, so the offline one answers, by simple rules. `turnkeeper auth login PROVIDER` or a "
            "variable such as ANTHROPIC_API_KEY lets a real one answer; `turnkeeper models` shows what there is."
        )
    return default


def _prompt(
    said: str,
    files: "list[tuple[Path, str, int | None, int | None]]",
    agent: str | None,
    model: "ModelChoice | None",
    variant: str | None,
) -> "Prompt":
    from turnkeeper.model.prompt import FileInput, Prompt, TextInput

    inputs = []
    for path, mime, first, last in files:
        lines = f"?start={first}&end={last}" if first is not None else ""
        inputs.append(FileInput(mime=mime, filename=path.name, url=f"{path.as_uri()}{lines}"))
    text = (TextInput(text=said),) if said else ()
    return Prompt(parts=(*inputs, *text), agent=agent, model=model, variant=variant)


def _title(given: str | None, said: str) -> str | None:
    """The title that was asked for; an empty one is the beginning of the message."""
    if given is None or given.strip():
        return given
    from turnkeeper.core.titles import prompt_title

    return prompt_title(said)

"""The command that sends a prompt and shows the answer, on a store or on a server."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.run_options import (
    DEFAULT_DISPLAY,
    NEW_SESSION,
    PLAIN_PROMPT,
    DisplayOptions,
    PromptOptions,
    SessionOptions,
)
from turnkeeper.cli.trust import ask_trust
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.catalog import ModelInfo
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session
    from turnkeeper.run.coordinator import Outcome

COMPACT = "/compact"
MOVES = ("/undo", "/redo")


async def run(
    *message: Annotated[str, Parameter(metavar="MESSAGE", help="The prompt. Standard input is added to it.")],
    choice: SessionOptions = NEW_SESSION,
    given: PromptOptions = PLAIN_PROMPT,
    title: Annotated[
        str | None, Parameter(metavar="TEXT", help='The title of a new session; "" takes it from the message.')
    ] = None,
    display: DisplayOptions = DEFAULT_DISPLAY,
    options: Options,
) -> int:
    """Send a prompt and show the answer and its tool calls until it is complete.

    On a terminal the answer is shown live. Otherwise each finished text goes to
    standard output and everything else to standard error. --format json (or
    --json) prints one object per line: step_start, text, file, reasoning,
    tool_use, step_finish, error.

    Ctrl-C stops the turn and keeps what there is. A second Ctrl-C exits at once;
    `session resume` continues later.

    A message that begins with ! is a shell command. It runs in the session, and
    the model reads its output with the next prompt. The message /compact replaces
    older history by a summary, like `session compact --force`; /undo and /redo are
    `session undo` and `session redo`.

    Calls that need permission are asked at the terminal: y allows one call, a
    allows it always, n refuses it, and other text is feedback for the model.
    Without a terminal they are refused, unless --auto is given.

    The exit code is 1 if the turn failed, the answer is empty or cut off, or a
    call that was asked about was refused or still waits, and 130 if the turn was
    stopped. A call that a rule denies does not end the turn, and gives 0.

    For example:
      turnkeeper run "list the files, then read README.md"
      turnkeeper run -c 'now run `make test`'
      turnkeeper run -c '!git status'
      git diff | turnkeeper run -m anthropic/claude-sonnet-4-5 "review this"
      turnkeeper run --auto --format json -f notes.md:1-40 "turn these into tasks"
    """
    directory = choice.directory(is_near=options.is_near)
    text = _text(message)
    files = given.files(directory, options)
    prompt = given.prompt(text, files)
    live = display.live(options)
    for warning in filter(None, (one.warning for one in files)):
        live.display.note(f"! {warning}")
    return await _run_in_session(options, live, choice, directory, _title(title, text), text, prompt)


async def _run_in_session(
    options: Options,
    live: "Live",
    choice: SessionOptions,
    directory: Path,
    title: str | None,
    text: str,
    prompt: "Prompt",
) -> int:
    """Find or create the session, in the store or on the server, and run the prompt in it."""
    if options.address is not None:
        place = directory if choice.dir is not None or options.is_near else None
        async with options.client(place) as client:
            chosen = await choice.find(client, place if choice.session is None else None)
            if (code := await _moved(client, live, chosen, text, prompt)) is not None:
                return code
            if chosen is not None:
                return await _start(client, live, chosen.id, text, prompt)
            return await _start_new(client, live, title, text, prompt)
    environ = options.trusting(choice.trust)
    async with options.run(directory, live.settings(environ)) as tk:
        chosen = await choice.find(tk, directory if choice.dir is not None or choice.session is None else None)
        await ask_trust(Path(chosen.directory) if chosen is not None else directory, environ)
        if (code := await _moved(tk, live, chosen, text, prompt)) is not None:
            return code
        prompt = prompt.but(model=await _model(tk, live, prompt, chosen, directory, is_asked=not text.startswith("!")))
        chosen = chosen or await tk.create(title=title)
        return await _start(tk, live, chosen.id, text, prompt)


async def _moved(
    tk: "Turnkeeper | Client", live: "Live", session: "Session | None", text: str, prompt: "Prompt"
) -> int | None:
    """Undo or redo, if the message says so; the exit code. None for any other message."""
    from turnkeeper.cli import undoing

    word = text.split(maxsplit=1)[0] if text.strip() else ""
    if word not in MOVES:
        return None
    if text.strip() != word or len(prompt.parts) > 1:
        raise UsageError(f"{word} goes alone; leave out the other words and files")
    if session is None:
        raise UsageError(f"{text} needs a session; add -c for the last one, or -s ID")
    done = await undoing.move(tk, session.id, word == "/redo", yes=False)
    live.display.note(undoing.outcome(done))
    return undoing.code(done)


async def _start_new(client: "Client", live: "Live", title: str | None, text: str, prompt: "Prompt") -> int:
    """Start in a new session of a server. The session is deleted if the server refuses the prompt."""
    made = await client.create(title=title)
    try:
        return await _start(client, live, made.id, text, prompt)
    except* Invalid:  # For example, there is no key.
        await client.remove(made.id)
        raise


async def _start(tk: "Turnkeeper | Client", live: "Live", session_id: str, text: str, prompt: "Prompt") -> int:
    """Compact the session, run a shell command in it, or send the prompt, and show what happens."""
    from turnkeeper.cli.live import found_open
    from turnkeeper.workspace.owner import is_alive

    has_files = len(prompt.parts) > 1
    if text == COMPACT and not has_files:
        work = partial(_compact, tk, live, session_id, prompt.model)
        return await live.run(tk, session_id, work, shows_summary=True)
    is_shell = text.startswith("!") and not has_files
    if (store := local_store(tk)) is not None:
        view = await store.store.journal.view(session_id)
        is_run_elsewhere = view.owner is not None and is_alive(view.owner)
        if not is_run_elsewhere and (found := found_open(view)) is not None:
            live.display.note(found)
            if is_shell:
                await store.stop(session_id)
    if is_shell:
        return await live.run(tk, session_id, partial(_shell, tk, session_id, text[1:], prompt))
    return await live.run(tk, session_id, partial(_send, tk, live, session_id, prompt))


async def _send(tk: "Turnkeeper | Client", live: "Live", session_id: str, prompt: "Prompt") -> "Outcome":
    from turnkeeper.api import Turnkeeper
    from turnkeeper.core.next_action import REFUSED, is_refused
    from turnkeeper.run.coordinator import Outcome

    if isinstance(tk, Turnkeeper):
        await tk.prompt(session_id, prompt, resume=False)
        # What an earlier process left waiting is asked here, if there is a user to ask.
        outcome = await tk.run(session_id, resume=live.can_ask and await _waits(tk, session_id))
        # Decided after the admission: a process that owns the session now sees the prompt before it lets go of it.
        if outcome.is_busy and (owner := (await tk.store.journal.view(session_id)).owner) is not None:
            live.display.note(
                f"Process {owner.pid} on {owner.host} runs {session_id} and takes the prompt up at its next step; "
                f"`turnkeeper session messages {session_id}` shows the answer."
            )
        return outcome.but(kind="rested") if outcome.is_busy else outcome
    try:
        last = await tk.prompt(session_id, prompt)
    except NotFound:
        if not live.is_stopped:
            raise
        return Outcome(kind="interrupted")  # Stopped before the model answered.
    return Outcome(kind="rested", reason=REFUSED if any(map(is_refused, last.parts)) else "answered")


async def _waits(tk: "Turnkeeper", session_id: str) -> bool:
    """Whether a call of a session that no process runs waits for an answer."""
    view = await tk.store.journal.view(session_id)
    return view.owner is None and bool(view.asks)


async def _shell(tk: "Turnkeeper | Client", session_id: str, command: str, prompt: "Prompt") -> "Outcome":
    from turnkeeper.run.coordinator import Outcome

    await tk.shell(session_id, command, agent=prompt.agent, model=prompt.model)
    return Outcome(kind="rested", reason="done")


async def _compact(tk: "Turnkeeper | Client", live: "Live", session_id: str, model: "ModelChoice | None") -> "Outcome":
    from turnkeeper.api import Turnkeeper
    from turnkeeper.run.coordinator import Outcome

    if not isinstance(tk, Turnkeeper):
        await tk.compact(session_id, model=model)
    elif (done := await tk.compact(session_id, force=True, model=model)).summary is None:
        live.display.note(f"Nothing was done: {done.reason}.")
    return Outcome(kind="rested", reason="done")


def _text(message: tuple[str, ...]) -> str:
    """The message, followed by standard input if that is no terminal."""
    piped = "" if sys.stdin.isatty() else sys.stdin.buffer.read().decode("utf-8", "replace").rstrip("\n")
    words = " ".join(message)
    return f"{words}\n{piped}" if words.strip() and piped.strip() else words.strip() or piped.strip()


async def _model(
    tk: "Turnkeeper", live: "Live", prompt: "Prompt", session: "Session | None", directory: Path, *, is_asked: bool
) -> "ModelChoice | None":
    """The model of a prompt; None if the agent or the session decides.

    Raises Invalid, before a session is created, if a model that will be asked has no key or lacks the variant.
    """
    from turnkeeper.providers.catalog import OFFLINE
    from turnkeeper.workspace.project import identify, stored_place

    place = await (stored_place(session.directory) if session is not None else identify(directory))
    directories = tk.runtime.directories
    config, _ = directories.catalog(place)
    own = (await tk.runtime.agent(prompt.agent or (session.agent if session is not None else None), place)).model
    if prompt.model is not None:
        directories.model(place, prompt.model)
    if is_asked and (first := prompt.model or own) is not None:
        directories.require(place, first)
    decided = prompt.model or own or await _last_model(tk, session)
    default = directories.default_model(place) if decided is None else None
    if prompt.variant is not None and (answering := decided or default) is not None:
        _check_variant(directories.model(place, answering), prompt.variant)
    if default is None:
        return prompt.model
    if is_asked:
        directories.require(place, default)
    if default.provider_id == OFFLINE.provider_id and not config.model:
        live.display.note(
            "No model has a key, so the offline model answers, by simple rules. `turnkeeper auth login PROVIDER` or a "
            "variable such as ANTHROPIC_API_KEY enables a real model; `turnkeeper models` lists them."
        )
    return default


async def _last_model(tk: "Turnkeeper", session: "Session | None") -> "ModelChoice | None":
    """The model that a session used last. The offline model is none: a real one is used as soon as it has a key."""
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.providers.catalog import OFFLINE
    from turnkeeper.sessions.prompt import last_model

    if session is None:
        return None
    used = session.model
    last = (
        ModelChoice(provider_id=used.provider_id, model_id=used.id)
        if used is not None
        else await last_model(tk.store, session)
    )
    return last if last is not None and last.provider_id != OFFLINE.provider_id else None


def _check_variant(model: "ModelInfo", variant: str) -> None:
    """Raise Invalid for a variant that a model lacks. A model without any variants may just be unknown to us."""
    if model.variants and variant not in model.variants:
        known = ", ".join(model.variants)
        raise Invalid(f"{model.provider_id}/{model.id} has no variant {variant!r}; its variants are: {known}")


def _title(given: str | None, text: str) -> str | None:
    """The given title; for an empty one the beginning of the message."""
    if given is None or given.strip():
        return given
    from turnkeeper.core.titles import prompt_title

    return prompt_title(text)

"""The command that sends a prompt and shows the answer, on a store or on a server."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import slash
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.prompt_model import model_of_prompt
from turnkeeper.cli.run_options import (
    DEFAULT_DISPLAY,
    NEW_SESSION,
    PLAIN_PROMPT,
    DisplayOptions,
    PromptOptions,
    SessionOptions,
)
from turnkeeper.cli.slash import CalledCommand, Message
from turnkeeper.cli.slash_actions import act
from turnkeeper.cli.trust import ask_trust
from turnkeeper.model.refusal import Forbidden, Invalid

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.client import Client
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session


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
    the model reads its output with the next prompt. A message that begins with
    /NAME is a command: `turnkeeper command list` lists them. An unknown one is
    refused, and nothing is sent; a space before the slash sends it as it is. In
    the message @PATH, @PATH#10-20, @PATH#SYMBOL and @AGENT attach what they name;
    a path in quotes may have spaces, as @"A PATH".

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
      turnkeeper run "/review the last commit"
      turnkeeper run "explain @src/app.py#10-40"
      git diff | turnkeeper run -m anthropic/claude-sonnet-4-5 "review this"
      turnkeeper run --auto --format json -f notes.md:1-40 "turn these into tasks"
    """
    directory = choice.directory(is_near=options.is_near)
    said = Message.of(message)
    files = given.files(directory, options)
    prompt = given.prompt(said.inputs(), files)
    live = display.live(options)
    for warning in filter(None, (one.warning for one in files)):
        live.display.note(f"! {warning}")
    return await _run_in_session(options, live, choice, directory, _title(title, said.text), said, prompt)


async def _run_in_session(
    options: Options,
    live: "Live",
    choice: SessionOptions,
    directory: Path,
    title: str | None,
    said: Message,
    prompt: "Prompt",
) -> int:
    """Find or create the session, in the store or on the server, and run the prompt in it."""
    from turnkeeper.cli.attachments import note_missing

    if options.address is not None:
        place = directory if choice.dir is not None or options.is_near else None
        async with options.client(place) as client:
            chosen = await choice.find(client, place if choice.session is None else None)
            command = await slash.called(client, said, Path(chosen.directory) if chosen is not None else place)
            if command is not None and command.is_action:
                return await act(client, live, options, chosen, command, prompt)
            where = Path(chosen.directory) if chosen is not None and options.is_near else place
            await note_missing(client, said.prompt_words, where, live.display.note)
            return await _begin(client, live, chosen, title, said, prompt, command)
    environ = options.trusting(choice.trust)
    async with options.run(directory, live.settings(environ)) as tk:
        chosen = await choice.find(tk, directory if choice.dir is not None or choice.session is None else None)
        where = Path(chosen.directory) if chosen is not None else directory
        await ask_trust(where, environ)
        command = await slash.called(tk, said, where)
        if command is not None and command.is_action:
            return await act(tk, live, options, chosen, command, prompt)
        prompt = command.prompt(prompt) if command is not None else prompt
        is_asked = not said.text.startswith("!")
        model = await model_of_prompt(tk, live.display.note, prompt, chosen, directory, is_asked=is_asked)
        prompt = prompt.but(model=model)
        await note_missing(tk, said.prompt_words, where, live.display.note)
        return await _begin(tk, live, chosen, title, said, prompt, command)


async def _begin(
    tk: "Turnkeeper | Client",
    live: "Live",
    chosen: "Session | None",
    title: str | None,
    said: Message,
    prompt: "Prompt",
    command: CalledCommand | None,
) -> int:
    """Start in the chosen session, or in a new one, which is deleted if the prompt or the command is refused."""
    from turnkeeper.cli.sending import is_empty
    from turnkeeper.cli.sharing import shared_by_itself

    if chosen is not None:
        return await _start(tk, live, chosen.id, said, prompt, command)
    made = await tk.create(title=title)
    if (link := await shared_by_itself(tk, made)) is not None:
        live.display.note(f"Shared: {link}")
    try:
        return await _start(tk, live, made.id, said, prompt, command)
    except* (Forbidden, Invalid):  # For example, there is no key.
        if await is_empty(tk, made.id):
            await tk.remove(made.id)
        raise


async def _start(
    tk: "Turnkeeper | Client",
    live: "Live",
    session_id: str,
    said: Message,
    prompt: "Prompt",
    command: CalledCommand | None,
) -> int:
    """Run a shell command in the session, or send the prompt or the command, and show what happens."""
    from turnkeeper.cli.left_open import found_open
    from turnkeeper.cli.sending import send, shell

    is_shell = said.text.startswith("!") and len(prompt.parts) == 1
    if (store := local_store(tk)) is not None:
        found = found_open(await store.store.journal.view(session_id))
        if found is not None:
            live.display.note(found)
            if is_shell:
                await store.stop(session_id)
    if is_shell:
        return await live.run(tk, session_id, partial(shell, tk, session_id, said.text[1:], prompt))
    return await live.run(tk, session_id, partial(send, tk, live, session_id, prompt, command))


def _title(given: str | None, text: str) -> str | None:
    """The given title; for an empty one the beginning of the message."""
    if given is None or given.strip():
        return given
    from turnkeeper.core.titles import prompt_title

    return prompt_title(text)

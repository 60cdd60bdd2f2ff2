"""Actions in a session: send a prompt, run a shell command, compact; on a store or on a server."""

from typing import TYPE_CHECKING

from turnkeeper.cli.options import local_store
from turnkeeper.cli.request_lines import open_requests
from turnkeeper.cli.slash import files_of
from turnkeeper.model.refusal import Busy, NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.live import Live
    from turnkeeper.cli.slash import CalledCommand
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.message_with_parts import MessageWithParts
    from turnkeeper.model.prompt import Prompt, Receipt
    from turnkeeper.run.coordinator import Outcome


async def send(
    tk: "Turnkeeper | Client",
    live: "Live",
    session_id: str,
    prompt: "Prompt",
    command: "CalledCommand | None" = None,
) -> "Outcome":
    """Admit a prompt, or that of a command, and run its session until it rests."""
    from turnkeeper.api import Turnkeeper
    from turnkeeper.core.next_action import REFUSED, WAITS, is_refused
    from turnkeeper.run.coordinator import Outcome

    if isinstance(tk, Turnkeeper):
        await tk.runtime.lease_keeper.host.check_prompt(session_id)
        if command is not None:
            await _send_command(tk, session_id, prompt, command)
        else:
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
    if not live.is_attended and command is None and await _waits_on_server(tk, session_id):
        await tk.prompt_async(session_id, prompt)
        return Outcome(kind="rested", reason=WAITS)
    try:
        last = await (_send_command_on(tk, session_id, prompt, command) if command else tk.prompt(session_id, prompt))
    except (NotFound, Busy) as refusal:  # Stopped before the model answered, or before the prompt was read.
        if not live.is_stopped:
            raise
        if isinstance(refusal, Busy):
            live.display.note("The prompt waits and will be read with the next one.")
        return Outcome(kind="interrupted")
    return Outcome(kind="rested", reason=REFUSED if any(map(is_refused, last.parts)) else "answered")


async def _send_command(tk: "Turnkeeper", session_id: str, prompt: "Prompt", called: "CalledCommand") -> "Receipt":
    """Admit the prompt of a command in a store."""
    return await tk.command(
        session_id,
        called.command.name,
        called.arguments,
        input=called.input,
        files=files_of(prompt),
        agent=prompt.agent,
        model=prompt.model,
        variant=prompt.variant,
        resume=False,
    )


async def _send_command_on(
    client: "Client", session_id: str, prompt: "Prompt", called: "CalledCommand"
) -> "MessageWithParts":
    """Send a command to a server; the last answer."""
    return await client.command(
        session_id,
        called.command.name,
        called.arguments,
        input=called.input,
        files=files_of(prompt),
        agent=prompt.agent,
        model=prompt.model,
        variant=prompt.variant,
    )


async def is_empty(tk: "Turnkeeper | Client", session_id: str) -> bool:
    """Whether no prompt was admitted to a session."""
    if (store := local_store(tk)) is None:
        return not (await tk.messages(session_id, limit=1)).items
    view = await store.store.journal.view(session_id)
    return not view.messages and not view.inbox


async def shell(tk: "Turnkeeper | Client", session_id: str, command: str, prompt: "Prompt") -> "Outcome":
    """Run a command of the user in an idle session."""
    from turnkeeper.run.coordinator import Outcome

    await tk.shell(session_id, command, agent=prompt.agent, model=prompt.model)
    return Outcome(kind="rested", reason="done")


async def compact(tk: "Turnkeeper | Client", live: "Live", session_id: str, model: "ModelChoice | None") -> "Outcome":
    """Replace older history by a Summary, however short the history is."""
    from turnkeeper.api import Turnkeeper
    from turnkeeper.run.coordinator import Outcome

    if not isinstance(tk, Turnkeeper):
        await tk.compact(session_id, model=model)
    elif (done := await tk.compact(session_id, force=True, model=model)).summary is None:
        live.display.note(f"Nothing was done: {done.reason}.")
    return Outcome(kind="rested", reason="done")


async def _waits(tk: "Turnkeeper", session_id: str) -> bool:
    """Whether a call of a session that no process runs waits for an answer."""
    view = await tk.store.journal.view(session_id)
    return view.owner is None and bool(view.asks)


async def _waits_on_server(client: "Client", session_id: str) -> bool:
    """Whether a call of a session of a server waits for an answer that cannot be given here."""
    directory = (await client.get(session_id)).directory
    return any(one.session_id == session_id for one in await open_requests(client, directory))

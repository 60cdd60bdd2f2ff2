"""The command that lets a summary take the place of older history."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, harmless
from turnkeeper.cli.session_name import SessionName

if TYPE_CHECKING:
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.sessions.compact import Compacted


async def compact(
    id: SessionName,
    /,
    *,
    force: Annotated[bool, Parameter(help="Also if the session is small.")] = False,
    model: Annotated[
        str | None, Parameter(metavar="PROVIDER/MODEL", help="Who writes the summary; by default the session's model.")
    ] = None,
    options: Options = EVERYWHERE,
) -> int:
    """Let a summary take the place of a session's older history. Nothing is lost: `session recall` gives it back.

    Sessions are compacted by themselves before a request would not fit; this does it now. A small session is left
    alone unless forced. The newest part of the history stays word for word. With --json the answer is {"reason",
    "summary", "isDigest", "problem", "tailStartID", "before", "after"}; sizes are in tokens. Ends with 1 if no model
    could write the summary, so that a digest made by code took its place.

    Examples:
      turnkeeper session compact calm-otter
      turnkeeper session compact calm-otter --force --model anthropic/claude-haiku-4-5
    """
    from turnkeeper.run.runtime import Settings

    if options.address is not None:
        if not force:
            options.only_here("session compact without --force")
        async with options.client() as client:
            done = await _there(client, await names.session(client, id), names.model(model))
        answer(options, done, lambda screen: _shown(screen, done))
        return 0
    async with options.run(Path.cwd(), Settings(environ=options.environ)) as tk:
        session_id = await names.session(tk, id)
        done = await tk.compact(session_id, force=force, model=names.model(model))
    answer(options, done, lambda screen: _shown(screen, done))
    if not options.json:
        note(_told(done))
    return int(done.problem is not None)


async def _there(client: "Client", session_id: str, model: "ModelChoice | None") -> "Compacted":
    """Compact a session of a server's. It does not say how much that was, only the summary can be read."""
    from turnkeeper.model.message import AssistantMessage
    from turnkeeper.model.parts import TextPart
    from turnkeeper.sessions.compact import Compacted

    await client.compact(session_id, model=model)
    for message in reversed((await client.messages(session_id)).items):
        if isinstance(message.info, AssistantMessage) and message.info.summary:
            said = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
            return Compacted(reason="it was asked for", summary=said)
    return Compacted(reason="there is nothing to compact")


def _shown(screen: Screen, done: "Compacted") -> str:
    return harmless(done.summary) if done.summary is not None else ""


def _told(done: "Compacted") -> str:
    if done.summary is None:
        return f"Nothing was done: {done.reason}."
    why = f": {done.problem}" if done.problem else ""
    how = f" No summary could be written by a model{why}. This is a digest of the history." if done.is_digest else ""
    tail = "the newest part stays word for word" if done.tail_start_id is not None else "nothing else stays"
    return f"Compacted from about {done.before:,} to {done.after:,} tokens; {tail}.{how}"

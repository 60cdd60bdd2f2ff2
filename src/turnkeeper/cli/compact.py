"""The command that replaces older history by a summary."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, remark
from turnkeeper.cli.progress import waiting
from turnkeeper.cli.screen import harmless

if TYPE_CHECKING:
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.sessions.compact import Compacted


async def compact(
    id: names.SessionName,
    /,
    *,
    force: Annotated[bool, Parameter(help="Also if the session is small.")] = False,
    model: Annotated[
        str | None,
        Parameter(
            metavar="PROVIDER/MODEL",
            help="The model that writes the summary; by default that of the session.",
            completer=candidates.models,
        ),
    ] = None,
    options: Options,
) -> int:
    """Replace older history by a summary, for the model only.

    Nothing is deleted: `session recall` reads it. Sessions are compacted
    automatically before a request would not fit; this does it now. A small
    session is left alone unless forced. The newest messages stay as they are.
    With --json the answer is {"reason", "summary", "isDigest", "problem",
    "tailStartID", "before", "after"}; sizes are in tokens. The exit code is 1 if
    no model could write the summary and a digest made by code was used.

    For example:
      turnkeeper session compact calm-otter
      turnkeeper session compact calm-otter --model anthropic/claude-haiku-4-5
    """
    from turnkeeper.run.runtime import Settings

    if options.address is not None:
        if not force:
            options.require_store("session compact without --force")
        async with options.client() as client:
            session_id = await names.session(client, id)
            with waiting("Summarising"):
                done = await _on_server(client, session_id, names.model(model))
        answer(options, done, lambda _: harmless(done.summary or ""))
        return 0
    async with options.run(Path.cwd(), Settings(environ=options.environ)) as tk:
        session_id = await names.session(tk, id)
        with waiting("Summarising"):
            done = await tk.compact(session_id, force=force, model=names.model(model))
    answer(options, done, lambda _: harmless(done.summary or ""))
    remark(options, _note(done))
    return int(done.problem is not None)


async def _on_server(client: "Client", session_id: str, model: "ModelChoice | None") -> "Compacted":
    """Compact a session of a server, which returns no sizes, and read its summary."""
    from turnkeeper.model.message import AssistantMessage
    from turnkeeper.model.parts import TextPart
    from turnkeeper.sessions.compact import Compacted

    await client.compact(session_id, model=model)
    for message in reversed((await client.messages(session_id)).items):
        if isinstance(message.info, AssistantMessage) and message.info.summary:
            said = "\n".join(part.text for part in message.parts if isinstance(part, TextPart))
            return Compacted(reason="it was asked for", summary=said)
    return Compacted(reason="there is nothing to compact")


def _note(done: "Compacted") -> str:
    if done.summary is None:
        return f"Nothing was done: {done.reason}."
    why = f": {done.problem}" if done.problem else ""
    how = f" No summary could be written by a model{why}. This is a digest of the history." if done.is_digest else ""
    tail = "the newest part stays word for word" if done.tail_start_id is not None else "nothing else stays"
    return f"Compacted from about {done.before:,} to {done.after:,} tokens; {tail}.{how}"

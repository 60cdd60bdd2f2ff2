"""The command that copies a store to another one."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import failures
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options, opened
from turnkeeper.cli.output import answer
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, one_line, plural
from turnkeeper.model.refusal import NotFound
from turnkeeper.store.engine_table import named_store, shown_store, store_names

if TYPE_CHECKING:
    from turnkeeper.sessions.copy_store import Copied

Source = Annotated[str, Parameter(metavar="FROM", help="The store to copy. It is not changed.")]
Target = Annotated[str, Parameter(metavar="TO", help="A store that is empty or does not exist yet.")]


async def copy(from_: Source, to: Target, /, *, options: Options) -> int:
    """Copy a whole store to another one, of the same engine or another.

    Each log is verified by its hash chain, before it is written and again as the
    new store reads it back. A copy that was interrupted goes on where it was when
    the same command is run again. A store that has anything else in it is refused.
    Nothing should write to the old store meanwhile; if something does, the command
    says so. The exit code is 1 if a damaged session was left out. With --json the
    answer is {"from", "to", "sessions", "events", "blobs", "continued",
    "problems"}, and a problem is {"sessionID", "message"}.

    For example:
      turnkeeper store copy sqlite:sessions.db postgresql://ada@db/turns
      turnkeeper store copy "sqlite:$(turnkeeper db path)" files:sessions
    """
    from turnkeeper.app import look
    from turnkeeper.sessions.copy_store import copy_store

    for url in (from_, to):
        named = named_store(url)
        if named is None or not named.entry.place or not named.place:
            raise UsageError(f"{shown_store(url)!r} is no store that can be copied; write {store_names('memory')}")
    if Options(store=from_).is_missing:
        raise NotFound(f"there is no store {from_!r} to copy")
    async with (
        opened(look(from_, environ=options.environ)) as source,
        opened(look(to, environ=options.environ)) as target,
    ):
        with progress("Copying sessions") as moved:
            done = await copy_store(source.store, target.store, name=shown_store(from_), progress=moved)
    value = {"from": shown_store(from_), "to": shown_store(to), **_fields(done)}
    answer(options, value, lambda screen: _copied(screen, done, shown_store(to)))
    return failures.REFUSED if done.problems else failures.OK


def _fields(done: "Copied") -> dict[str, object]:
    return {name: getattr(done, name) for name in done.__struct_fields__}


def _copied(screen: Screen, done: "Copied", to: str) -> str:
    counts = [plural(done.sessions, "session"), plural(done.events, "event"), plural(done.blobs, "blob")]
    before = f", {done.continued:,} of them begun earlier" if done.continued else ""
    lines = [f"Copied {', '.join(counts)} to {to}{before}."]
    for one in done.problems:
        lines.append(f"{screen.paint('not copied', 'red')}  {one.session_id}  {one_line(one.message)}")
    if done.problems:
        lines.append("`turnkeeper doctor` on the old store says how far the damage goes.")
    return "\n".join(lines)

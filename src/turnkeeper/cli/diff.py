"""The command that shows what a session changed, and compares two moments of it."""

import sys
from typing import TYPE_CHECKING, Annotated, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.change_lines import patch_lines, stat_lines
from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.output import answer, answer_items, remark, write
from turnkeeper.cli.screen import Screen

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.file_change import FileChange

SEQ_DIGITS_MAX = 18
Moment = Annotated[str | None, Parameter(metavar="ID|SEQ")]


class Extent(NamedTuple):
    """The part of a session whose changes are shown: one message, or what is between two moments; else all of it."""

    message: str | None
    start: str | None
    end: str | None

    @property
    def is_between(self) -> bool:
        """Whether it begins or ends at a moment."""
        return self.start is not None or self.end is not None

    @property
    def is_whole(self) -> bool:
        """Whether it is the whole session."""
        return not any(self)


async def diff(
    id: names.SessionName,
    a: Annotated[
        int | None, Parameter(metavar="A", converter=names.whole, help="Compare the session after event A ...")
    ] = None,
    b: Annotated[
        int | None, Parameter(metavar="B", converter=names.whole, help="... with itself after event B.")
    ] = None,
    /,
    *,
    stat: Annotated[bool, Parameter(help="Only the names of the files and how many lines changed.")] = False,
    message: Annotated[
        str | None, Parameter(metavar="ID", help="Only what followed this prompt, or what this turn did.")
    ] = None,
    from_: Annotated[Moment, Parameter(name="--from", help="From this message or event on.")] = None,
    to: Annotated[Moment, Parameter(help="Up to this message or event.")] = None,
    options: Options,
) -> int:
    """Show what a session changed in files, as git shows it.

    --from and --to compare the files at two moments, as the nearest snapshots
    have them: a prompt is the moment before it ran, and a turn is its beginning
    or its end. With --json the answer is {"items": [{"file", "renamedFrom",
    "status", "binary", "additions", "deletions", "patch"}], "notKnown"}.

    A and B are the numbers of two events. Then messages, files, context,
    permissions and usage are compared. With --json the answer is {"sessionID",
    "before", "after", "fields", "messages", "context", "permissions", "cost",
    "tokens", "files"}; what does not differ is left out.

    A fork counts its own turns; --message also takes a prompt from before it.

    Changes that are not known, for instance because snapshots are off, are named,
    in "notKnown". The exit code is 1 if they are all there is.

    For example:
      turnkeeper session diff calm-otter
      turnkeeper session diff calm-otter --stat
      turnkeeper session diff calm-otter --message msg_1e0ae3b0a001
      turnkeeper session diff calm-otter --from 12 --to 40
      turnkeeper session diff calm-otter 12 40
      turnkeeper session diff calm-otter | git apply --reverse
    """
    extent = Extent(message, from_, to)
    if a is not None:
        if b is None or stat or message is not None or extent.is_between:
            raise UsageError("give two events, as in `session diff ID 12 40`, and no other option but --json")
        await _compare(id, a, b, options)
        return OK
    if message is not None and extent.is_between:
        raise UsageError("--message goes without --from and --to")
    if extent.is_between:
        options.require_store("a comparison of two moments")
    return await _show(id, extent, options, stat=stat)


async def _show(name: str, extent: Extent, options: Options, *, stat: bool) -> int:
    """Print the changes of files."""
    async with options.sessions(read_only=True) as tk:
        session_id = await names.session(tk, name)
        is_patch = not (stat or options.json) and Screen.of(sys.stdout).width is None
        found = await _changes(tk, session_id, extent, exact=is_patch)
        left = None if extent.is_between else await _not_known(tk, session_id, extent.message)
        empty = await _empty(tk, session_id, left, is_whole=extent.is_whole)
    render = stat_lines if stat else patch_lines
    if is_patch and found:  # Bytes for git: of text what is not UTF-8 would be replaced.
        lines = patch_lines(Screen.of(sys.stdout), found)
        write("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    else:
        answer_items(options, found, lambda screen: "\n".join(render(screen, found)), empty=empty, notKnown=left)
    if left is not None:
        remark(options, f"{left[0].upper()}{left[1:]}.")
    return REFUSED if left is not None and not found else OK


async def _compare(name: str, before: int, after: int, options: Options) -> None:
    from turnkeeper.cli.comparison import comparison

    async with options.read() as tk:
        found = await tk.compare(await names.session(tk, name), before, after)
    answer(options, found, lambda screen: comparison(screen, found), empty="Nothing differs.")


async def _changes(
    tk: "Turnkeeper | Client", session_id: str, extent: Extent, *, exact: bool
) -> "tuple[FileChange, ...]":
    message_id = await names.message(tk, session_id, extent.message) if extent.message is not None else None
    store = local_store(tk)
    if store is None:
        return await _served(tk, session_id, message_id)
    if not extent.is_between:
        return await store.changes(session_id, message_id=message_id, exact=exact)
    return await store.changes(
        session_id,
        start=await _moment(store, session_id, extent.start),
        end=await _moment(store, session_id, extent.end),
        exact=exact,
    )


async def _not_known(tk: "Turnkeeper | Client", session_id: str, message: str | None) -> str | None:
    """Possible changes that are not known, as text. A server does not report them."""
    store = local_store(tk)
    if store is None:
        return None
    message_id = await names.message(tk, session_id, message) if message is not None else None
    return await store.changes_not_known(session_id, message_id=message_id)


async def _empty(tk: "Turnkeeper | Client", session_id: str, left: str | None, *, is_whole: bool) -> str:
    """The text for no changes. Those of a fork begin with its own turns."""
    if left is not None:
        return "No change is known."
    origin = (await tk.get(session_id)).origin if is_whole else None  # A server does not tell it.
    return f"No file was changed since the fork of {origin.session_id}." if origin else "No file was changed."


async def _served(tk: "Turnkeeper | Client", session_id: str, message_id: str | None) -> "tuple[FileChange, ...]":
    """The changes from a server: diffs without renames."""
    from turnkeeper.client import Client
    from turnkeeper.core.stored_changes import stored_change

    assert isinstance(tk, Client)
    await tk.get(session_id)  # Raises NotFound, where the server has an empty answer.
    return tuple(map(stored_change, await tk.diffs(session_id, message_id=message_id)))


async def _moment(tk: "Turnkeeper", session_id: str, given: str | None) -> int | str | None:
    if given is None:
        return None
    is_seq = given.isdecimal() and len(given) <= SEQ_DIGITS_MAX
    return int(given) if is_seq else await names.message(tk, session_id, given)

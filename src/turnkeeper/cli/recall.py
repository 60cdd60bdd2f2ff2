"""The command that gives back what a model is no longer shown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note, write
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, harmless, one_line
from turnkeeper.cli.session_name import SessionName
from turnkeeper.core.limits import RECALL_PAGE_CHARS

if TYPE_CHECKING:
    from turnkeeper.core.recall import RecallHit, RecallPage


async def recall(
    id: SessionName,
    handle: Annotated[str | None, Parameter(metavar="HANDLE", help="The handle of a text, as r0123456789.")] = None,
    /,
    *,
    query: Annotated[str | None, Parameter(metavar="WORDS", help="List the texts that hold these words.")] = None,
    offset: Annotated[int, Parameter(metavar="N", help="Begin with this character, counted from 0.")] = 0,
    all: Annotated[bool, Parameter(name="--all", help="Write all of it, exactly, and nothing else.")] = False,
    options: Options = EVERYWHERE,
) -> None:
    """Give back a text of a session by its handle, also one that was cut, cleared or compacted away.

    Handles stand where the model was not shown everything; --query finds them by words. A long text comes in pages;
    --all writes its bytes to standard output as they are, and those of an attached file. With --json a page is
    {"handle", "label", "messageID", "partID", "text", "offset", "nextOffset", "total"}, and what --query finds is a
    list of {"handle", "label", "messageID", "partID", "snippet", "total", "hidden"}.

    Examples:
      turnkeeper session recall calm-otter --query "harbour master"
      turnkeeper session recall calm-otter r0123456789
      turnkeeper session recall calm-otter r0123456789 --all > output.txt
    """
    if (handle is None) == (query is None):
        raise UsageError("give either a handle or --query")
    if query is not None and (all or offset):
        raise UsageError("--all and --offset go with a handle, not with --query")
    if all and options.json:
        raise UsageError("--all writes the text and nothing else; leave out --json")
    async with options.read() as tk:
        session_id = await names.session(tk, id)
        if query is not None:
            hits = await tk.recall_search(session_id, query)
            answer(options, hits, lambda screen: _places(screen, hits))
            if not options.json and not hits:
                note(f"Nothing was said with {query!r}.")
            return
        assert handle is not None, "one of the two was given"
        page = await tk.recall(session_id, handle, offset=offset, limit=None if all else RECALL_PAGE_CHARS)
    if all:
        write(_bytes(page))
        return
    answer(options, page, lambda screen: harmless(page.text))
    if not options.json:
        note(_where(page))


def _bytes(page: "RecallPage") -> bytes:
    """The text, or the file it is the address of."""
    from turnkeeper.text.attachment_url import read_data_url

    address = read_data_url(page.text) if page.mime is not None and page.offset == 0 else None
    try:
        return address.content() if address is not None else page.text.encode("utf-8", "surrogatepass")
    except ValueError:  # It is not what it says it is; the address is all there is.
        return page.text.encode("utf-8", "surrogatepass")


def _where(page: "RecallPage") -> str:
    end = page.offset + len(page.text)
    rest = f"; go on with --offset {end}, or --all" if page.next_offset is not None else ""
    files = "".join(f"\n{one_line(one.label)}: {one.handle}" for one in page.files)
    return f"{one_line(page.label)}: characters {page.offset} to {end} of {page.total}{rest}{files}"


def _places(screen: Screen, hits: "Sequence[RecallHit]") -> str:
    return "\n\n".join(_place(screen, hit) for hit in hits)


def _place(screen: Screen, hit: "RecallHit") -> str:
    state = f", {hit.hidden}" if hit.hidden else ""
    about = screen.paint(f"{hit.message_id}, {hit.total} characters{state}", "dim")
    return f"{screen.paint(hit.handle, 'cyan')}  {one_line(hit.label)}  {about}\n  {one_line(hit.snippet)}"

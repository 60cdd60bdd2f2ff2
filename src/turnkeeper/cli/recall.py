"""The command that reads texts that were cut, cleared or compacted for the model."""

from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, remark, write
from turnkeeper.cli.screen import Screen, harmless, one_line
from turnkeeper.core.limits import RECALL_PAGE_CHARS

if TYPE_CHECKING:
    from turnkeeper.core.recall import RecallHit, RecallPage


async def recall(
    id: names.SessionName,
    handle: Annotated[
        str | None, Parameter(metavar="HANDLE", help="The handle of a text, such as r0123456789.")
    ] = None,
    /,
    *,
    query: Annotated[str | None, Parameter(metavar="WORDS", help="List the texts that contain these words.")] = None,
    offset: Annotated[int, Parameter(metavar="N", help="The first character, counted from 0.")] = 0,
    all: Annotated[bool, Parameter(name="--all", help="Write the whole text and nothing else.")] = False,
    options: Options,
) -> None:
    """Read a text by its handle, also one that was cut, cleared or compacted.

    The model sees a handle wherever a text is not complete; --query finds handles
    by words. A long text is printed in pages. --all writes the bytes of the text
    or of the attached file. With --json a page is {"handle", "label",
    "messageID", "partID", "text", "offset", "nextOffset", "total"}, and --query
    gives {"items": [{"handle", "label", "messageID", "partID", "snippet",
    "total", "hidden"}]}.

    For example:
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
            text = f"Nothing matches {query!r}."
            answer_items(options, hits, lambda screen: "\n\n".join(_hit(screen, hit) for hit in hits), empty=text)
            return
        assert handle is not None, "one of the two was given"
        page = await tk.recall(session_id, handle, offset=offset, limit=None if all else RECALL_PAGE_CHARS)
    if all:
        write(_bytes(page))
        return
    answer(options, page, lambda screen: harmless(page.text))
    remark(options, _where(page))


def _bytes(page: "RecallPage") -> bytes:
    """The text, or the content of its data URL."""
    from turnkeeper.text.attachment_url import read_data_url

    address = read_data_url(page.text) if page.mime is not None and page.offset == 0 else None
    try:
        return address.content() if address is not None else page.text.encode("utf-8", "surrogatepass")
    except ValueError:  # A broken data URL is returned as it is.
        return page.text.encode("utf-8", "surrogatepass")


def _where(page: "RecallPage") -> str:
    end = page.offset + len(page.text)
    rest = f"; continue with --offset {end}, or --all" if page.next_offset is not None else ""
    files = "".join(f"\n{one_line(one.label)}: {one.handle}" for one in page.files)
    return f"{one_line(page.label)}: characters {page.offset} to {end} of {page.total}{rest}{files}"


def _hit(screen: Screen, hit: "RecallHit") -> str:
    state = f", {hit.hidden}" if hit.hidden else ""
    about = screen.paint(f"{hit.message_id}, {hit.total} characters{state}", "dim")
    return f"{screen.paint(hit.handle, 'cyan')}  {one_line(hit.label)}  {about}\n  {one_line(hit.snippet)}"

"""recall: exact texts and outputs of the session, also those that the model is no longer shown."""

from collections.abc import Sequence
from typing import Annotated, Final

from msgspec import Meta

from turnkeeper.core.recall import TOOL, Recalled, RecallHit, page
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Attachment, Tool, ToolContext, ToolFailure, ToolOutput, text


class RecallArguments(Value):
    """The handle of a text, or the words to search."""

    handle: Annotated[str, Meta(description="The handle of a text, such as r0123456789.")] | None = None
    query: Annotated[str, Meta(description="Words that were said; each may be the beginning of one.")] | None = None
    offset: Annotated[int, Meta(description="The first character to give, counted from 0.", ge=0)] | None = None


async def execute(arguments: RecallArguments, context: ToolContext) -> ToolOutput:
    """Show a page of the text, or list the hits."""
    wanted = [one for one in (arguments.handle, arguments.query) if one and one.strip()]
    if len(wanted) != 1:
        raise ToolFailure("Give either handle or query. Rewrite the input and call again.")
    await context.ask("recall", [wanted[0]], always=["*"], metadata={"handle": arguments.handle})
    if arguments.handle:
        return _page(await context.recall.find(arguments.handle.strip()), arguments.offset or 0)
    return _places(wanted[0], await context.recall.search(wanted[0]))


def _page(found: Recalled, offset: int) -> ToolOutput:
    """One line about the page, then the characters, exactly."""
    if found.piece.mime is not None:
        return _file(found, found.piece.mime)
    given = page(found, offset)
    end = given.offset + len(given.text)
    rest = f"go on with offset {end}" if given.next_offset is not None else "the end"
    files = "".join(f"; {one.label} has handle {one.handle}" for one in given.files)
    head = f"[{given.handle}, {given.label}{files}: characters {given.offset} to {end} of {given.total}, {rest}]"
    metadata = {
        "handle": given.handle,
        "offset": given.offset,
        "nextOffset": given.next_offset,
        "total": given.total,
        "truncated": given.next_offset is not None,
    }
    title = f"{given.label} ({given.handle})"
    return ToolOutput(title=_line(title), output=f"{_line(head)}\n{given.text}", metadata=metadata)


def _file(found: Recalled, mime: str) -> ToolOutput:
    piece = found.piece
    file = Attachment(mime=mime, url=piece.text, filename=piece.label.removeprefix("file: "))
    metadata = {"handle": piece.handle, "truncated": False}
    return ToolOutput(
        title=_line(f"{piece.label} ({piece.handle})"),
        output=f"[{piece.handle}, {_line(piece.label)}: it is attached]",
        metadata=metadata,
        attachments=(file,),
    )


def _places(query: str, hits: Sequence[RecallHit]) -> ToolOutput:
    metadata = {"count": len(hits), "truncated": False}
    if not hits:
        said = "Nothing in this session holds these words. Try fewer, or the beginning of one."
        return ToolOutput(title=_line(query), output=said, metadata=metadata)
    blocks = [f"{len(hits)} place{'s' if len(hits) > 1 else ''}. Recall one with its handle."]
    for hit in hits:
        state = f", {hit.hidden}" if hit.hidden else ""
        blocks.append(f"{hit.handle}  {_line(hit.label)} ({hit.total} characters{state})\n  {hit.snippet}")
    return ToolOutput(title=_line(query), output="\n\n".join(blocks), metadata=metadata)


def _line(words: str) -> str:
    """On one line: the text begins behind the first line break, and only there."""
    return " ".join(words.split())


RECALL: Final = Tool(
    name=TOOL,
    description=text("recall"),
    parameters=RecallArguments,
    execute=execute,
    permission="recall",
    read_only=True,
)

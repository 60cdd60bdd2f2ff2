"""read: a text file by lines, a directory by names, an image or PDF as it is."""

import os
from base64 import b64encode
from io import BytesIO
from pathlib import Path
from typing import Annotated, BinaryIO, Final, NamedTuple

from anyio import to_thread
from msgspec import Meta

from turnkeeper.core.limits import (
    EDITED_BYTES_MAX,
    LINE_CHARS_MAX,
    MEDIA_BYTES_MAX,
    OUTPUT_BYTES_MAX,
    OUTPUT_LINES_MAX,
)
from turnkeeper.model.value import Value
from turnkeeper.text.file_text import UTF8_MARK
from turnkeeper.tools.reach import patterns, reach, shown
from turnkeeper.tools.reads import SessionReads
from turnkeeper.tools.tool import Attachment, Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import file_kind, files

PREVIEW_LINES: Final = 20


class ReadArguments(Value):
    """The file, and the lines to read."""

    file_path: Annotated[
        str, Meta(description="The file or directory, absolute or relative to the session's directory.")
    ]
    offset: Annotated[int, Meta(description="The first line to read, counted from 1.", ge=0)] | None = None
    limit: Annotated[int, Meta(description=f"How many lines to read. Default: {OUTPUT_LINES_MAX}.", ge=1)] | None = None


class Lines(NamedTuple):
    """A stretch of a file or a listing: the lines, the number of the first, and the total if its end was seen."""

    lines: list[str]
    first: int
    total: int | None

    @property
    def note(self) -> str:
        """A line about the position of these lines in the whole."""
        if self.total is not None:
            return f"(End, {self.total} in all)"
        last = self.first + len(self.lines) - 1
        return f"({self.first} to {last} shown and more to come; go on with offset {last + 1})"


async def execute(arguments: ReadArguments, context: ToolContext) -> ToolOutput:
    """Read the file or directory once it is allowed."""
    path = await reach(arguments.file_path, context, then="read")
    await context.ask("read", patterns(path, context), always=["*"], metadata={})
    first = max(arguments.offset or 1, 1)
    limit = arguments.limit or OUTPUT_LINES_MAX
    title = shown(path, context)
    wanted = path, first, limit, title, context.services.reads
    output = _read(*wanted) if files.is_small(path) else await to_thread.run_sync(_read, *wanted)
    context.discovered(path)
    await context.services.prepare(path, context.confine)
    return output


def _read(path: Path, first: int, limit: int, title: str, reads: SessionReads) -> ToolOutput:
    if not path.exists():
        raise ToolFailure(_missing(path))
    if path.is_dir():
        names = [files.printable(name) for name in files.entries(path)]
        stretch = _page(names, first, min(limit, OUTPUT_LINES_MAX))
        return _output("directory", path, title, stretch, stretch.lines)
    files.require_regular(path)
    with files.open_file(path) as file:
        head = file.read(file_kind.SNIFFED_BYTES)
        mime = file_kind.media_type(head)
        if mime is not None:
            return _media(path, title, mime)
        if file_kind.is_binary(path, head):
            raise ToolFailure(f"{str(path)!r} is a binary file and cannot be read as text.")
        content = head + file.read(EDITED_BYTES_MAX + 1 - len(head))
        if is_whole := len(content) <= EDITED_BYTES_MAX:
            stretch = _stretch(
                BytesIO(files.decoded(path, content).text.encode("utf-8", "surrogateescape")), first, limit
            )
        else:  # Too large to be edited, and to be decoded at once: it is read no further than what is shown.
            del content
            file.seek(len(UTF8_MARK) if head.startswith(UTF8_MARK) else 0)
            stretch = _stretch(file, first, limit)
    if not stretch.lines and first > 1:
        raise ToolFailure(f"{str(path)!r} has only {stretch.total} lines, so there is none from {first} on.")
    if is_whole:
        reads.note(path, content)
    return _output(
        "file", path, title, stretch, [f"{stretch.first + n}: {line}" for n, line in enumerate(stretch.lines)]
    )


def _stretch(file: BinaryIO, first: int, limit: int) -> Lines:
    """Lines from the first on, as many as wanted and as fit; a file of any size is read no further than that."""
    lines: list[str] = []
    number, size = 0, 0
    while (content := _next_line(file)) is not None:
        number += 1
        if number < first:
            continue
        line = content.decode("utf-8", "replace")
        line = line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}... (line cut)"
        size += len(line.encode()) + 1
        if len(lines) == limit or size > OUTPUT_BYTES_MAX:
            return Lines(lines, first, None)
        lines.append(line)
    return Lines(lines, first, number)


def _next_line(file: BinaryIO) -> bytes | None:
    """The next line, of which no more is kept than could be shown; None at the end."""
    kept_max = 4 * (LINE_CHARS_MAX + 1)
    line = file.readline(kept_max)
    if not line:
        return None
    piece = line
    while not piece.endswith(b"\n") and (piece := file.readline(1 << 20)):
        pass
    return line.rstrip(b"\r\n") if line.endswith(b"\n") else line


def _page(names: list[str], first: int, limit: int) -> Lines:
    shown_names = names[first - 1 : first - 1 + limit]
    return Lines(shown_names, first, len(names) if first - 1 + limit >= len(names) else None)


def _output(kind: str, path: Path, title: str, stretch: Lines, numbered: list[str]) -> ToolOutput:
    body = "\n".join([*numbered, "", stretch.note])
    display = {"type": kind, "path": str(path), "text": "\n".join(stretch.lines)}
    return ToolOutput(
        title=title,
        output=f"<path>{path}</path>\n<type>{kind}</type>\n<content>\n{body}\n</content>",
        metadata={
            "preview": "\n".join(stretch.lines[:PREVIEW_LINES]),
            "truncated": stretch.total is None,
            "display": display,
        },
    )


def _media(path: Path, title: str, mime: str) -> ToolOutput:
    content = files.read_bytes(path, MEDIA_BYTES_MAX)
    what = "PDF" if mime == "application/pdf" else "Image"
    attachment = Attachment(mime=mime, url=f"data:{mime};base64,{b64encode(content).decode()}", filename=path.name)
    said = f"{what} {path} is attached."
    return ToolOutput(
        title=title, output=said, metadata={"preview": said, "truncated": False}, attachments=(attachment,)
    )


def _missing(path: Path) -> str:
    if path.is_symlink():
        return f"{str(path)!r} is a symbolic link to {os.readlink(path)!r}, which does not exist."
    near = [os.fsdecode(os.fsencode(name)) for name in files.similar(path)]
    hint = f" Did you mean one of these? {', '.join(near)}" if near else ""
    return f"{str(path)!r} does not exist.{hint}"


READ: Final = Tool(
    name="read",
    description=text("read"),
    parameters=ReadArguments,
    execute=execute,
    permission="read",
    read_only=True,
    aliases={"path": "filePath"},
)

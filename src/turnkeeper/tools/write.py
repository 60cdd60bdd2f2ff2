"""write: a file with this content, new or in the place of the old one."""

import os
from pathlib import Path
from typing import Annotated, Final, NamedTuple

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import Value
from turnkeeper.text.file_text import FileText, Unencodable
from turnkeeper.tools.change import FileChange, change, edits_by_patch, existing
from turnkeeper.tools.reach import reach, shown
from turnkeeper.tools.tool import Tool, ToolContext, ToolOutput, text
from turnkeeper.workspace import files


class WriteArguments(Value):
    """The file, and its whole content."""

    file_path: Annotated[str, Meta(description="The file, absolute or relative to the session's directory.")]
    content: Annotated[str, Meta(description="The whole content of the file.")]


class _Encoded(NamedTuple):
    """The bytes to write, and a note for the model about them."""

    content: bytes
    note: str = ""


async def execute(arguments: WriteArguments, context: ToolContext) -> ToolOutput:
    """Write the file once it is allowed."""
    path = await reach(arguments.file_path, context, then="edit")
    async with files.holding(path):
        is_quick = files.is_small(path) or not os.path.lexists(path)
        before = existing(path) if is_quick else await to_thread.run_sync(existing, path)
        encoded = _in_the_same_form(path, arguments.content, before)
        changed = await change([FileChange(path, before, encoded.content)], context)
    what = "Wrote" if before is None else "Replaced the content of"
    metadata = {**changed.metadata, "exists": before is not None}
    output = f"{what} {path}.{encoded.note}{changed.notes}"
    return ToolOutput(title=shown(path, context), output=output, metadata=metadata)


def _in_the_same_form(path: Path, content: str, before: bytes | None) -> _Encoded:
    """The content with the encoding, byte order mark and line ends that the file had."""
    form = _form(path, before)
    content = content if form.encoding == "utf-8" else content.removeprefix("\ufeff")
    if form.has_crlf_only and "\r\n" not in content:
        content = content.replace("\n", "\r\n")
    try:
        return _Encoded(form.encode(content))
    except Unencodable as error:
        return _Encoded(content.encode(), f" It was in {form.encoding_name} and is in UTF-8 now, because {error}.")


def _form(path: Path, before: bytes | None) -> FileText:
    if before is None:
        return FileText(text="")
    try:
        return files.decoded(path, before)
    except Invalid:  # A binary file becomes a text.
        return FileText(text="")


WRITE: Final = Tool(
    name="write",
    description=text("write"),
    parameters=WriteArguments,
    execute=execute,
    permission="edit",
    names_files=True,
    aliases={"path": "filePath"},
    suits=lambda model_id: not edits_by_patch(model_id),
)

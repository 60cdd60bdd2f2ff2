"""write: a file with this content, new or in the place of the old one."""

import os
from typing import Annotated, Final

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.value import Value
from turnkeeper.tools.change import change, existing
from turnkeeper.tools.reach import reach, shown
from turnkeeper.tools.tool import Tool, ToolContext, ToolOutput, text
from turnkeeper.workspace import files


class WriteArguments(Value):
    """Which file, and all of its content."""

    file_path: Annotated[str, Meta(description="The file, absolute or relative to the session's directory.")]
    content: Annotated[str, Meta(description="The whole content of the file.")]


async def execute(arguments: WriteArguments, context: ToolContext) -> ToolOutput:
    """Write the file once it is allowed."""
    path = await reach(arguments.file_path, context)
    async with files.holding(path):
        is_quick = files.is_small(path) or not os.path.lexists(path)
        before = existing(path) if is_quick else await to_thread.run_sync(existing, path)
        content = _with_bom(arguments.content, before)
        metadata = await change(path, before, content, context)
    what = "Wrote" if before is None else "Replaced the content of"
    metadata = {**metadata, "exists": before is not None}
    return ToolOutput(title=shown(path, context), output=f"{what} {path}.", metadata=metadata)


def _with_bom(content: str, before: bytes | None) -> bytes:
    """The content with the mark at its beginning that the file had, if it had one."""
    encoded = content.encode("utf-8", "surrogatepass")
    has_bom = before is not None and before.startswith(files.BOM)
    return files.BOM + encoded if has_bom and not encoded.startswith(files.BOM) else encoded


WRITE: Final = Tool(
    name="write",
    description=text("write"),
    parameters=WriteArguments,
    execute=execute,
    permission="edit",
    aliases={"path": "filePath"},
)

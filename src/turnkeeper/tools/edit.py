"""edit: one text replaced by another in a file."""

from pathlib import Path
from typing import Annotated, Final

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.value import Value
from turnkeeper.tools.change import FileChange, change, edits_by_patch, existing, require_read
from turnkeeper.tools.reach import reach, shown
from turnkeeper.tools.replacing import Replaced, Replacement, replaced, require_different
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files


class EditArguments(Value):
    """The file, the old text and the new text."""

    file_path: Annotated[str, Meta(description="The file, absolute or relative to the session's directory.")]
    old_string: Annotated[str, Meta(description="The text to replace, exactly as it stands in the file.")]
    new_string: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence, not just the only one.")] = False


async def execute(arguments: EditArguments, context: ToolContext) -> ToolOutput:
    """Change the file once it is allowed."""
    replacement = Replacement(arguments.old_string, arguments.new_string, arguments.replace_all)
    require_different(replacement)
    path = await reach(arguments.file_path, context, then="edit")
    async with files.holding(path):
        before = await to_thread.run_sync(existing, path)
        _require_sense(path, before, replacement)
        require_read(path, before, context)
        after = await to_thread.run_sync(_after, path, before, replacement)
        changed = await change([FileChange(path, before, after.content)], context)
    places = f"{after.places} places" if after.places > 1 else "one place"
    output = f"Wrote {path}." if before is None else f"Changed {places} in {path}."
    return ToolOutput(title=shown(path, context), output=f"{output}{changed.notes}", metadata=changed.metadata)


def _require_sense(path: Path, before: bytes | None, replacement: Replacement) -> None:
    if before is None and replacement.old:
        raise ToolFailure(f"{str(path)!r} does not exist. To make it, leave oldString empty or use write.")
    if before is not None and not replacement.old:
        raise ToolFailure(f"{str(path)!r} exists already. Give the text to replace, or use write to replace it all.")


def _after(path: Path, before: bytes | None, replacement: Replacement) -> Replaced:
    if before is None:
        return Replaced(replacement.new.encode(), 1)
    return replaced(path, files.decoded(path, before), [replacement])


EDIT: Final = Tool(
    name="edit",
    description=text("edit"),
    parameters=EditArguments,
    execute=execute,
    permission="edit",
    names_files=True,
    aliases={"path": "filePath"},
    suits=lambda model_id: not edits_by_patch(model_id),
)

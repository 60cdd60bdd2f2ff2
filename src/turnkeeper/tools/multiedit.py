"""multiedit: several texts replaced in one file, one after the other: all of them, or none."""

from pathlib import Path
from typing import Annotated, Final

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.value import Value
from turnkeeper.text.file_text import FileText
from turnkeeper.tools.change import FileChange, change, edits_by_patch, existing, require_read
from turnkeeper.tools.reach import reach, shown
from turnkeeper.tools.replacing import Replaced, Replacement, replaced, require_different
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files


class OneEdit(Value):
    """One replacement."""

    old_string: Annotated[str, Meta(description="The text to replace, exactly as it stands in the file by then.")]
    new_string: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence, not just the only one.")] = False


class MultieditArguments(Value):
    """The file, and the replacements in order."""

    file_path: Annotated[str, Meta(description="The file, absolute or relative to the session's directory.")]
    edits: Annotated[
        tuple[OneEdit, ...], Meta(description="The edits, each made in what the one before it left.", min_length=1)
    ]


async def execute(arguments: MultieditArguments, context: ToolContext) -> ToolOutput:
    """Change the file once it is allowed."""
    replacements = [Replacement(one.old_string, one.new_string, one.replace_all) for one in arguments.edits]
    for number, one in enumerate(replacements, 1):
        require_different(one, f"Edit {number} of {len(replacements)}: ")
    path = await reach(arguments.file_path, context, then="edit")
    async with files.holding(path):
        before = await to_thread.run_sync(existing, path)
        _require_sense(path, before, replacements)
        require_read(path, before, context)
        after = await to_thread.run_sync(_after, path, before, replacements)
        changed = await change([FileChange(path, before, after.content)], context)
    made = f"{len(replacements)} edits" if len(replacements) > 1 else "one edit"
    output = f"Made {made} in {path}.{changed.notes}"
    return ToolOutput(title=shown(path, context), output=output, metadata=changed.metadata)


def _require_sense(path: Path, before: bytes | None, replacements: list[Replacement]) -> None:
    """Raise ToolFailure unless the first edit of a new file, and no other edit, has an empty old text."""
    if before is None and replacements[0].old:
        raise ToolFailure(f"{str(path)!r} does not exist. To make it, leave oldString of the first edit empty.")
    for number, one in enumerate(replacements, 1):
        if not one.old and (before is not None or number > 1):
            raise ToolFailure(f"Edit {number} of {len(replacements)}: oldString is empty. Give the text to replace.")


def _after(path: Path, before: bytes | None, replacements: list[Replacement]) -> Replaced:
    if before is not None:
        return replaced(path, files.decoded(path, before), replacements)
    return replaced(path, FileText(text=replacements[0].new), replacements[1:])


MULTIEDIT: Final = Tool(
    name="multiedit",
    description=text("multiedit"),
    parameters=MultieditArguments,
    execute=execute,
    permission="edit",
    names_files=True,
    aliases={"path": "filePath"},
    suits=lambda model_id: not edits_by_patch(model_id),
)

"""edit: one text replaced by another in a file."""

from pathlib import Path
from typing import Annotated, Final, assert_never

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.value import Value
from turnkeeper.text import edit_match
from turnkeeper.text.edit_match import Ambiguous, Edited, NoMatch, Oversized
from turnkeeper.tools.change import change
from turnkeeper.tools.reach import reach, shown
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files
from turnkeeper.workspace.files import TextFile


class EditArguments(Value):
    """Which file, what is there, and what shall be there."""

    file_path: Annotated[str, Meta(description="The file, absolute or relative to the session's directory.")]
    old_string: Annotated[str, Meta(description="The text to replace, exactly as it stands in the file.")]
    new_string: Annotated[str, Meta(description="The text to put in its place.")]
    replace_all: Annotated[bool, Meta(description="Replace every occurrence, not just the only one.")] = False


async def execute(arguments: EditArguments, context: ToolContext) -> ToolOutput:
    """Change the file once it is allowed."""
    if arguments.old_string == arguments.new_string:
        raise ToolFailure("oldString and newString are the same, so there is nothing to change.")
    path = await reach(arguments.file_path, context)
    async with files.holding(path):
        before = await to_thread.run_sync(_read, path, arguments)
        edited = await to_thread.run_sync(_edited, path, before, arguments)
        form = before or TextFile("", has_bom=False)
        metadata = await change(path, form.encode(form.text) if before else None, form.encode(edited.content), context)
    places = f"{edited.count} places" if edited.count > 1 else "one place"
    output = f"Changed {places} in {path}." if before else f"Wrote {path}."
    return ToolOutput(title=shown(path, context), output=output, metadata=metadata)


def _read(path: Path, arguments: EditArguments) -> TextFile | None:
    """The file as it is; None if it is to be made."""
    if arguments.old_string:
        if not path.exists():
            raise ToolFailure(f"{str(path)!r} does not exist. To make it, leave oldString empty or use write.")
        return files.read_text(path)
    if path.exists():
        raise ToolFailure(f"{str(path)!r} exists already. Give the text to replace, or use write to replace it all.")
    return None


def _edited(path: Path, before: TextFile | None, arguments: EditArguments) -> Edited:
    if before is None:
        return Edited(content=arguments.new_string, strategy="new", count=1)
    outcome = edit_match.edit(before.text, arguments.old_string, arguments.new_string, every=arguments.replace_all)
    match outcome:
        case Edited():
            return outcome
        case NoMatch():
            raise ToolFailure(
                f"oldString was not found in {str(path)!r}. Read the file and copy the text exactly, blanks included."
            )
        case Ambiguous(count=count):
            raise ToolFailure(
                f"oldString was found {count} times in {str(path)!r}. Add lines around it until it is the only one, or "
                "set replaceAll."
            )
        case Oversized(lines=lines):
            raise ToolFailure(
                f"The nearest text to oldString in {str(path)!r} has {lines} lines, far more than you gave. Read the "
                "file and copy the text exactly."
            )
        case _:
            assert_never(outcome)


EDIT: Final = Tool(
    name="edit",
    description=text("edit"),
    parameters=EditArguments,
    execute=execute,
    permission="edit",
    aliases={"path": "filePath"},
)

"""apply_patch: changes to several files, written as one patch: all of them, or none."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

from anyio import to_thread
from msgspec import Meta

from turnkeeper.model.value import Value
from turnkeeper.text import patch
from turnkeeper.text.patch import AddFile, DeleteFile, PatchError, Section, UpdateFile
from turnkeeper.tools.change import FileChange, change, edits_by_patch, existing, require_read
from turnkeeper.tools.reach import reach_all, shown
from turnkeeper.tools.replacing import encoded
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files


class ApplyPatchArguments(Value):
    """The patch."""

    patch_text: Annotated[str, Meta(description="The whole patch, from '*** Begin Patch' to '*** End Patch'.")]


async def execute(arguments: ApplyPatchArguments, context: ToolContext) -> ToolOutput:
    """Change the files once it is allowed."""
    try:
        sections = patch.parse(arguments.patch_text)
    except PatchError as error:
        raise ToolFailure(f"The patch cannot be read: {error}. Nothing was changed.") from error
    reached = await reach_all([given for section in sections for given in _named(section)], context, then="edit")
    one_name: dict[Path, Path] = {}  # A file and a link to it are one file, and must not be changed twice at once.
    paths = {given: one_name.setdefault(files.real(path), path) for given, path in reached.items()}
    async with files.holding(*paths.values()):
        patched = _Patched(paths, await to_thread.run_sync(_contents, list(paths.values())))
        for path, content in patched.before.items():
            require_read(path, content, context)
        await to_thread.run_sync(patched.take, sections)
        changes = patched.changes()
        if not changes:
            raise ToolFailure("The patch changes nothing: the files are as it wants them already.")
        changed = await change(changes, context, is_patch=True)
    lines = _summary(changes, context)
    title = lines[0][2:] if len(lines) == 1 else f"{len(lines)} files"
    output = "\n".join(["The patch was applied. These files were added (A), modified (M) or deleted (D):", *lines])
    return ToolOutput(title=title, output=f"{output}{changed.notes}", metadata=changed.metadata)


def _named(section: Section) -> tuple[str, ...]:
    moved = (section.move_to,) if isinstance(section, UpdateFile) and section.move_to else ()
    return (section.path, *moved)


def _contents(paths: Sequence[Path]) -> dict[Path, bytes | None]:
    return {path: existing(path) for path in paths}


class _Patched:
    """The files that a patch names, before and after it. Nothing is written."""

    def __init__(self, paths: dict[str, Path], before: dict[Path, bytes | None]) -> None:
        self._paths, self.before = paths, before
        self._now = dict(before)
        self._moved: dict[Path, Path] = {}

    def take(self, sections: Sequence[Section]) -> None:
        """Apply the sections in order. Raises ToolFailure for the first that does not fit."""
        for section in sections:
            path = self._paths[section.path]
            content = self._now[path]
            match section:
                case AddFile(content=added):
                    self._now[path] = added.encode()
                case DeleteFile():
                    if content is None:
                        raise ToolFailure(f"{str(path)!r} does not exist, so it cannot be deleted. {_NOTHING}")
                    self._now[path] = None
                case UpdateFile():
                    self._update(path, content, section)

    def _update(self, path: Path, content: bytes | None, section: UpdateFile) -> None:
        if content is None:
            raise ToolFailure(f"{str(path)!r} does not exist. Use '*** Add File: ' to make it. {_NOTHING}")
        if section.chunks:
            form = files.decoded(path, content)
            try:
                content = encoded(path, form, patch.apply(form.text, section.chunks))
            except PatchError as error:
                raise ToolFailure(f"The patch does not fit {str(path)!r}: {error}\n{_NOTHING}") from error
        target = self._paths[section.move_to] if section.move_to else path
        if target != path:
            self._now[path] = None
            self._moved[target] = path
        self._now[target] = content

    def changes(self) -> list[FileChange]:
        """What is to be written and deleted."""
        return [
            FileChange(path, before, self._now[path], self._moved.get(path))
            for path, before in self.before.items()
            if self._now[path] != before
        ]


_NOTHING: Final = "Nothing was changed."


def _summary(changes: Sequence[FileChange], context: ToolContext) -> list[str]:
    moved = {one.moved_from for one in changes}
    lines = []
    for one in changes:
        if one.path in moved and one.after is None:
            continue
        is_new = one.before is None and one.moved_from is None
        lines.append(f"{'A' if is_new else 'D' if one.after is None else 'M'} {shown(one.path, context)}")
    return lines


APPLY_PATCH: Final = Tool(
    name="apply_patch",
    description=text("apply_patch"),
    parameters=ApplyPatchArguments,
    execute=execute,
    permission="edit",
    names_files=True,
    aliases={"patch": "patchText", "input": "patchText"},
    suits=edits_by_patch,
)

"""list: the files below a directory as a tree."""

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Annotated, Final

from msgspec import Meta

from turnkeeper.core.limits import LISTED_FILES_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.glob_pattern import compile_glob
from turnkeeper.tools.reach import patterns, reach, search_confinement, shown
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files, ripgrep

IGNORED: Final = frozenset(
    {
        *("node_modules", "__pycache__", ".git", ".venv", "venv", ".idea", ".vscode", ".cache"),
        *("dist", "build", "target", "vendor", "coverage", "tmp", "temp"),
    }
)
"""Directories with generated or installed files; they are left out at every depth."""


class ListArguments(Value):
    """The directory, and the patterns to leave out."""

    path: Annotated[str | None, Meta(description="The directory. Default: the session's directory.")] = None
    ignore: Annotated[tuple[str, ...], Meta(description="Globs of files to leave out, such as docs/** or *.svg.")] = ()


async def execute(arguments: ListArguments, context: ToolContext) -> ToolOutput:
    """Show the first files as a tree."""
    directory = await reach(arguments.path or ".", context, "directory", then="list")
    await context.ask("list", patterns(directory, context), always=["*"], metadata={"path": str(directory)})
    if not directory.is_dir():
        raise ToolFailure(f"{str(directory)!r} is not a directory.")
    ignored = [compile_glob(pattern) for pattern in arguments.ignore]

    def wanted(name: str) -> bool:
        is_ours = IGNORED.isdisjoint(PurePosixPath(name).parts[:-1])
        return is_ours and not any(pattern.fullmatch(name) for pattern in ignored)

    confined = await search_confinement(directory, context)
    found = await ripgrep.list_files(directory, wanted, LISTED_FILES_MAX + 1, confined=confined)
    files.require_unmoved(directory)
    is_cut = len(found) > LISTED_FILES_MAX
    lines = [f"{str(directory).rstrip('/')}/", *_tree([files.printable(name) for name in found[:LISTED_FILES_MAX]])]
    if is_cut:
        lines += ["", f"(There are more than these {LISTED_FILES_MAX} files; list a directory below.)"]
    metadata = {"count": min(len(found), LISTED_FILES_MAX), "truncated": is_cut}
    return ToolOutput(title=shown(directory, context), output="\n".join(lines), metadata=metadata)


def _tree(names: Sequence[str]) -> Iterator[str]:
    """Each directory and file on a line of its own, indented by its depth; directories before files."""
    above: tuple[str, ...] = ()
    for name in sorted(names, key=_order):
        *folders, file = name.split("/")
        common = 0
        while common < min(len(above), len(folders)) and above[common] == folders[common]:
            common += 1
        for depth in range(common, len(folders)):
            yield f"{'  ' * (depth + 1)}{folders[depth]}/"
        yield f"{'  ' * (len(folders) + 1)}{file}"
        above = tuple(folders)


def _order(name: str) -> list[tuple[bool, str]]:
    *folders, file = name.split("/")
    return [*((False, folder) for folder in folders), (True, file)]


LIST: Final = Tool(
    name="list",
    description=text("list"),
    parameters=ListArguments,
    execute=execute,
    permission="list",
    read_only=True,
)

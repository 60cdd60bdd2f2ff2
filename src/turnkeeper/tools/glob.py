"""glob: files by a pattern over their paths."""

from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from turnkeeper.core.limits import MATCHES_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.glob_pattern import compile_glob
from turnkeeper.tools.reach import reach, search_confinement, shown
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files, ripgrep


class GlobArguments(Value):
    """The pattern, and the directory to search."""

    pattern: Annotated[str, Meta(description="The pattern, such as **/*.py or src/**/test_*.{ts,tsx}.")]
    path: Annotated[str | None, Meta(description="The directory to look in. Default: the session's directory.")] = None


async def execute(arguments: GlobArguments, context: ToolContext) -> ToolOutput:
    """List the first files that match."""
    given, pattern = _split(arguments.path or ".", arguments.pattern)
    metadata = {"pattern": arguments.pattern, "path": arguments.path}
    context.refuse_denied("glob", [arguments.pattern])
    directory = await reach(given, context, "directory")
    await context.ask("glob", [arguments.pattern], always=["*"], metadata=metadata)
    if not directory.is_dir():
        raise ToolFailure(f"{str(directory)!r} is not a directory.")
    expression = compile_glob(pattern)
    found = await ripgrep.list_files(
        directory,
        lambda name: expression.fullmatch(name) is not None,
        MATCHES_MAX + 1,
        confined=await search_confinement(directory, context),
    )
    files.require_unmoved(directory)
    is_cut = len(found) > MATCHES_MAX
    lines = [files.printable(str(directory / name)) for name in found[:MATCHES_MAX]]
    if is_cut:
        lines += ["", f"(There are more than these {MATCHES_MAX}; use a narrower pattern or path.)"]
    return ToolOutput(
        title=shown(directory, context),
        output="\n".join(lines) or "No files found",
        metadata={"count": min(len(found), MATCHES_MAX), "truncated": is_cut},
    )


def _split(path: str, pattern: str) -> tuple[str, str]:
    """The directory and the pattern below it; an absolute pattern names its own directory."""
    if not pattern.startswith("/"):
        return path, pattern
    segments = pattern.split("/")
    fixed = next((place for place, segment in enumerate(segments) if set(segment) & set("*?[{")), len(segments) - 1)
    return str(Path("/", *segments[:fixed])), "/".join(["", *segments[fixed:]])


GLOB: Final = Tool(
    name="glob",
    description=text("glob"),
    parameters=GlobArguments,
    execute=execute,
    permission="glob",
    read_only=True,
)

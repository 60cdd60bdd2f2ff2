"""grep: lines that match a regular expression, file by file."""

from itertools import groupby
from pathlib import Path
from typing import Annotated, Final

from msgspec import Meta

from turnkeeper.core.limits import LINE_CHARS_MAX, MATCHES_MAX
from turnkeeper.model.value import Value
from turnkeeper.text.glob_pattern import compile_glob
from turnkeeper.tools.reach import located, patterns, reach, search_confinement
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files, ripgrep
from turnkeeper.workspace.ripgrep import Match

WITHHELD_SHOWN: Final = 5


class GrepArguments(Value):
    """The regular expression, the directory and the files to search."""

    pattern: Annotated[str, Meta(description="The regular expression, in the syntax of Rust's regex crate.")]
    path: Annotated[str | None, Meta(description="The file or directory to search. Default: the directory.")] = None
    include: Annotated[
        str | None, Meta(description="Only files that match this glob, such as *.py or src/**/*.ts.")
    ] = None


async def execute(arguments: GrepArguments, context: ToolContext) -> ToolOutput:
    """Show the first lines that match."""
    metadata = {"pattern": arguments.pattern, "path": arguments.path, "include": arguments.include}
    context.refuse_denied("grep", [arguments.pattern])
    then = "read" if located(arguments.path or ".", context).is_file() else None
    place = await reach(arguments.path or ".", context, "file" if arguments.path else "directory", then=then)
    await context.ask("grep", [arguments.pattern], always=["*"], metadata=metadata)
    if not place.exists():
        raise ToolFailure(f"{str(place)!r} does not exist.")
    if not place.is_dir():
        files.require_regular(place)
        await context.ask("read", patterns(place, context), always=["*"], metadata={**metadata, "filepath": str(place)})
    directory, below = (place, "./") if place.is_dir() else (place.parent, f"./{place.name}")
    include = arguments.include
    expression = compile_glob(include) if include else None
    withheld: dict[str, None] = {}

    def wanted(name: str) -> bool:
        if expression is not None and expression.fullmatch(name) is None:
            return False
        if directory / name in context.services.secrets:
            return False
        is_allowed = place.is_file() or context.may("read", patterns(directory / name, context))
        if not is_allowed:
            withheld[name] = None
        return is_allowed

    found = await ripgrep.search(
        arguments.pattern,
        directory,
        wanted,
        MATCHES_MAX + 1,
        below=below,
        names=include if include and "/" not in include else None,
        confined=await search_confinement(place, context),
    )
    files.require_unmoved(place)
    matches, is_cut = found[:MATCHES_MAX], len(found) > MATCHES_MAX
    return ToolOutput(
        title=arguments.pattern,
        output=_listing(matches, directory, is_cut=is_cut) + _note(list(withheld)),
        metadata={"matches": len(matches), "truncated": is_cut},
    )


def _listing(matches: list[Match], directory: Path, *, is_cut: bool) -> str:
    if not matches:
        return "No files found"
    count = f"{len(matches)} match{'' if len(matches) == 1 else 'es'}"
    blocks = [f"Found {'more than ' if is_cut else ''}{count}"]
    for path, group in groupby(matches, key=lambda match: match.path):
        lines = [f"  Line {match.line}: {_short(match.text)}" for match in group]
        blocks.append("\n".join([f"{directory / path}:", *lines]))
    if is_cut:
        blocks.append(f"(Only the first {len(matches)} are shown; use a narrower pattern, path or include.)")
    return "\n\n".join(blocks)


def _note(withheld: list[str]) -> str:
    """A line about files with matches that may not be read without asking."""
    if not withheld:
        return ""
    more = f" and {len(withheld) - WITHHELD_SHOWN} more" if len(withheld) > WITHHELD_SHOWN else ""
    named = ", ".join(withheld[:WITHHELD_SHOWN]) + more
    return f"\n\n(Not searched, because reading needs the user's permission: {named}. Use read to ask for it.)"


def _short(line: str) -> str:
    return line if len(line) <= LINE_CHARS_MAX else f"{line[:LINE_CHARS_MAX]}..."


GREP: Final = Tool(
    name="grep",
    description=text("grep"),
    parameters=GrepArguments,
    execute=execute,
    permission="grep",
    read_only=True,
)

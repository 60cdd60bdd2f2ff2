"""Commands that exchange sessions with files and with opencode: export, import."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.answer import answer, note, note_damaged, write
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, fields, harmless, one_line, plural
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from turnkeeper.app import Turnkeeper
    from turnkeeper.interop.report import Counts, Finding, ImportReport, Progress
    from turnkeeper.store.damaged import DamagedNames

FINDINGS_SHOWN = 10


async def export(
    id: Annotated[str | None, Parameter(metavar="ID", help="The session; without it the newest root.")] = None,
    /,
    *,
    all: Annotated[
        bool, Parameter(name=("--all", "-a"), help="Every session, archived ones and children too.")
    ] = False,
    output: Annotated[
        Path | None,
        Parameter(
            name=("--output", "-o"),
            metavar="PATH",
            help="Where to write; - is standard output. A file is replaced when the export is complete.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    layout: Annotated[
        Literal["json", "tree"], Parameter(metavar="LAYOUT", help="json, or tree: a folder for each session.")
    ] = "json",
    sanitize: Annotated[bool, Parameter(help="Leave out what was said; keep its structure.")] = False,
    options: Options = EVERYWHERE,
) -> int:
    """Write one session, or all, in the shape that opencode exports and imports.

    One session goes to standard output, or with --output to a file. With --all, --output names a folder, or a file
    that ends in .jsonl; with --layout tree it names a folder. With --json and --output the answer is
    {"sessions": COUNT, "output": PATH}; without --output the answer is the session, which is JSON as it is.

    Each session is checked against its log. Of a damaged one what can be read is written; the rest is named on standard
    error, and the command ends with 1.

    Examples:
      turnkeeper session export calm-otter > wind.json
      turnkeeper session export calm-otter --sanitize --output wind.json
      turnkeeper session export --all --output sessions.jsonl
      turnkeeper session export --all --layout tree --output backup/
    """
    if output == Path("-"):
        output = None
    elif output is not None and str(output).startswith("-"):
        raise UsageError(
            f"--output needs a path, not the option {str(output)!r}; write ./{output} for a file of that name"
        )
    if all and id is not None:
        raise UsageError("export one session or --all, not both")
    if output is None and (all or layout == "tree"):
        raise UsageError(f"{'--all' if all else '--layout tree'} writes more than one file; add --output DIR")
    damaged: DamagedNames = []
    async with options.read() as tk:
        chosen = None if all else [await _chosen(tk, id)]
        if output is None:
            assert chosen is not None
            await _to_stdout(tk.export(chosen[0], sanitise=sanitize, damaged=damaged))
            return note_damaged(damaged)
        target = output.expanduser()
        with progress("Exporting sessions") as moved:
            count = await _to_disk(tk, target, chosen, layout, sanitize=sanitize, moved=moved, damaged=damaged)
    done = {"sessions": count, "output": str(target)}
    answer(options, done, lambda screen: f"Exported {plural(count, 'session')} to {screen.path(str(target))}")
    return note_damaged(damaged)


async def import_files(
    *files: Annotated[Path, Parameter(metavar="PATH", help="Exported files, or folders of them.")],
    options: Options = EVERYWHERE,
) -> int:
    """Bring in sessions from what `session export` or opencode's export wrote: files, .jsonl files, folders, trees.

    Ids are kept. What is already here stays as it is, so importing again changes nothing. With --json the answer is
    a list with a report for each path: {"source", "imported", "unchanged", "grown", "conflicts", "skipped",
    "unreadable"}. Ends with 1 if something could not be read.

    Examples:
      turnkeeper session import wind.json
      turnkeeper session import backup/ sessions.jsonl --json
    """
    if not files:
        raise UsageError("give a file or a folder to import; `turnkeeper import opencode` finds opencode's history")
    for file in files:
        if not file.expanduser().exists():
            raise NotFound(f"there is nothing at {str(file)!r}; give a file or a folder that `session export` wrote")
    reports = []
    async with options.open() as tk:
        with progress("Importing sessions") as moved:
            for file in files:
                reports.append(await tk.import_sessions(file.expanduser(), progress=moved))
    answer(
        options, [_whole(one) for one in reports], lambda screen: "\n\n".join(_report(screen, one) for one in reports)
    )
    return int(any(one.unreadable for one in reports))


async def import_opencode(
    path: Annotated[Path | None, Parameter(metavar="PATH", help="opencode's data directory or database.")] = None,
    /,
    *,
    options: Options = EVERYWHERE,
) -> int:
    """Bring in the history that opencode has kept: its database and its JSON trees, of every age.

    Looks where opencode keeps it, unless PATH says otherwise. Nothing there is changed. Ids are kept, and importing
    again brings only what is new. With --json the answer is a report: {"source", "imported", "unchanged", "grown",
    "conflicts", "skipped", "unreadable"}. Ends with 1 if something could not be read.

    Examples:
      turnkeeper import opencode
      turnkeeper import opencode ~/.local/share/opencode/opencode.db --json
    """
    async with options.open() as tk:
        with progress("Importing sessions") as moved:
            report = await tk.import_opencode(path.expanduser() if path is not None else None, progress=moved)
    answer(options, _whole(report), lambda screen: _report(screen, report))
    return int(bool(report.unreadable))


async def _chosen(tk: "Turnkeeper", given: str | None) -> str:
    if given is not None:
        return await names.session(tk, given)
    page = await tk.list(limit=1)
    if not page.items:
        raise NotFound("there is no session to export; name an archived one by its id")
    [newest] = page.items
    note(f"Exporting {newest.id}  {one_line(newest.title)}")
    return newest.id


async def _to_stdout(pieces: "AsyncIterator[bytes]") -> None:
    async for piece in pieces:
        write(piece)


async def _to_disk(
    tk: "Turnkeeper",
    target: Path,
    chosen: "Sequence[str] | None",
    layout: Literal["json", "tree"],
    *,
    sanitize: bool,
    moved: "Progress",
    damaged: "DamagedNames",
) -> int:
    if chosen is not None and layout == "json" and not target.is_dir():
        await _to_file(tk.export(chosen[0], sanitise=sanitize, damaged=damaged), target)
        return 1
    if target.suffix == ".json" and not target.is_dir():
        raise UsageError(f"{str(target)!r} would be a folder; name a folder, or with --all a file that ends in .jsonl")
    return await tk.export_all(target, chosen, layout=layout, sanitise=sanitize, progress=moved, damaged=damaged)


async def _to_file(pieces: "AsyncIterator[bytes]", target: Path) -> None:
    from turnkeeper.workspace.files import PRIVATE, replacing

    if not target.parent.is_dir():
        raise Invalid(f"{str(target.parent)!r} is not a directory; make it first")
    with replacing(target, mode=PRIVATE) as file:
        async for piece in pieces:
            file.write(piece)


def _whole(report: "ImportReport") -> dict[str, object]:
    """A report with its zeros and empty lists, which values leave out: a program counts on them."""
    from msgspec.structs import asdict

    return {**asdict(report), "imported": asdict(report.imported), "unchanged": asdict(report.unchanged)}


def _report(screen: Screen, report: "ImportReport") -> str:
    rows = [
        ("Source", screen.path(report.source)),
        ("Imported", _counted(report.imported)),
        ("Unchanged", _counted(report.unchanged) if report.unchanged.sessions else ""),
        ("Grown", f"{plural(report.grown, 'session')} got what was new" if report.grown else ""),
        ("Conflicts", screen.paint(f"{len(report.conflicts):,}; ours was kept", "yellow") if report.conflicts else ""),
        ("Skipped", f"{len(report.skipped):,}" if report.skipped else ""),
        ("Unreadable", screen.paint(f"{len(report.unreadable):,}", "red") if report.unreadable else ""),
    ]
    told = [*report.unreadable, *report.conflicts, *report.skipped]
    lines = [_finding(screen, one) for one in told[:FINDINGS_SHOWN]]
    if (more := len(told) - FINDINGS_SHOWN) > 0:
        lines.append(f"  ... and {more:,} more; --json shows all of them")
    return "\n".join([fields(screen, rows), *lines])


def _counted(counts: "Counts") -> str:
    numbers = (plural(counts.sessions, "session"), plural(counts.messages, "message"), plural(counts.parts, "part"))
    return ", ".join(numbers)


def _finding(screen: Screen, finding: "Finding") -> str:
    place = finding.part_id or finding.message_id or finding.session_id or finding.place or ""
    return f"  {screen.paint(harmless(place), 'cyan')}  {one_line(finding.reason)}"

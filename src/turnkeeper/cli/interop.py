"""Commands that export and import sessions."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import App, Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, note, note_damaged, write
from turnkeeper.cli.progress import progress
from turnkeeper.cli.screen import Screen, fields, harmless, one_line, plural
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnkeeper.app import Turnkeeper
    from turnkeeper.interop.report import Counts, Finding, ImportReport, ProgressReport
    from turnkeeper.store.damaged import DamagedNames

FINDINGS_SHOWN = 10


async def export(
    id: Annotated[str | None, Parameter(metavar="ID", help="The session; the newest root session by default.")] = None,
    /,
    *,
    all: Annotated[
        bool, Parameter(name=("--all", "-a"), help="Every session, also archived ones and children.")
    ] = False,
    output: Annotated[
        str | None,
        Parameter(
            name=("--output", "-o"),
            metavar="PATH",
            help="The file or directory; - is standard output. A file is replaced at the end of the export.",
            allow_leading_hyphen=True,
        ),
    ] = None,
    layout: Annotated[
        Literal["json", "tree"], Parameter(metavar="LAYOUT", help="tree writes a directory for each session.")
    ] = "json",
    sanitize: Annotated[bool, Parameter(help="Leave out all text; keep the structure.")] = False,
    options: Options,
) -> int:
    """Export one session, or all, in opencode's format.

    One session is written to standard output, or to the file of --output. With
    --all, --output is a directory or a file that ends in .jsonl; with --layout
    tree it is a directory. With --json and --output the answer is {"sessions":
    COUNT, "output": PATH}; without --output it is the session.

    Files of other sessions in the directory stay, also those of sessions that
    were deleted since. A store without sessions replaces no file.

    Each session is checked against its log. What is damaged is left out and
    named on standard error; then the exit code is 1.

    For example:
      turnkeeper session export calm-otter > wind.json
      turnkeeper session export calm-otter --sanitize --output wind.json
      turnkeeper session export --all --output sessions.jsonl
      turnkeeper session export --all --layout tree --output backup/
    """
    if all and id is not None:
        raise UsageError("export one session or --all, not both")
    target = _target(output)
    if target is None and (all or layout == "tree"):
        raise UsageError(f"{'--all' if all else '--layout tree'} writes more than one file; add --output DIR")
    damaged: DamagedNames = []
    async with options.read() as tk:
        chosen = None if all else [await _chosen(tk, id)]
        if target is None:
            assert chosen is not None
            async for piece in tk.export(chosen[0], sanitise=sanitize, damaged=damaged):
                write(piece)
            return note_damaged(damaged)
        with progress("Exporting sessions") as moved:
            count = await _to_disk(tk, options, target, chosen, layout, sanitize=sanitize, moved=moved, damaged=damaged)
    done = {"sessions": count, "output": str(target)}
    answer(options, done, lambda screen: f"Exported {plural(count, 'session')} to {screen.path(str(target))}")
    return note_damaged(damaged)


async def import_files(
    *files: Annotated[Path, Parameter(metavar="PATH", help="Exported files, or directories of them.")],
    options: Options,
) -> int:
    """Import sessions from files that `session export` or opencode wrote.

    Reads .json and .jsonl files, directories and trees. Ids are kept. Existing
    sessions are not changed, so importing again is safe. With --json the answer
    is a list with a report for each path: {"source", "imported", "unchanged",
    "grown", "conflicts", "skipped", "unreadable"}. The exit code is 1 if
    something could not be read, or was left out because its id is taken.

    For example:
      turnkeeper session import wind.json
      turnkeeper session import backup/ sessions.jsonl --json
    """
    if not files:
        raise UsageError("give a file or a directory to import; `turnkeeper import opencode` finds opencode's history")
    for file in files:
        if not file.expanduser().exists():
            raise NotFound(f"there is nothing at {str(file)!r}; give a file or a directory that `session export` wrote")
        # Pipes of this process, such as /dev/stdin, have a writer.
        if file.expanduser().is_fifo() and not file.is_relative_to("/dev") and not file.is_relative_to("/proc"):
            raise Invalid(f"{str(file)!r} is a named pipe, which may wait for ever; name a file, or /dev/stdin")
    reports = []
    async with options.open() as tk:
        with progress("Importing sessions") as moved:
            for file in files:
                reports.append(await tk.import_sessions(file.expanduser(), progress=moved))
    answer(options, reports, lambda screen: "\n\n".join(_report(screen, one) for one in reports))
    return int(not all(one.is_whole for one in reports))


async def import_opencode(
    path: Annotated[Path | None, Parameter(metavar="PATH", help="opencode's data directory or database.")] = None,
    /,
    *,
    options: Options,
) -> int:
    """Import the history of opencode: its database and JSON trees of any version.

    Reads opencode's data directory, or PATH, and changes nothing there. Ids are
    kept, and importing again adds only what is new. With --json the answer is a
    report: {"source", "imported", "unchanged", "grown", "conflicts", "skipped",
    "unreadable"}. The exit code is 1 if something could not be read, or was left
    out because its id is taken.

    For example:
      turnkeeper import opencode
      turnkeeper import opencode ~/.local/share/opencode/opencode.db --json
    """
    async with options.open() as tk:
        with progress("Importing sessions") as moved:
            report = await tk.import_opencode(path.expanduser() if path is not None else None, progress=moved)
    answer(options, report, lambda screen: _report(screen, report))
    return int(not report.is_whole)


import_app = App(name="import", version_flags=(), default_command=import_files)
import_app.command(import_opencode, name="opencode")


async def _chosen(tk: "Turnkeeper", given: str | None) -> str:
    if given is not None:
        return await names.session(tk, given)
    page = await tk.list(limit=1)
    if not page.items:
        raise NotFound("there is no session to export; name an archived one by its id")
    [newest] = page.items
    note(f"Exporting {newest.id}  {one_line(newest.title)}")
    return newest.id


def _target(output: str | None) -> Path | None:
    """The path of --output; None for standard output. Raises Invalid for a named pipe without a reader."""
    if output is None or output == "-":
        return None
    if not output or output.startswith("-"):
        raise UsageError(f"--output needs a path, not {output!r}; write ./{output or 'NAME'} for a file of that name")
    target = Path(output).expanduser()
    if target.is_fifo():
        try:
            os.close(os.open(target, os.O_WRONLY | os.O_NONBLOCK))
        except OSError as error:
            raise Invalid(
                f"{str(target)!r} is a pipe that no program reads; name a file, or start its reader"
            ) from error
    return target


async def _to_disk(
    tk: "Turnkeeper",
    options: Options,
    target: Path,
    chosen: "Sequence[str] | None",
    layout: Literal["json", "tree"],
    *,
    sanitize: bool,
    moved: "ProgressReport",
    damaged: "DamagedNames",
) -> int:
    if chosen is not None and layout == "json" and not target.is_dir():
        from turnkeeper.interop.export_all import write_file

        if not target.parent.is_dir():
            raise Invalid(f"{str(target.parent)!r} is not a directory; make it first")
        await write_file(tk.export(chosen[0], sanitise=sanitize, damaged=damaged), target)
        return 1
    if target.suffix == ".json" and not target.is_dir():
        raise UsageError(
            f"{str(target)!r} would be a directory; name a directory, or with --all a file that ends in .jsonl"
        )
    if options.is_missing or options.is_emptied:
        raise NotFound(f"there is no store {options.url!r} to export from; `turnkeeper db path` prints the default one")
    return await tk.export_all(target, chosen, layout=layout, sanitise=sanitize, progress=moved, damaged=damaged)


def _report(screen: Screen, report: "ImportReport") -> str:
    rows = [
        ("Source", screen.path(report.source)),
        ("Imported", _counted(report.imported)),
        ("Unchanged", _counted(report.unchanged) if report.unchanged.sessions else ""),
        ("Grown", f"{plural(report.grown, 'session')} got new messages" if report.grown else ""),
        (
            "Conflicts",
            screen.paint(f"{len(report.conflicts):,}; the stored ones were kept", "yellow") if report.conflicts else "",
        ),
        ("Skipped", f"{len(report.skipped):,}" if report.skipped else ""),
        ("Unreadable", screen.paint(f"{len(report.unreadable):,}", "red") if report.unreadable else ""),
    ]
    findings = [*report.unreadable, *report.conflicts, *report.skipped]
    lines = [_finding(screen, one) for one in findings[:FINDINGS_SHOWN]]
    if (more := len(findings) - FINDINGS_SHOWN) > 0:
        lines.append(f"  ... and {more:,} more; --json shows all of them")
    return "\n".join([fields(screen, rows), *lines])


def _counted(counts: "Counts") -> str:
    numbers = (plural(counts.sessions, "session"), plural(counts.messages, "message"), plural(counts.parts, "part"))
    return ", ".join(numbers)


def _finding(screen: Screen, finding: "Finding") -> str:
    place = finding.part_id or finding.message_id or finding.session_id or finding.place or ""
    return f"  {screen.paint(harmless(place), 'cyan')}  {one_line(finding.reason)}"

"""Commands that export and import sessions."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import App, Parameter

from turnkeeper.cli import candidates, names
from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.local_help import LOCAL_HELP
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer, answer_items, note, note_damaged, write
from turnkeeper.cli.progress import progress, waiting
from turnkeeper.cli.screen import Screen, fields, harmless, one_line, plural
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from collections.abc import Sequence

    from turnkeeper.app import Turnkeeper
    from turnkeeper.interop.report import Counts, Finding, ImportReport, LineCounts, ProgressReport
    from turnkeeper.interop.transcripts import ProgramName
    from turnkeeper.store.damaged import DamagedNames

FINDINGS_SHOWN = 10

HistoryPath: TypeAlias = Annotated[
    Path | None, Parameter(metavar="PATH", help="A file or a directory; the program's own by default.")
]
Layout: TypeAlias = Literal["json", "tree"]
ExportPath: TypeAlias = Annotated[
    str | None,
    Parameter(
        name=("--output", "-o"),
        metavar="PATH",
        help="The file or directory; - is standard output. A file is replaced at the end of the export.",
        allow_leading_hyphen=True,
    ),
]
PagePath: TypeAlias = Annotated[
    str | None,
    Parameter(
        metavar="FILE",
        help="Write one page for people, with secrets masked; - is standard output.",
        allow_leading_hyphen=True,
    ),
]
DryRun: TypeAlias = Annotated[bool, Parameter(help="Show what would be imported, and write nothing.")]


async def export(
    id: Annotated[
        str | None,
        Parameter(metavar="ID", help="The session; the newest root session by default.", completer=candidates.sessions),
    ] = None,
    /,
    *,
    all: Annotated[
        bool, Parameter(name=("--all", "-a"), help="Every session, also archived ones and children.")
    ] = False,
    output: ExportPath = None,
    layout: Annotated[Layout, Parameter(metavar="LAYOUT", help="tree writes a directory for each session.")] = "json",
    sanitize: Annotated[bool, Parameter(help="Leave out all text; keep the structure.")] = False,
    redact: Annotated[bool, Parameter(help="Mask keys, passwords, paths and names in the text.")] = False,
    html: PagePath = None,
    raw: Annotated[bool, Parameter(help="With --html: mask nothing.")] = False,
    options: Options,
) -> int:
    """Export one session, or all, in opencode's format, or one as a page of HTML.

    One session is written to standard output, or to the file of --output. With
    --all, --output is a directory or a file that ends in .jsonl; with --layout
    tree it is a directory. With --json and --output the answer is {"sessions":
    COUNT, "output": PATH}; without --output it is the session.

    Files of other sessions in the directory stay, also those of sessions that
    were deleted since. A store without sessions replaces no file.

    --redact masks secrets and leaves the rest; `session redactions` shows what
    it would mask. --sanitize leaves out all text. The page of --html loads
    nothing and runs no script; --raw writes it unmasked.

    Each session is checked against its log. What is damaged is left out and
    named on standard error; then the exit code is 1.

    For example:
      turnkeeper session export calm-otter > wind.json
      turnkeeper session export calm-otter --sanitize --output wind.json
      turnkeeper session export calm-otter --redact --output wind.json
      turnkeeper session export calm-otter --html wind.html
      turnkeeper session export --all --output sessions.jsonl
      turnkeeper session export --all --layout tree --output backup/
    """
    if all and id is not None:
        raise UsageError("export one session or --all, not both")
    if html is not None:
        if all or output is not None or layout == "tree" or sanitize or (redact and raw):
            raise UsageError("--html FILE writes one session; add nothing but its ID, or --raw to mask nothing")
        if options.json and _target(html, "--html") is None:
            raise UsageError("--html - writes a page and nothing else; leave out --json, or name a file")
        return await _export_page(options, id, html, redact=not raw)
    if raw:
        raise UsageError("--raw belongs to --html FILE; an export in JSON masks nothing without --redact")
    target = _target(output)
    if target is None and (all or layout == "tree"):
        raise UsageError(f"{'--all' if all else '--layout tree'} writes more than one file; add --output DIR")
    async with options.read() as tk:
        chosen = None if all else [await _chosen(tk, id)]
        return await _export(tk, options, target, chosen, layout, sanitize=sanitize, redact=redact)


async def _export_page(options: Options, id: str | None, html: str, *, redact: bool) -> int:
    from turnkeeper.interop.export_all import write_file

    target, damaged = _target(html, "--html"), list[str]()
    if target is not None and not target.parent.is_dir():
        raise Invalid(f"{str(target.parent)!r} is not a directory; make it first")
    async with options.read() as tk:
        pieces = tk.export_html(await _chosen(tk, id), redact=redact, damaged=damaged)
        if target is None:
            async for piece in pieces:
                write(piece)
            return note_damaged(damaged)
        with waiting("Exporting the session"):
            await write_file(pieces, target)
    done = {"sessions": 1, "output": str(target), "redacted": redact}
    how = "with secrets masked" if redact else "with nothing masked"
    answer(options, done, lambda screen: f"Wrote {screen.path(str(target))}, {how}")
    return note_damaged(damaged)


async def export_one(tk: "Turnkeeper", options: Options, session_id: str, output: str | None) -> int:
    """Export a session of an open store to a file, or to standard output."""
    return await _export(tk, options, _target(output), [session_id], "json", sanitize=False, redact=False)


async def _export(
    tk: "Turnkeeper",
    options: Options,
    target: Path | None,
    chosen: list[str] | None,
    layout: Layout,
    *,
    sanitize: bool,
    redact: bool,
) -> int:
    damaged: DamagedNames = []
    if target is None:
        assert chosen is not None
        async for piece in tk.export(chosen[0], sanitise=sanitize, redact=redact, damaged=damaged):
            write(piece)
        return note_damaged(damaged)
    with progress("Exporting sessions") as moved:
        count = await _to_disk(
            tk, options, target, chosen, layout, sanitize=sanitize, redact=redact, moved=moved, damaged=damaged
        )
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
    has a report for each path: {"items": [{"source", "imported", "unchanged",
    "grown", "conflicts", "skipped", "unreadable"}]}. The exit code is 1 if
    something could not be read, or was left out because its id is taken.

    For example:
      turnkeeper session import wind.json
      turnkeeper session import backup/ sessions.jsonl --json
    """
    options.require_store("session import")
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
    answer_items(options, reports, lambda screen: "\n\n".join(_report(screen, one) for one in reports))
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


async def import_claude_code(path: HistoryPath = None, /, *, dry_run: DryRun = False, options: Options) -> int:
    """Import the history of Claude Code: sessions, branches, sidechains, tool calls.

    Reads $CLAUDE_CONFIG_DIR/projects, ~/.claude/projects or PATH, and changes
    nothing there. Importing again adds only what is new. With --json the answer
    is a report, as that of `import opencode`, and {"lines": {"read",
    "understood", "foreign", "reported"}}. The exit code is 1 if something could
    not be read.

    For example:
      turnkeeper import claude-code
      turnkeeper import claude-code ~/.claude/projects/-home-ada-tides --dry-run
    """
    return await _import_history("claude-code", path, dry_run, options)


async def import_codex(path: HistoryPath = None, /, *, dry_run: DryRun = False, options: Options) -> int:
    """Import the history of Codex: rollouts of every layout, also archived ones.

    Reads $CODEX_HOME or ~/.codex, or PATH, and changes nothing there. Importing
    again adds only what is new. With --json the answer is a report, as that of
    `import claude-code`. The exit code is 1 if something could not be read.

    For example:
      turnkeeper import codex
      turnkeeper import codex ~/.codex/sessions/2026 --json
    """
    return await _import_history("codex", path, dry_run, options)


async def import_gemini(path: HistoryPath = None, /, *, dry_run: DryRun = False, options: Options) -> int:
    """Import the history of Gemini CLI: its chats of both layouts.

    Reads ~/.gemini/tmp or PATH, and changes nothing there. Importing again adds
    only what is new. With --json the answer is a report, as that of `import
    claude-code`. The exit code is 1 if something could not be read.

    For example:
      turnkeeper import gemini
      turnkeeper import gemini session-2026-11-15.json --dry-run
    """
    return await _import_history("gemini", path, dry_run, options)


async def _import_history(program: "ProgramName", path: Path | None, dry_run: bool, options: Options) -> int:
    place, done = path.expanduser() if path is not None else None, (0, 0)
    async with options.read() if dry_run else options.open() as tk:
        with progress("Reading sessions" if dry_run else "Importing sessions") as moved:

            def move(count: int, total: int, name: str) -> None:
                nonlocal done
                done = (count, total)
                moved(count, total, name)

            from asyncio import CancelledError

            try:
                report = await tk.import_history(program, place, dry_run=dry_run, progress=move)
            except CancelledError:
                note(f"Stopped after {done[0]:,} of {plural(done[1], 'file')}; import again to continue.")
                raise
    answer(options, report, lambda screen: _report(screen, report, "Would import" if dry_run else "Imported"))
    return int(not report.is_whole)


import_app = App(name="import", version_flags=(), default_command=import_files, help_formatter=LOCAL_HELP)
import_app.command(import_opencode, name="opencode")
import_app.command(import_claude_code, name="claude-code")
import_app.command(import_codex, name="codex")
import_app.command(import_gemini, name="gemini")


async def _chosen(tk: "Turnkeeper", given: str | None) -> str:
    if given is not None:
        return await names.session(tk, given)
    page = await tk.list(limit=1)
    if not page.items:
        raise NotFound("there is no session to export; name an archived one by its id")
    [newest] = page.items
    note(f"Exporting {newest.id}  {one_line(newest.title)}")
    return newest.id


def _target(output: str | None, option: str = "--output") -> Path | None:
    """The path of an option; None for standard output."""
    if output is None or output == "-":
        return None
    if not output or output.startswith("-"):
        raise UsageError(f"{option} needs a path, not {output!r}; write ./{output or 'NAME'} for a file of that name")
    return Path(output).expanduser()


async def _to_disk(
    tk: "Turnkeeper",
    options: Options,
    target: Path,
    chosen: "Sequence[str] | None",
    layout: Layout,
    *,
    sanitize: bool,
    redact: bool,
    moved: "ProgressReport",
    damaged: "DamagedNames",
) -> int:
    if chosen is not None and layout == "json" and not target.is_dir():
        from turnkeeper.interop.export_all import write_file

        if not target.parent.is_dir():
            raise Invalid(f"{str(target.parent)!r} is not a directory; make it first")
        await write_file(tk.export(chosen[0], sanitise=sanitize, redact=redact, damaged=damaged), target)
        return 1
    if target.suffix == ".json" and not target.is_dir():
        raise UsageError(
            f"{str(target)!r} would be a directory; name a directory, or with --all a file that ends in .jsonl"
        )
    if chosen is None and (options.is_missing or options.is_emptied):
        raise NotFound(f"there is no store {options.url!r} to export from; `turnkeeper db path` prints the default one")
    return await tk.export_all(
        target, chosen, layout=layout, sanitise=sanitize, redact=redact, progress=moved, damaged=damaged
    )


def _report(screen: Screen, report: "ImportReport", imported: str = "Imported") -> str:
    rows = [
        ("Source", screen.path(report.source)),
        (imported, _counted(report.imported)),
        ("Unchanged", _counted(report.unchanged) if report.unchanged.sessions else ""),
        ("Grown", f"{plural(report.grown, 'session')} got new messages" if report.grown else ""),
        (
            "Conflicts",
            screen.paint(f"{len(report.conflicts):,}; the stored ones were kept", "yellow") if report.conflicts else "",
        ),
        ("Lines", _lines(report.lines) if report.lines is not None else ""),
        ("Skipped", f"{len(report.skipped):,}" if report.skipped else ""),
        ("Unreadable", screen.paint(f"{len(report.unreadable):,}", "red") if report.unreadable else ""),
    ]
    findings = [*report.unreadable, *report.conflicts, *report.skipped]
    lines = [_finding(screen, one) for one in findings[:FINDINGS_SHOWN]]
    if (more := len(findings) - FINDINGS_SHOWN) > 0:
        lines.append(f"  ... and {more:,} more; --json shows all of them")
    return "\n".join([fields(screen, rows), *lines])


def _lines(counts: "LineCounts") -> str:
    kept = f"{counts.understood:,} understood, {counts.foreign:,} kept as they are, {counts.reported:,} not imported"
    return f"{counts.read:,} read: {kept}"


def _counted(counts: "Counts") -> str:
    numbers = (plural(counts.sessions, "session"), plural(counts.messages, "message"), plural(counts.parts, "part"))
    return ", ".join(numbers)


def _finding(screen: Screen, finding: "Finding") -> str:
    place = finding.part_id or finding.message_id or finding.session_id or finding.place or ""
    return f"  {screen.paint(harmless(place), 'cyan')}  {one_line(finding.reason)}"

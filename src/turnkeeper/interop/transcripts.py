"""Histories of other programs that are files of lines. A program is a module and a line in ``PROGRAMS``."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

from anyio import to_thread

from turnkeeper.interop import claude_code, codex, gemini
from turnkeeper.interop.importer import Importer
from turnkeeper.interop.lines import Account, files_below
from turnkeeper.interop.raw import RawObject, RawSession, Unreadable
from turnkeeper.interop.report import NO_LINES, Finding, ImportReport, ProgressReport
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.store.store import Store

ProgramName: TypeAlias = Literal["claude-code", "codex", "gemini"]
"""The names of the programs whose history can be imported."""


class Program(NamedTuple):
    """How the history of a program is found and read."""

    title: str
    places: Callable[[Mapping[str, str]], list[Path]]
    """The directories of the program's history, from the environment variables."""
    is_history: Callable[[Path], bool]
    read: Callable[[Path, Account], list[RawSession]]


PROGRAMS: Final[Mapping[ProgramName, Program]] = {
    "claude-code": Program("Claude Code", claude_code.places, claude_code.is_history, claude_code.read),
    "codex": Program("Codex", codex.places, codex.is_history, codex.read),
    "gemini": Program("Gemini CLI", gemini.places, gemini.is_history, gemini.read),
}


class Transcripts:
    """The files of a program as a source. A name is a file."""

    def __init__(self, program: Program, files: Sequence[Path], problems: Iterable[Finding]) -> None:
        self.name, self._program, self._files = program.title, program, {str(file): file for file in files}
        self.problems = list(problems)
        """The findings about unreadable data so far."""
        self.left_out: list[Finding] = []
        """The findings about skipped data so far."""
        self.lines = NO_LINES

    def names(self) -> Sequence[str]:
        """The files, in order."""
        return list(self._files)

    def read(self, name: str) -> Iterable[RawSession]:
        """The sessions of a file. Raises Unreadable."""
        account = Account(name)
        try:
            found = self._program.read(self._files[name], account)
            if not found:
                account.nothing()
        except OSError as error:
            raise Unreadable(f"cannot be read: {error.strerror}") from error
        finally:
            self.lines = self.lines.plus(account.counts())
            skipped, unreadable = account.findings()
            self.problems += unreadable
            self.left_out += skipped
        return found

    def projects(self) -> Iterable[RawObject]:
        """The files name no projects."""
        return ()

    def skipped(self) -> Iterable[Finding]:
        """What is skipped is known when the files are read."""
        return ()


async def import_transcripts(
    store: Store,
    name: ProgramName,
    path: Path | None,
    environ: Mapping[str, str],
    *,
    progress: ProgressReport | None = None,
    dry: bool = False,
) -> ImportReport:
    """Import the history of a program, from its own place or from a path. The source is not changed."""
    if name not in PROGRAMS:
        raise Invalid(f"{name!r} is no program that can be imported; known are {', '.join(PROGRAMS)}")
    program = PROGRAMS[name]
    given = [path] if path is not None else program.places(environ)
    source = await to_thread.run_sync(_open, program, given, path is None)
    importer = Importer(store, progress, dry=dry)
    await importer.take(source)
    importer.tally.unreadable.extend(source.problems)
    importer.tally.skipped.extend(source.left_out)
    there = [place for place in given if place.exists()] or given
    return importer.tally.report(os.path.commonpath(there)).but(lines=source.lines)


def _open(program: Program, given: list[Path], is_default: bool) -> Transcripts:
    there = [place for place in given if place.exists()]
    if not there:
        looked = " and ".join(map(str, given))
        raise NotFound(f"there is nothing at {looked}; name a file or a directory of {program.title}")
    problems: list[Finding] = []
    files: list[Path] = []
    for place in there:
        if place.is_dir():
            files += [file for file in files_below(place, problems) if program.is_history(file)]
        elif place.is_file():
            files.append(place)
        else:
            raise Invalid(f"{place} is neither a file nor a directory")
    if not files and not problems and not is_default:
        raise Invalid(f"{given[0]} holds no history of {program.title}")
    return Transcripts(program, files, problems)

"""Change: files get new content once the user, shown the diff, allows it, and unless someone else was faster.

One way for all tools that edit: the session has read what it changes, the user is asked once for all files, either
every file is written or none, a formatter may follow, and the model is told of new errors.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from anyio import to_thread

from turnkeeper.core.bounding import bound
from turnkeeper.core.limits import (
    DIAGNOSTICS_MAX,
    DIFF_BYTES_MAX,
    DIFF_LINES_MAX,
    EDITED_BYTES_MAX,
    FORMAT_DIFF_LINES_MAX,
)
from turnkeeper.model.value import JsonObject
from turnkeeper.text.diff import Diff, diff
from turnkeeper.text.file_text import decode
from turnkeeper.tools.reach import patterns, shown
from turnkeeper.tools.tool import ToolContext, ToolFailure
from turnkeeper.workspace import files
from turnkeeper.workspace.after_edit import Diagnostic

SHORT_BYTES: Final = 2048
"""Bytes of texts that are compared on the event loop; longer texts are compared on a thread."""


class FileChange(NamedTuple):
    """The change of one file. ``before`` is None for a new file, ``after`` for one that is deleted."""

    path: Path
    before: bytes | None
    after: bytes | None
    moved_from: Path | None = None
    """The old path of a moved file, which another change deletes."""


class Changed(NamedTuple):
    """The metadata of a change for clients, and notes for the model about it."""

    metadata: JsonObject
    notes: str


class _Shown(NamedTuple):
    """The part of the metadata for clients that is about one file."""

    change: FileChange
    name: str
    patch: str
    additions: int
    deletions: int

    @property
    def kind(self) -> Literal["add", "update", "delete", "move"]:
        if self.change.moved_from is not None:
            return "move"
        return "delete" if self.change.after is None else "add" if self.change.before is None else "update"


def edits_by_patch(model_id: str) -> bool:
    """Whether a model was trained to edit by apply_patch, which it is given instead of edit, multiedit and write."""
    return "gpt-" in model_id and "oss" not in model_id and "gpt-4" not in model_id


async def change(changes: Sequence[FileChange], context: ToolContext, *, is_patch: bool = False) -> Changed:
    """Ask, then write all files or none. The caller holds the files."""
    for one in changes:
        require_read(one.path, one.before, context)
    metadata = await _metadata(changes, context, is_patch)
    await context.ask("edit", _patterns(changes, context), always=["*"], metadata=metadata)
    for one in changes:
        context.writes(one.path)
    await to_thread.run_sync(_write_all, changes)
    after = [await _formatted(one, context) for one in changes]
    final = [one.change for one in after]
    for one in final:
        _remember(one, context)
        if one.after is not None:
            context.discovered(one.path)
    errors = [(one.path, await _diagnosed(one, context)) for one in final]
    if final != list(changes):
        metadata = await _metadata(final, context, is_patch)
    found = {str(path): [error.whole for error in some] for path, some in errors if some}
    notes = [note for formatted in after for note in formatted.notes] + [
        _told(path, some) for path, some in errors if some
    ]
    return Changed({**metadata, "diagnostics": found}, "".join(f"\n\n{note}" for note in notes))


def require_read(path: Path, content: bytes | None, context: ToolContext) -> None:
    """Raise ToolFailure if the file exists and the session has not read its current content."""
    if content is not None and (problem := context.services.reads.why_not(path, content)) is not None:
        raise ToolFailure(problem)


def existing(path: Path) -> bytes | None:
    """The current content of a file; None if there is no file."""
    return files.read_bytes(path, EDITED_BYTES_MAX) if os.path.exists(path) else None


def _patterns(changes: Sequence[FileChange], context: ToolContext) -> list[str]:
    return list(dict.fromkeys(pattern for one in changes for pattern in patterns(one.path, context)))


def _remember(change: FileChange, context: ToolContext) -> None:
    if change.after is None:
        context.services.reads.forget(change.path)
    else:
        context.services.reads.note(change.path, change.after)


# --- Writing -----------------------------------------------------------------------------------------------------


def _write_all(changes: Sequence[FileChange]) -> None:
    # An ask may have taken hours: what the user allowed was a change to the files as they were then.
    for one in changes:
        if existing(one.path) != one.before:
            raise ToolFailure(
                f"{str(one.path)!r} was changed by someone else in the meantime. Read it before you change it."
            )
    done: list[FileChange] = []
    try:
        # Deletions come last: what can fail for want of room or rights has then been done.
        for one in sorted(changes, key=lambda one: one.after is None):
            _put(one.path, one.after)
            done.append(one)
    except BaseException:
        for one in reversed(done):
            _put(one.path, one.before)
        raise


def _put(path: Path, content: bytes | None) -> None:
    if content is None:
        os.unlink(path)
    else:
        files.write_whole(path, content)


# --- After the edit ----------------------------------------------------------------------------------------------


class _Formatted(NamedTuple):
    """A change as it is on the disk after the formatters, and notes about their changes."""

    change: FileChange
    notes: tuple[str, ...] = ()


async def _formatted(change: FileChange, context: ToolContext) -> _Formatted:
    if change.after is None:
        return _Formatted(change)
    outcome = await context.services.format(change.path, context.confine)
    notes = tuple(f"The formatter {failure}" for failure in outcome.failures)
    if not outcome.ran:
        return _Formatted(change, notes)
    try:
        now = await to_thread.run_sync(existing, change.path)
    except (OSError, ValueError):
        now = None
    if now is None:
        return _Formatted(
            change, (f"{' and '.join(outcome.ran)} ran after the edit, and now the file is gone.", *notes)
        )
    if now == change.after:
        return _Formatted(change, notes)
    difference = await to_thread.run_sync(_difference, shown(change.path, context), change.after, now)
    cut = bound(difference.patch, lines_max=FORMAT_DIFF_LINES_MAX, bytes_max=DIFF_BYTES_MAX).text
    told = f"{' and '.join(outcome.ran)} formatted the file after the edit:\n{cut.rstrip()}"
    return _Formatted(change._replace(after=now), (told, *notes))


async def _diagnosed(change: FileChange, context: ToolContext) -> tuple[Diagnostic, ...]:
    if change.after is None:
        return ()
    before = None if change.before is None else _text(change.before)
    found = await context.services.diagnose(change.path, before, _text(change.after), context.confine)
    return found[:DIAGNOSTICS_MAX]


def _told(path: Path, errors: Sequence[Diagnostic]) -> str:
    lines = [f"ERROR [{one.line}:{one.character}] {one.message}" for one in errors]
    listed = "\n".join([f'<diagnostics file="{path}">', *lines, "</diagnostics>"])
    return f"The change brought these errors, says the language server. Please fix them:\n{listed}"


# --- What clients are shown --------------------------------------------------------------------------------------


async def _metadata(changes: Sequence[FileChange], context: ToolContext, is_patch: bool) -> JsonObject:
    changes = _with_moves(changes)
    size = sum(len(one.before or b"") + len(one.after or b"") for one in changes)
    compared = [(one, shown(one.path, context)) for one in changes]
    some = _all_shown(compared) if size <= SHORT_BYTES else await to_thread.run_sync(_all_shown, compared)
    if not is_patch:
        [one] = some
        counted = {"additions": one.additions, "deletions": one.deletions}
        filediff = {"file": one.name, "patch": one.patch, **counted}
        return {"filepath": str(one.change.path), "diff": one.patch, "filediff": filediff}
    whole = bound("".join(one.patch for one in some), lines_max=DIFF_LINES_MAX, bytes_max=DIFF_BYTES_MAX).text
    listed = [_listed(one, context) for one in some]
    return {"filepath": ", ".join(one.name for one in some), "diff": whole, "files": listed}


def _with_moves(changes: Sequence[FileChange]) -> list[FileChange]:
    """The changes with each move as one change of the content at the old path, instead of a deletion and a new file."""
    moved = {one.moved_from for one in changes}
    gone = {one.path: one.before for one in changes if one.path in moved and one.after is None}
    return [
        one._replace(before=gone[one.moved_from]) if one.moved_from in gone and one.before is None else one
        for one in changes
        if one.path not in gone
    ]


def _listed(one: _Shown, context: ToolContext) -> JsonObject:
    moved_from = one.change.moved_from
    source = one.change.path if moved_from is None else moved_from
    moved = {} if moved_from is None else {"movePath": str(one.change.path)}
    counted = {"additions": one.additions, "deletions": one.deletions}
    named = {"filePath": str(source), "relativePath": shown(source, context), "type": one.kind}
    return {**named, "patch": one.patch, **counted, **moved}


def _all_shown(compared: Sequence[tuple[FileChange, str]]) -> list[_Shown]:
    found = []
    for one, name in compared:
        difference = _difference(name, one.before, one.after)
        patch = bound(difference.patch, lines_max=DIFF_LINES_MAX, bytes_max=DIFF_BYTES_MAX).text
        found.append(_Shown(one, name, patch, difference.additions, difference.deletions))
    return found


def _difference(name: str, before: bytes | None, after: bytes | None) -> Diff:
    return diff(name, _text(before or b""), _text(after or b""))


def _text(content: bytes) -> str:
    """The content as text; empty if it is binary."""
    if b"\0" in content and not content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return ""
    try:
        return files.printable(decode(content).text)
    except ValueError:
        return ""

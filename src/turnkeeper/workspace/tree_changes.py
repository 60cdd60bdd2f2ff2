"""Tree changes: the differences of two snapshots as they are shown to people, with renames."""

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.core.limits import DIFF_BYTES_MAX, SNAPSHOT_DIFFED_BYTES_MAX
from turnkeeper.model.file_change import FileChange
from turnkeeper.text.diff import CONTEXT_LINES
from turnkeeper.workspace.shadow_repository import ShadowRepository
from turnkeeper.workspace.tree_listing import trees

Status: TypeAlias = Literal["added", "deleted", "modified", "renamed"]

_STATUS: Final[dict[bytes, Status]] = {b"A": "added", b"D": "deleted", b"R": "renamed"}
_ARGUMENTS_MAX: Final = 500
_SECTION: Final = re.compile(rb"^(?=diff --git )", re.MULTILINE)


class _RawChange(NamedTuple):
    old: bytes | None
    name: bytes
    status: Status
    sections: int
    """The number of diffs that git prints: two if a file became a link or the reverse."""


async def changes(
    repository: ShadowRepository,
    before: str,
    after: str,
    names: Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> tuple[FileChange, ...]:
    """The changes between two trees, of all files or of these, as git's patches with a few context lines.

    ``exact`` keeps every byte of a patch, so that git can apply it: it is complete, however long, and bytes that are
    not UTF-8 are surrogates.
    """
    if names is not None and not names:
        return ()
    chosen = ["--", *names] if names is not None and len(names) <= _ARGUMENTS_MAX else []
    output = await repository.ask(
        *("-c", f"core.bigFileThreshold={SNAPSHOT_DIFFED_BYTES_MAX}", "-c", "core.quotePath=false"),
        *("diff-tree", "-r", "-z", "-M", "--raw", "--numstat", "-p", f"-U{CONTEXT_LINES}"),
        # With the contents of binary files, so that git can apply the text.
        *("--no-ext-diff", "--no-textconv", "--no-color", "--binary"),
        *trees(before, after),
        *chosen,
    )
    wanted = None if names is None else set(names)
    return tuple(one for one in _read(output, exact) if wanted is None or one.file in wanted)


def _read(output: bytes, exact: bool) -> tuple[FileChange, ...]:
    """The changes of ``diff-tree -r -z -M --raw --numstat -p``. Names that are not UTF-8 are left out."""
    if not output:
        return ()
    fields, files = _Fields(output), list[_RawChange]()
    while fields.begins_with(b":"):
        status = fields.next().rsplit(b" ", 1)[1][:1]
        old = fields.next() if status == b"R" else None
        files.append(_RawChange(old, fields.next(), _STATUS.get(status, "modified"), 2 if status == b"T" else 1))
    counts = [_counts(fields) for _ in files]
    fields.next()  # Git prints an empty one before the patches.
    sections = iter(_SECTION.split(fields.rest())[1:])
    found: list[FileChange] = []
    for file, (added, deleted) in zip(files, counts, strict=True):
        patch = b"".join([next(sections) for _ in range(file.sections)])
        try:
            name, old_name = file.name.decode("utf-8"), file.old.decode("utf-8") if file.old is not None else None
        except UnicodeDecodeError:
            continue
        found.append(
            FileChange(
                file=name,
                renamed_from=old_name,
                status=file.status,
                binary=added == b"-",
                additions=0 if added == b"-" else int(added),
                deletions=0 if deleted == b"-" else int(deleted),
                patch=_text(patch, exact),
            )
        )
    return tuple(found)


def _text(patch: bytes, exact: bool) -> str:
    if exact:
        return patch.decode("utf-8", "surrogateescape")
    return patch.decode("utf-8", "replace") if len(patch) <= DIFF_BYTES_MAX else ""


class _Fields:
    """Reads fields that end with a NUL."""

    def __init__(self, output: bytes) -> None:
        self._output, self._at = output, 0

    def begins_with(self, start: bytes) -> bool:
        return self._output.startswith(start, self._at)

    def next(self) -> bytes:
        start, self._at = self._at, self._output.index(b"\0", self._at) + 1
        return self._output[start : self._at - 1]

    def rest(self) -> bytes:
        return self._output[self._at :]


def _counts(fields: _Fields) -> tuple[bytes, bytes]:
    """The numbers of added and deleted lines of one file. A rename has its two names in separate fields."""
    added, deleted, name = fields.next().split(b"\t", 2)
    if not name:
        fields.next()
        fields.next()
    return added, deleted

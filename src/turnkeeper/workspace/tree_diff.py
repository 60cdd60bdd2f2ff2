"""Tree diff: reads what git prints about the differences of two trees."""

import re
from collections.abc import Callable, Iterator
from typing import Final, Literal, NamedTuple, TypeAlias

from turnkeeper.model.session import FileDiff

Status: TypeAlias = Literal["added", "deleted", "modified"]

_STATUS: Final[dict[bytes, Status]] = {b"A": "added", b"D": "deleted"}
_RULE: Final = "=" * 67
_HUNK: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_SECTION: Final = re.compile(rb"^(?=diff --git )", re.MULTILINE)


class _ChangedFile(NamedTuple):
    """A file that differs between two trees."""

    name: bytes
    status: Status
    sections: int
    """The number of diffs that git prints: two if a file became a link or the reverse."""


class TreeChange(NamedTuple):
    """A file that differs between two trees. The blob is None where there is no file."""

    name: bytes
    before: bytes | None
    after: bytes | None


def changes(raw: bytes) -> list[TreeChange]:
    """The changes of ``diff-tree -r -z --raw --no-abbrev``."""
    fields = raw.split(b"\0")
    found = []
    for facts, name in zip(fields[::2], fields[1::2], strict=False):
        _, _, before, after, status = facts.split(b" ")
        found.append(TreeChange(name, None if status == b"A" else before, None if status == b"D" else after))
    return found


def names(raw: bytes) -> tuple[str, ...]:
    """The sorted names of ``diff-tree -r -z --raw``. Names that are not UTF-8 are left out."""
    found = (_text(name) for name in raw.split(b"\0")[1::2])
    return tuple(sorted(name for name in found if name is not None))


def diffs(output: bytes, *, as_git: bool = False) -> dict[str, FileDiff]:
    """The differences of ``diff-tree -r -z --raw --numstat -p`` by name. Names that are not UTF-8 are left out.

    ``as_git`` keeps the patches as git prints them.
    """
    if not output:
        return {}
    at = 0

    def field() -> bytes:
        nonlocal at
        start, at = at, output.index(b"\0", at) + 1
        return output[start : at - 1]

    files = list(_changed_files(field, lambda: output.startswith(b":", at)))
    counts = [field().split(b"\t", 2)[:2] for _ in files]
    field()  # Git prints an empty one before the patches.
    sections = iter(_SECTION.split(output[at:])[1:])
    result: dict[str, FileDiff] = {}
    for file, (added, deleted) in zip(files, counts, strict=True):
        own = [next(sections) for _ in range(file.sections)]
        is_binary = added == b"-"
        if (name := _text(file.name)) is not None:
            result[name] = FileDiff(
                file=name,
                patch=_as_git(own) if as_git else "" if is_binary else _patch(name, b"".join(map(_hunks, own))),
                additions=0 if is_binary else int(added),
                deletions=0 if is_binary else int(deleted),
                status=file.status,
            )
    return result


def _changed_files(field: Callable[[], bytes], is_another: Callable[[], bool]) -> Iterator[_ChangedFile]:
    while is_another():
        status = field()[-1:]
        yield _ChangedFile(field(), _STATUS.get(status, "modified"), 2 if status == b"T" else 1)


def _text(name: bytes) -> str | None:
    try:
        return name.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _as_git(sections: list[bytes]) -> str:
    return b"".join(sections).decode("utf-8", "replace")


def _patch(name: str, hunks: bytes) -> str:
    return f"Index: {name}\n{_RULE}\n--- {name}\t\n+++ {name}\t\n{hunks.decode('utf-8', 'replace')}"


def _hunks(section: bytes) -> bytes:
    """The hunks of a difference, without git's headers. Both counts of a hunk are written out."""
    first = section.find(b"\n@@ ")
    if first < 0:
        return b""
    result: list[bytes] = []
    for line in _lines(section[first + 1 :]):
        match = _HUNK.match(line)
        if match is None:
            result.append(line)
        else:
            old, old_count, new, new_count = match.groups(b"1")
            result.append(b"@@ -%s,%s +%s,%s @@\n" % (old, old_count, new, new_count))
    return b"".join(result)


def _lines(text: bytes) -> list[bytes]:
    """Lines with their line feeds; ``splitlines`` would also split at carriage returns."""
    return [line + b"\n" for line in text.split(b"\n")[:-1]]

"""Diff: the line changes between two texts as a unified diff."""

from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Final, NamedTuple

from turnkeeper.model.value import Value

CONTEXT_LINES: Final = 3
WORK_MAX: Final = 4_000_000
"""Maximum product of both line counts; larger differences become one block without a comparison."""


class Diff(Value):
    """A unified diff of one file, with the numbers of added and deleted lines."""

    patch: str
    additions: int
    deletions: int


class _Change(NamedTuple):
    """Lines ``start:end`` of the old text become ``new_start:new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def diff(name: str, before: str, after: str) -> Diff:
    """The diff between two versions of a file; an empty patch if they are equal."""
    old, new = _lines(before), _lines(after)
    changes = _changes(old, new)
    hunks = [_hunk(group, old, new) for group in _grouped(changes)]
    return Diff(
        patch="".join([f"--- {name}\n+++ {name}\n", *hunks]) if hunks else "",
        additions=sum(change.new_end - change.new_start for change in changes),
        deletions=sum(change.end - change.start for change in changes),
    )


def _lines(text: str) -> list[str]:
    """Lines with their line feeds. ``splitlines`` also splits at characters that ``patch`` does not split at."""
    *lines, last = text.split("\n")
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _changes(old: Sequence[str], new: Sequence[str]) -> list[_Change]:
    shorter = min(len(old), len(new))
    head = next((place for place in range(shorter) if old[place] != new[place]), shorter)
    rest = shorter - head
    tail = next((place for place in range(rest) if old[-1 - place] != new[-1 - place]), rest)
    old_end, new_end = len(old) - tail, len(new) - tail
    if head == old_end and head == new_end:
        return []
    if (old_end - head) * (new_end - head) > WORK_MAX:
        return [_Change(head, old_end, head, new_end)]
    matcher = SequenceMatcher(None, old[head:old_end], new[head:new_end])
    return [
        _Change(start + head, end + head, new_start + head, new_end + head)
        for tag, start, end, new_start, new_end in matcher.get_opcodes()
        if tag != "equal"
    ]


def _grouped(changes: list[_Change]) -> list[list[_Change]]:
    """Changes in groups whose context lines overlap or touch."""
    groups: list[list[_Change]] = []
    for change in changes:
        if groups and change.start - groups[-1][-1].end <= 2 * CONTEXT_LINES:
            groups[-1].append(change)
        else:
            groups.append([change])
    return groups


def _hunk(group: list[_Change], old: Sequence[str], new: Sequence[str]) -> str:
    lead = min(CONTEXT_LINES, group[0].start)
    first, last = group[0].start - lead, min(group[-1].end + CONTEXT_LINES, len(old))
    new_first, new_last = group[0].new_start - lead, group[-1].new_end + last - group[-1].end
    lines: list[str] = []
    at = first
    for change in group:
        lines += [" " + line for line in old[at : change.start]]
        lines += ["-" + line for line in old[change.start : change.end]]
        lines += ["+" + line for line in new[change.new_start : change.new_end]]
        at = change.end
    lines += [" " + line for line in old[at:last]]
    body = "".join(line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines)
    return f"@@ -{_range(first, last)} +{_range(new_first, new_last)} @@\n{body}"


def _range(first: int, last: int) -> str:
    """A range of lines as ``start,count``; an empty range starts at the line before it."""
    count = last - first
    return f"{first + 1 if count else first},{count}"

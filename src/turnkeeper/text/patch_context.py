"""Patch context: a unified diff with fewer unchanged lines around its changes."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

_HUNK: Final = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class _Line(NamedTuple):
    text: str
    """The line with its sign, and with the mark of a missing line feed, if there is one."""
    old: int
    new: int
    """The numbers of the next line of each version."""

    @property
    def is_change(self) -> bool:
        return self.text[:1] in ("+", "-")


def narrowed(patch: str, context: int) -> str:
    """The hunks of a unified diff of one file, with this many unchanged lines around changes; without its head."""
    return "".join(hunk for lines in _hunks(patch) for hunk in _split(lines, context))


def _hunks(patch: str) -> Iterator[list[_Line]]:
    lines: list[_Line] | None = None
    old = new = 0
    for text in patch.split("\n"):
        if match := _HUNK.match(text):
            if lines:
                yield lines
            lines = []
            old, new = (int(match[1]) + (match[2] == "0"), int(match[3]) + (match[4] == "0"))
        elif lines is not None and text:
            if text[0] == "\\" and lines:
                lines[-1] = lines[-1]._replace(text=f"{lines[-1].text}{text}\n")
                continue
            lines.append(_Line(f"{text}\n", old, new))
            old, new = old + (text[0] != "+"), new + (text[0] != "-")
    if lines:
        yield lines


def _split(lines: list[_Line], context: int) -> Iterator[str]:
    """The hunks into which one hunk is split when context lines are removed."""
    kept = {
        place + offset for place, line in enumerate(lines) if line.is_change for offset in range(-context, context + 1)
    }
    group: list[_Line] = []
    for place, line in enumerate(lines):
        if place in kept:
            group.append(line)
        elif group:
            yield _hunk(group)
            group = []
    if group:
        yield _hunk(group)


def _hunk(lines: list[_Line]) -> str:
    old = sum(line.text[0] != "+" for line in lines)
    new = sum(line.text[0] != "-" for line in lines)
    first = lines[0]
    body = "".join(line.text for line in lines)
    return f"@@ -{first.old - (not old)},{old} +{first.new - (not new)},{new} @@\n{body}"

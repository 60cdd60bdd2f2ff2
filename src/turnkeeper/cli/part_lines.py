"""Parts of an answer as lines of text: tool calls and their results, diffs, sources, files."""

import json
import re
from collections.abc import Iterator, Mapping

from turnkeeper.cli.screen import TODO_MARKS, Screen, harmless, one_line, plural, size
from turnkeeper.core.lowering import partial_output
from turnkeeper.core.sources import sources
from turnkeeper.model.parts import FilePart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolRunning
from turnkeeper.model.value import JsonObject

OUTPUT_LINES = 6
PATCH_LINES = 16
WHOLE_LINES = 2000
"""How many lines of a call are displayed if all of it is wanted."""
WIDTH = 100

ICONS: Mapping[str, str] = {
    "read": "→",
    "write": "←",
    "edit": "±",
    "multiedit": "±",
    "apply_patch": "±",
    "list": "*",
    "webfetch": "@",
    "bash": "$",
    "glob": "*",
    "grep": "/",
    "jobs": "$",
    "recall": "↶",
    "todoread": "☰",
    "todowrite": "☰",
}
OTHER_ICON = "•"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_FILE = "▸"


def call_lines(screen: Screen, part: ToolPart, *, whole: bool = False) -> Iterator[str]:
    """A call and its result: the end of a long one, or the ``whole`` with what it was given."""
    match part.state:
        case ToolCompleted() as state:
            failed = state.metadata.get("exit") not in (None, 0)
            about = ", ".join(one for one in (_result(part.tool, state), took(state.time.start, state.time.end)) if one)
            yield head(screen, part, about, "yellow" if failed else "green")
            yield from _given(part) if whole else ()
            yield from _details(screen, part.tool, state, whole=whole)
        case ToolError(metadata=metadata, error=error, time=time):
            stopped = (metadata or {}).get("interrupted")
            about = "stopped" if stopped else "refused" if (metadata or {}).get("rejected") else "failed"
            yield head(screen, part, f"{about}, {took(time.start, time.end)}", "yellow" if stopped else "red")
            yield from _given(part) if whole else ()
            lines_max = WHOLE_LINES if whole else OUTPUT_LINES
            if stopped:
                yield from _quoted(screen, partial_output(metadata), "dim", lines_max=lines_max)
            else:
                yield from _quoted(screen, error, "red", lines_max=lines_max)
        case _:
            yield head(screen, part, "", "yellow")
            yield from _given(part) if whole else ()


def _given(part: ToolPart) -> Iterator[str]:
    """The input of a call, except for the part that its first line shows."""
    values = part.state.input
    if len(values) > 1 or part.tool == "bash":
        for name, value in values.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
            first, *others = harmless(text).splitlines() or [""]
            yield f"    {one_line(name)}: {first}"
            yield from (f"      {line}" for line in others[:WHOLE_LINES])


def head(screen: Screen, part: ToolPart, about: str, style: str) -> str:
    """The first line of a call."""
    icon = ICONS.get(part.tool, OTHER_ICON)
    name = "" if part.tool == "bash" else f"{screen.paint(harmless(part.tool), 'cyan')} "
    room = max(20, min(screen.width or WIDTH, WIDTH) - len(about) - (len(part.tool) + 1 if name else 0) - 6)
    title = screen.fit(one_line(subject(part)), room)
    return f"{screen.paint(icon, 'bold', style)} {name}{title}  {screen.paint(about, 'dim')}".rstrip()


def subject(part: ToolPart) -> str:
    """The title of a call, or its most important argument."""
    state = part.state
    given = state.input
    title = given_title(part)
    match part.tool:
        case "bash":
            return str(given.get("command", "")) or title or ""
        case "glob" | "grep":
            where = f" in {given['path']}" if given.get("path") else ""
            return f"{given.get('pattern', '')}{where}"
        case "todowrite" | "todoread":
            return title or "the task list"
        case "read" | "write" | "edit" | "multiedit":
            return title or str(given.get("filePath") or given.get("path") or "")
    return title or arguments(given)


def given_title(part: ToolPart) -> str | None:
    """The title that a tool gave to a call, if it says more than the name of the tool."""
    title = part.state.title if isinstance(part.state, ToolCompleted | ToolRunning) else None
    return title if title != part.tool else None


def arguments(given: JsonObject) -> str:
    """The first question that a call asks, its only argument, or all of them as JSON."""
    match given:
        case {"questions": [{"question": str(first)}, *_]}:
            return first
    if len(given) == 1 and isinstance(only := next(iter(given.values())), str):
        return only
    if len(given) == 1:
        return json.dumps(only, ensure_ascii=False, default=str)
    return json.dumps(given, ensure_ascii=False, default=str) if given else ""


def took(start: int, end: int) -> str:
    """A duration, with its unit."""
    seconds = max(0, end - start) / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def _result(tool: str, state: ToolCompleted) -> str:
    metadata = state.metadata
    match tool, metadata:
        case (("edit" | "write" | "multiedit" | "apply_patch"), {"diff": str(patch)}):
            added, removed = counts(patch)
            return f"+{added} -{removed}"
        case "bash", {"exit": int(code)} if code:
            return f"exit {code}"
        case (("glob" | "list"), {"count": int(count)}):
            return plural(count, "file")
        case "grep", {"matches": int(count)}:
            return plural(count, "match", "matches")
        case "read", _:
            return "attached" if state.attachments else ""
    return ""


def _details(screen: Screen, tool: str, state: ToolCompleted, *, whole: bool) -> Iterator[str]:
    match tool, state.metadata:
        case (("edit" | "write" | "multiedit" | "apply_patch"), {"diff": str(patch)}):
            yield from patch_lines(screen, patch, lines_max=WHOLE_LINES if whole else PATCH_LINES)
        case (("todowrite" | "todoread"), {"todos": list() | tuple() as todos}):
            for one in todos:
                if isinstance(one, dict):
                    mark = TODO_MARKS.get(str(one.get("status")), "○")
                    yield f"    {mark} {one_line(str(one.get('content', '')))}"
        case (("read" | "glob" | "grep" | "list"), _) if not whole:
            return  # The output is for the model.
        case _:
            yield from _quoted(screen, state.output, "dim", lines_max=WHOLE_LINES if whole else OUTPUT_LINES)


def _quoted(screen: Screen, text: str, *styles: str, lines_max: int = OUTPUT_LINES) -> Iterator[str]:
    """The last lines of an output, where errors and totals are."""
    lines = [line for line in harmless(text.strip()).splitlines() if line.strip()]
    room = min(screen.width or WIDTH, WIDTH) - 6
    if (more := len(lines) - lines_max) > 0:
        yield f"    {screen.paint(f'│ … {more} more above', 'dim')}"
    for line in lines[-lines_max:]:
        yield f"    {screen.paint(f'│ {screen.fit(line, room)}', *styles)}"


def patch_lines(screen: Screen, patch: str, *, lines_max: int = PATCH_LINES) -> Iterator[str]:
    """A unified diff with line numbers and colours, cut after ``lines_max`` lines."""
    shown = list(_numbered(patch))
    if sum(mark == _FILE for _, mark, _ in shown) == 1:  # The title has its name.
        shown = [line for line in shown if line[1] != _FILE]
    digits = max((len(number) for number, _, _ in shown), default=1)
    room = min(screen.width or WIDTH, WIDTH) - digits - 8
    for number, mark, text in shown[:lines_max]:
        style = {"+": ("green",), "-": ("red",)}.get(mark, ("dim",))
        line = f"{mark} {screen.fit(harmless(text), room)}".rstrip()
        yield f"    {screen.paint(number.rjust(digits), 'dim')} {screen.paint(line, *style)}"
    if (more := len(shown) - lines_max) > 0:
        yield f"    {screen.paint(f'… {more} more', 'dim')}"


def counts(patch: str) -> tuple[int, int]:
    """How many lines a unified diff adds and deletes."""
    marks = [mark for _, mark, _ in _numbered(patch)]
    return marks.count("+"), marks.count("-")


def _numbered(patch: str) -> Iterator[tuple[str, str, str]]:
    """Number, mark and text of each line of a patch, with a line of dots between the hunks of a file.

    Before each file is a line with its name and the mark ``_FILE``. A hunk says how long it is, so a deleted line that
    begins with ``-- `` is not taken for the name of a file.
    """
    old = new = old_left = new_left = 0
    has_hunk = False
    for line in patch.split("\n"):
        if old_left <= 0 and new_left <= 0:
            if found := _HUNK.match(line):
                if has_hunk:
                    yield "", "⋮", ""
                has_hunk = True
                old, new = int(found[1]), int(found[3])
                old_left, new_left = int(found[2] or 1), int(found[4] or 1)
            elif line.startswith("+++ "):
                has_hunk = False
                yield "", _FILE, line[4:]
        elif line.startswith("+"):
            yield str(new), "+", line[1:]
            new, new_left = new + 1, new_left - 1
        elif line.startswith("-"):
            yield str(old), "-", line[1:]
            old, old_left = old + 1, old_left - 1
        elif line.startswith(" "):
            yield str(new), " ", line[1:]
            old, new, old_left, new_left = old + 1, new + 1, old_left - 1, new_left - 1


def source_lines(part: TextPart) -> list[str]:
    """The numbered sources of a text, one per line."""
    found = enumerate(sources(part.metadata), 1)
    return [f"[{number}] {one_line(' '.join(filter(None, (source.title, source.url))))}" for number, source in found]


def file_line(part: FilePart) -> str:
    """A file: its name or URL, its media type, and its size if it is known."""
    if not part.url.startswith("data:"):
        return f"◆ {one_line(part.filename or part.url)} ({one_line(part.mime)})"
    amount = size(len(part.url.partition(",")[2]) * 3 // 4)
    return f"◆ {one_line(part.filename or 'a file')} ({one_line(part.mime)}, {amount})"

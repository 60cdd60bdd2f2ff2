"""Tool calls as lines: what is done, what came of it, and the first lines of that."""

import json
from collections.abc import Iterator, Mapping

from turnkeeper.cli.patch import counts, patch_lines
from turnkeeper.cli.screen import Screen, harmless, one_line, plural, shortened
from turnkeeper.core.lowering import partial_output
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.value import JsonObject

OUTPUT_LINES = 6
WIDTH = 100

ICONS: Mapping[str, str] = {
    "read": "→",
    "write": "←",
    "edit": "±",
    "bash": "$",
    "glob": "*",
    "grep": "/",
    "recall": "↶",
    "todowrite": "☰",
}
OTHER_ICON = "•"
_TODO_MARKS = {"completed": "✓", "in_progress": "●", "cancelled": "✗"}


def call_lines(screen: Screen, part: ToolPart) -> Iterator[str]:
    """A settled call."""
    match part.state:
        case ToolCompleted() as state:
            failed = state.metadata.get("exit") not in (None, 0)
            about = ", ".join(one for one in (_result(part.tool, state), took(state.time.start, state.time.end)) if one)
            yield head(screen, part, about, "yellow" if failed else "green")
            yield from _details(screen, part.tool, state)
        case ToolError(metadata=metadata, error=error, time=time):
            stopped = (metadata or {}).get("interrupted")
            about = "stopped" if stopped else "refused" if (metadata or {}).get("rejected") else "failed"
            yield head(screen, part, f"{about}, {took(time.start, time.end)}", "yellow" if stopped else "red")
            if stopped:
                yield from _quoted(screen, partial_output(metadata), "dim")
            else:
                yield from _quoted(screen, error, "red")
        case _:
            yield head(screen, part, "", "yellow")


def head(screen: Screen, part: ToolPart, about: str, style: str) -> str:
    """The line that names a call."""
    icon = ICONS.get(part.tool, OTHER_ICON)
    name = "" if part.tool == "bash" else f"{screen.paint(harmless(part.tool), 'cyan')} "
    room = max(20, min(screen.width or WIDTH, WIDTH) - len(about) - (len(part.tool) + 1 if name else 0) - 6)
    title = shortened(one_line(subject(part)), room)
    return f"{screen.paint(icon, 'bold', style)} {name}{title}  {screen.paint(about, 'dim')}".rstrip()


def subject(part: ToolPart) -> str:
    """What a call is about: its title, or the argument that says most."""
    state = part.state
    given = state.input
    title = state.title if isinstance(state, ToolCompleted | ToolRunning) else None
    match part.tool:
        case "bash":
            return str(given.get("command", "")) or title or ""
        case "glob" | "grep":
            where = f" in {given['path']}" if given.get("path") else ""
            return f"{given.get('pattern', '')}{where}"
        case "todowrite":
            return title or "the task list"
        case "read" | "write" | "edit":
            return title or str(given.get("filePath") or given.get("path") or "")
    return title or arguments(given)


def arguments(given: JsonObject) -> str:
    """The input of a call in short: its only argument, or all of them."""
    if len(given) == 1:
        return str(next(iter(given.values())))
    return json.dumps(given, ensure_ascii=False, default=str) if given else ""


def took(start: int, end: int) -> str:
    """How long something took."""
    seconds = max(0, end - start) / 1000
    return f"{seconds:.1f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


def is_waiting(part: ToolPart) -> bool:
    """Whether the model still writes the call."""
    return isinstance(part.state, ToolPending)


def _result(tool: str, state: ToolCompleted) -> str:
    metadata = state.metadata
    match tool, metadata:
        case (("edit" | "write"), {"diff": str(patch)}):
            added, removed = counts(patch)
            return f"+{added} -{removed}"
        case "bash", {"exit": int(code)} if code:
            return f"exit {code}"
        case "glob", {"count": int(count)}:
            return plural(count, "file")
        case "grep", {"matches": int(count)}:
            return plural(count, "match", "matches")
        case "read", _:
            return "attached" if state.attachments else ""
    return ""


def _details(screen: Screen, tool: str, state: ToolCompleted) -> Iterator[str]:
    match tool, state.metadata:
        case (("edit" | "write"), {"diff": str(patch)}):
            yield from patch_lines(screen, patch)
        case "todowrite", {"todos": list() | tuple() as todos}:
            for one in todos:
                if isinstance(one, dict):
                    mark = _TODO_MARKS.get(str(one.get("status")), "○")
                    yield f"    {mark} {one_line(str(one.get('content', '')))}"
        case (("read" | "glob" | "grep"), _):
            return  # What the model read is for the model; it will say what matters.
        case _:
            yield from _quoted(screen, state.output, "dim")


def _quoted(screen: Screen, text: str, *styles: str) -> Iterator[str]:
    """The last lines of an output: errors and totals stand at the end."""
    lines = [line for line in harmless(text.strip()).splitlines() if line.strip()]
    room = min(screen.width or WIDTH, WIDTH) - 6
    if (more := len(lines) - OUTPUT_LINES) > 0:
        yield f"    {screen.paint(f'│ … {more} more above', 'dim')}"
    for line in lines[-OUTPUT_LINES:]:
        yield f"    {screen.paint(f'│ {shortened(line, room)}', *styles)}"

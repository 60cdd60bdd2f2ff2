"""A sentence about the turn that a dead process left open."""

from typing import TYPE_CHECKING

from turnkeeper.cli.part_lines import subject
from turnkeeper.cli.screen import one_line, plural
from turnkeeper.core.asks import is_waiting
from turnkeeper.core.child_tasks import task_of
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.workspace.owner import is_alive

if TYPE_CHECKING:
    from turnkeeper.core.view import SessionView


def found_open(view: "SessionView") -> str | None:
    """A sentence about the turn that a dead process left open; None if there is none."""
    if view.owner is None or is_alive(view.owner):
        return None
    said = f"Process {view.owner.pid}, which ran this session, is gone"
    if view.turn is None:
        return f"{said}; no turn was open."
    parts = view.turn.parts.values()
    kept = sum(len(part.text) for part in parts if isinstance(part, TextPart))
    cut = [part for part in parts if isinstance(part, ToolPart) and isinstance(part.state, ToolPending | ToolRunning)]
    waiting = [part for part in cut if is_waiting(view, part)]
    cut = [part for part in cut if part not in waiting]
    facts = [f"{plural(kept, 'character')} of its answer are kept"] if kept else []
    facts += [f"{part.tool} ({one_line(subject(part))}) is marked as interrupted and not run again" for part in cut]
    facts += [f"{part.tool} ({one_line(subject(part))}) waits for {_awaited(view, part)}" for part in waiting]
    return (
        f"{said}: {'; '.join(facts)}." if facts else f"{said}: nothing of its answer was recorded, so it is asked anew."
    )


def _awaited(view: "SessionView", part: ToolPart) -> str:
    task = task_of(view, part)
    return f"its child session {task.session_id}" if task is not None else "your answer"

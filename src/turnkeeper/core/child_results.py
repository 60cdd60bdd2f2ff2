"""Results of Child Sessions: what its last answer means for the call that waits, and the text that the model reads."""

from typing import Final, Literal

from turnkeeper.core.next_action import is_refused
from turnkeeper.model.failure import AbortedFailure, words_of
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import TextPart
from turnkeeper.model.value import Value

STOPPED: Final = "The child session was stopped before it was done. To let it go on, call again with its id as task_id."
REFUSED: Final = "The user rejected a call of the child session, which rests now."


class ChildResult(Value):
    """What came of a task. ``stopped``: the Child Session was interrupted, or its process died."""

    state: Literal["completed", "failed", "rejected", "stopped"]
    text: str


def child_result(answer: MessageWithParts | None) -> ChildResult:
    """The result of a Child Session that rests. ``answer`` is its newest turn since the prompt of the task."""
    if answer is None:
        return ChildResult(state="stopped", text=STOPPED)
    info = answer.info
    assert isinstance(info, AssistantMessage), "a turn is answered by the assistant"
    if isinstance(info.error, AbortedFailure):
        return ChildResult(state="stopped", text=STOPPED)
    if info.error is not None:
        return ChildResult(state="failed", text=words_of(info.error))
    if any(is_refused(part) for part in answer.parts):
        return ChildResult(state="rejected", text=REFUSED)
    said = [part.text for part in answer.parts if isinstance(part, TextPart) and part.text.strip()]
    return ChildResult(state="completed", text=said[-1] if said else "")


def task_block(
    session_id: str, state: Literal["running", "completed", "error"], text: str, *, summary: str | None = None
) -> str:
    """The text about a task as clients know it."""
    tag = "task_error" if state == "error" else "task_result"
    lines = [f'<task id="{session_id}" state="{state}">']
    if summary is not None:
        lines.append(f"<summary>{summary}</summary>")
    return "\n".join([*lines, f"<{tag}>", text, f"</{tag}>", "</task>"])

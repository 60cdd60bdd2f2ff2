"""Results of Child Sessions: the result in the last answer, its text for the model, and its delivery to the parent."""

from typing import Final, Literal, NamedTuple

from turnkeeper.core.child_tasks import background_tasks
from turnkeeper.core.next_action import is_refused
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import ChildEnded, Event, PromptAdmitted
from turnkeeper.model.failure import AbortedFailure, words_of
from turnkeeper.model.message import AssistantMessage, MessageTime, UserMessage, model_choice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import TextPart
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value

STOPPED: Final = "The child session was stopped before it was done. To let it go on, call again with its id as task_id."
REFUSED: Final = "The user rejected a call of the child session, which rests now."


class ChildResult(Value):
    """The result of a task. ``stopped``: the Child Session was interrupted, or its process died."""

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


class ChildReport(NamedTuple):
    """The delivery of a Child Session's result to the parent session."""

    is_delivered: bool
    """The parent gets the result as a prompt."""
    wakes: bool
    """The parent is run, to take the result or to read the prompt."""


def report_of(parent: SessionView, session_id: str, *, is_active: bool, is_wanted: bool) -> ChildReport:
    """The delivery of a Child Session's result. ``is_active``: the parent is run here, so its call waits itself.

    ``is_wanted``: the parent was not stopped. A parent with a pending revert is not run; it waits for the user.
    """
    is_delivered = bool(background_tasks(parent, session_id))
    has_call = any(task.session_id == session_id for task in parent.children) and not is_active
    return ChildReport(is_delivered, (is_delivered or has_call) and is_wanted and parent.session.revert is None)


def delivery_events(
    view: SessionView, child: Session, result: ChildResult, prompt: UserMessage | None, part_id: str
) -> list[Event]:
    """The end of a background task, and the prompt that has its result; nothing if the task has ended before."""
    if not background_tasks(view, child.id):
        return []
    ended = ChildEnded(session_id=child.id)
    if prompt is None:
        return [ended]
    is_done = result.state == "completed"
    summary = f"Background task {'completed' if is_done else 'failed'}: {child.title}"
    text = task_block(child.id, "completed" if is_done else "error", result.text, summary=summary)
    said = TextPart(id=part_id, session_id=prompt.session_id, message_id=prompt.id, text=text, synthetic=True)
    return [PromptAdmitted(message=prompt, parts=(said,), delivery="steer"), ended]


def prompt_of(session: Session, message_id: str, now: int) -> UserMessage | None:
    """An empty prompt in the name of a session's agent; None if the session never had one."""
    if session.agent is None or session.model is None:
        return None
    model, time = model_choice(session.model), MessageTime(created=now)
    return UserMessage(id=message_id, session_id=session.id, time=time, agent=session.agent, model=model)

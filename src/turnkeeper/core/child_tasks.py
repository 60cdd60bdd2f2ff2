"""Child tasks: the work that calls have handed to Child Sessions, as the fold keeps it.

| A child task | Leaves the view when |
|---|---|
| that its call waits for | the call is settled or removed, or its turn ends |
| in the background | the session has its result, or its user has stopped it, and the call is settled |

A child task is recorded before its Child Session exists. So a call that has one can be run again from its beginning in
another process: it finds the session, and the prompt is admitted once, because its id is recorded, too.
"""

from collections.abc import Callable

from turnkeeper.core.entry import Damaged
from turnkeeper.core.open_calls import has_open_call
from turnkeeper.core.view import SessionView
from turnkeeper.model.child import ChildTask
from turnkeeper.model.parts import Part, ToolPart


def begun(view: SessionView, seq: int, task: ChildTask) -> SessionView:
    """The view with one more child task. Raises Damaged if its call does not run."""
    if not has_open_call(view.turn, task.message_id, task.call_id):
        raise Damaged(seq, f"hands on the work of the call {task.call_id}, which is not running")
    return view.but(children=(*view.children, task))


def ended(view: SessionView, session_id: str) -> SessionView:
    """The view without the background tasks of a Child Session. One whose call is not settled stays until it is."""
    own = background_tasks(view, session_id)
    kept = [
        task.but(is_over=True) if task in own else task
        for task in view.children
        if task not in own or has_open_call(view.turn, task.message_id, task.call_id)
    ]
    return view.but(children=tuple(kept))


def without_call(view: SessionView, part: Part | None) -> SessionView:
    """The view without the task of a call, unless it goes on in the background."""
    if not view.children or not isinstance(part, ToolPart):
        return view
    return _without(view, lambda task: _goes_with_call(task) and is_of(task, part))


def without_message(view: SessionView, message_id: str) -> SessionView:
    """The view without the tasks of the calls of a message, unless they go on in the background."""
    return _without(view, lambda task: _goes_with_call(task) and task.message_id == message_id)


def is_of(task: ChildTask, part: Part) -> bool:
    """Whether a task is that of this call."""
    return isinstance(part, ToolPart) and (part.message_id, part.call_id) == (task.message_id, task.call_id)


def task_of(view: SessionView, part: Part) -> ChildTask | None:
    """The task that a call has handed on."""
    return next((task for task in view.children if is_of(task, part)), None)


def background_tasks(view: SessionView, session_id: str | None = None) -> list[ChildTask]:
    """The tasks whose results are to come as prompts; those of one Child Session, or all."""
    wanted = (task for task in view.children if session_id in (None, task.session_id))
    return [task for task in wanted if task.background and not task.is_over]


def is_at_rest(view: SessionView) -> bool:
    """Whether a session has done what it was given. One whose calls wait for the user has not."""
    return view.turn is None and view.owner is None


def _goes_with_call(task: ChildTask) -> bool:
    return not task.background or task.is_over


def _without(view: SessionView, is_gone: Callable[[ChildTask], bool]) -> SessionView:
    kept = tuple(task for task in view.children if not is_gone(task))
    return view if len(kept) == len(view.children) else view.but(children=kept)

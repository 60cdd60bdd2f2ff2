"""Todo: one line of a session's task list."""

from turnkeeper.model.value import Private, Value


class Todo(Value):
    """A task of the agent. ``status`` and ``priority`` are free text; clients know the usual values."""

    content: str
    status: str
    priority: str
    id: Private[str | None] = None

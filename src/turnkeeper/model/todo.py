"""Todo: one line of a session's task list."""

from turnkeeper.model.value import Private, Value


class Todo(Value):
    """A task the agent set itself. ``status`` and ``priority`` are free words; clients know the usual ones."""

    content: str
    status: str
    priority: str
    id: Private[str | None] = None

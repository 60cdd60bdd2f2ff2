"""todowrite: the agent's own task list, replaced as a whole."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Tool, ToolContext, ToolOutput, text


class TodoEntry(Value):
    """One task."""

    content: Annotated[str, Meta(description="What is to be done, in one line.")]
    status: Annotated[str, Meta(description="One of: pending, in_progress, completed, cancelled.")] = "pending"
    priority: Annotated[str, Meta(description="One of: high, medium, low.")] = "medium"
    id: Annotated[str | None, Meta(description="A name of your own for the task, if you need one.")] = None


class TodowriteArguments(Value):
    """The whole list."""

    todos: Annotated[tuple[TodoEntry, ...], Meta(description="The whole list, in order. It replaces the last one.")]


async def execute(arguments: TodowriteArguments, context: ToolContext) -> ToolOutput:
    """Replace the list."""
    await context.ask("todowrite", ["*"], always=["*"], metadata={})
    todos = tuple(
        Todo(content=entry.content, status=entry.status, priority=entry.priority, id=entry.id)
        for entry in arguments.todos
    )
    await context.set_todos(todos)
    return listing(todos)


def listing(todos: tuple[Todo, ...]) -> ToolOutput:
    """The list as the model reads it and as clients show it."""
    plain = msgspec.to_builtins(todos)
    left = sum(todo.status != "completed" for todo in todos)
    output = msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()
    return ToolOutput(title=f"{left} {'todo' if left == 1 else 'todos'}", output=output, metadata={"todos": plain})


TODOWRITE: Final = Tool(
    name="todowrite",
    description=text("todowrite"),
    parameters=TodowriteArguments,
    execute=execute,
    permission="todowrite",
    read_only=True,
)

"""todoread: the agent's own task list, as it is now."""

from typing import Final

from turnkeeper.model.value import Value
from turnkeeper.tools.todowrite import listing
from turnkeeper.tools.tool import Tool, ToolContext, ToolOutput, text


class TodoreadArguments(Value):
    """No parameters: a session has one task list."""


async def execute(arguments: TodoreadArguments, context: ToolContext) -> ToolOutput:
    """Show the list."""
    await context.ask("todoread", ["*"], always=["*"], metadata={})
    return listing(await context.todos())


TODOREAD: Final = Tool(
    name="todoread",
    description=text("todoread"),
    parameters=TodoreadArguments,
    execute=execute,
    permission="todoread",
    read_only=True,
)

"""invalid: answers calls of unknown tools. Not offered to models.

A call of an unknown tool fails under the name that the model wrote, with this explanation. Sessions that come
from opencode hold such calls as completed ones of a tool ``invalid``; a model that follows them is answered, too.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Final

from msgspec import Meta

from turnkeeper.model.value import Value, encode
from turnkeeper.tools.tool import AnyTool, Tool, ToolContext, ToolOutput, text

NEAREST_MAX: Final = 3
ALIKE_MIN: Final = 0.5
"""The minimum similarity of a name that is proposed, from 0 to 1."""


class InvalidArguments(Value):
    """The name of the tool, and the error of the call."""

    tool: Annotated[str, Meta(description="The tool that was called.")]
    error: Annotated[str, Meta(description="What was wrong with the call.")]


async def execute(arguments: InvalidArguments, context: ToolContext) -> ToolOutput:
    """Repeat the error."""
    output = f"The call of {arguments.tool!r} was not valid: {arguments.error}"
    return ToolOutput(
        title="Invalid call", output=f"{output}\nCall one of your tools with arguments that fit its schema."
    )


def explanation(name: str, tools: Mapping[str, AnyTool]) -> str:
    """The text for a model that called an unknown tool: the nearest names, and the schema of the nearest."""
    offered = [tool for tool in tools.values() if tool.is_offered]
    names = {tool.name.lower(): tool for tool in offered}
    near = [names[one] for one in get_close_matches(name.lower(), names, NEAREST_MAX, ALIKE_MIN)]
    lines = [f"There is no tool named {name!r}."]
    if near:
        lines.append(f"The nearest are: {', '.join(tool.name for tool in near)}.")
        schema = encode(near[0].definition().schema).decode()
        lines.append(f"The arguments of {near[0].name} must fit this schema: {schema}")
    lines.append(f"The tools are: {', '.join(tool.name for tool in offered) or 'none'}.")
    return "\n".join(lines)


INVALID: Final = Tool(
    name="invalid",
    description=text("invalid"),
    parameters=InvalidArguments,
    execute=execute,
    permission="invalid",
    read_only=True,
    is_offered=False,
)

"""task: hands work to another agent, which does it in a Child Session and gives one answer back."""

from collections.abc import Sequence
from typing import Annotated, Final

import msgspec
from msgspec import Meta

from turnkeeper.core.child_results import task_block
from turnkeeper.core.child_rules import TASK as NAME
from turnkeeper.model.agent import Agent
from turnkeeper.model.value import Value
from turnkeeper.tools.delegation import Assignment
from turnkeeper.tools.tool import Interrupted, Rejected, Tool, ToolContext, ToolFailure, ToolOutput, text

RUNNING: Final = "The task runs in the background. Its result comes as a message when it is done; do not wait for it."
NO_AGENTS: Final = "(There are none.)"


class TaskArguments(Value):
    """The work and its agent. Clients show these names, so they are not those of other tools' parameters."""

    description: Annotated[str, Meta(description="The task in three to five words.")]
    prompt: Annotated[str, Meta(description="Everything the agent must know and do: it sees nothing else.")]
    subagent_type: Annotated[str, Meta(description="The name of the agent.")] = msgspec.field(name="subagent_type")
    task_id: (
        Annotated[str, Meta(description="The id of an earlier task, to go on in its session instead of a new one.")]
        | None
    ) = msgspec.field(name="task_id", default=None)
    command: Annotated[str, Meta(description="The command that asked for this task.")] | None = None
    background: Annotated[bool, Meta(description="Whether to go on at once; the result comes as a message.")] = False


async def execute(arguments: TaskArguments, context: ToolContext) -> ToolOutput:
    """Hand the work on and wait for the answer, unless it is to be done in the background."""
    delegation = context.delegation
    if delegation is None:
        raise ToolFailure("There is no runtime here that could run another agent.")
    wanted = Assignment(
        agent=arguments.subagent_type,
        description=arguments.description,
        prompt=arguments.prompt,
        task_id=arguments.task_id or None,
        background=arguments.background,
    )
    if not await delegation.is_begun():
        await delegation.check(wanted)
        asked = {"description": wanted.description, "subagent_type": wanted.agent}
        await context.ask(NAME, [wanted.agent], always=[wanted.agent], metadata=asked)
    work = await delegation.begin(wanted)
    metadata: dict[str, object] = {
        "parentSessionId": work.parent_session_id,
        "sessionId": work.session_id,
        "model": msgspec.to_builtins(work.model.but(variant=None)),
    }
    if work.background:
        metadata["background"] = True
    await context.progress(title=wanted.description, metadata=metadata)
    result = await delegation.result(work)
    match result.state:
        case "stopped":
            raise Interrupted(task_block(work.session_id, "error", result.text))
        case "rejected":
            raise Rejected(task_block(work.session_id, "error", result.text))
        case "failed":
            raise ToolFailure(task_block(work.session_id, "error", result.text))
        case "running":
            output = task_block(work.session_id, "running", RUNNING)
        case "completed":
            output = task_block(work.session_id, "completed", result.text)
    return ToolOutput(title=wanted.description, output=output, metadata=metadata)


def describe(agents: Sequence[Agent]) -> str:
    """The description, with the agents that the caller may use."""
    named = "\n".join(f"- {one.name}: {one.description or 'It has no description.'}" for one in agents)
    return text(NAME).replace("{agents}", named or NO_AGENTS)


TASK: Final = Tool(
    name=NAME,
    description=describe(()),
    parameters=TaskArguments,
    execute=execute,
    permission=NAME,
    describe=describe,
    aliases={"subagentType": "subagent_type", "taskID": "task_id", "taskId": "task_id"},
)

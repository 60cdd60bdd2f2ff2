"""skill: the text of a skill, with the directory and the names of its other files."""

from typing import Annotated, Final

from anyio import to_thread
from msgspec import Meta

from turnkeeper.core.skills import TOOL, output
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Tool, ToolContext, ToolFailure, ToolOutput, text
from turnkeeper.workspace import files
from turnkeeper.workspace.skill_files import beside


class SkillArguments(Value):
    """The name of the skill."""

    name: Annotated[str, Meta(description="The name of the skill, from the list of available skills.")]


async def execute(arguments: SkillArguments, context: ToolContext) -> ToolOutput:
    """Show the skill once it is allowed."""
    known = {one.name: one for one in context.services.skills}
    context.refuse_denied(TOOL, [arguments.name])
    skill = known.get(arguments.name)
    if skill is None:
        usable = ", ".join(sorted(name for name in known if context.may(TOOL, [name]))) or "(none)"
        raise ToolFailure(f"There is no skill {arguments.name!r:.80}. The skills are: {usable}")
    await context.ask(TOOL, [skill.name], always=[skill.name], metadata={})
    found = await to_thread.run_sync(beside, skill)
    return ToolOutput(
        title=f"Skill {skill.name}",
        output=output(skill, [files.printable(one) for one in found.names], has_more=found.has_more),
        metadata={"name": skill.name, "dir": skill.directory},
    )


SKILL: Final = Tool(
    name=TOOL,
    description=text("skill"),
    parameters=SkillArguments,
    execute=execute,
    permission=TOOL,
    read_only=True,
)

"""plan_exit: asks the user to approve the plan, and lets the build agent carry it out."""

from typing import Final

from turnkeeper.model.question import Option, Question
from turnkeeper.model.value import Value
from turnkeeper.tools.tool import Rejected, Tool, ToolContext, ToolFailure, ToolOutput, text

BUILD: Final = "build"
YES: Final = "Yes"
NO: Final = "No"
APPROVED: Final = "The user approved the plan."


class PlanExitArguments(Value):
    """None."""


async def execute(arguments: PlanExitArguments, context: ToolContext) -> ToolOutput:
    """Ask, and hand over to the build agent if the user approves."""
    context.refuse_denied("plan_exit", ["*"])
    await context.ask("question", ["*"], always=["*"], metadata={})
    if context.plan is None or not context.plan.is_file():
        raise ToolFailure(f"There is no plan at {context.plan}. Write it there, then call plan_exit.")
    question = Question(
        question=f"The plan at {context.plan} is complete. Switch to the build agent and carry it out?",
        header="Plan",
        options=(
            Option(label=YES, description="Switch to the build agent, which carries the plan out."),
            Option(label=NO, description="Stay with the plan agent and go on planning."),
        ),
        custom=False,
    )
    if await context.question((question,)) != ((YES,),):
        raise Rejected("The user has not approved the plan, and goes on planning.")
    await context.hand_over(BUILD, APPROVED)
    return ToolOutput(title="Plan approved", output="The user approved the plan. The build agent carries it out.")


PLAN_EXIT: Final = Tool(
    name="plan_exit",
    description=text("plan_exit"),
    parameters=PlanExitArguments,
    execute=execute,
    # Not its own permission: offered to build as to plan, it leaves the request as it is when the agent is switched.
    permission="question",
    read_only=True,
)

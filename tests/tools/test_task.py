"""The task tool: what it hands on, what it shows while it waits, and what it makes of the result."""

import pytest
from desk import Desk

from turnkeeper.model.agent import Agent
from turnkeeper.tools.delegation import Assignment, TaskResult
from turnkeeper.tools.task import describe
from turnkeeper.tools.tool import Interrupted, Rejected, ToolFailure

GIVEN = {"description": "Look around", "prompt": "look", "subagent_type": "helper"}
METADATA = {
    "parentSessionId": "ses_1",
    "sessionId": "ses_child",
    "model": {"providerID": "acme", "modelID": "large"},
}


async def test_a_task_is_handed_on_as_it_was_given(desk: Desk) -> None:
    output = await desk.run("task", **GIVEN, task_id="", command="review")
    assert desk.tasks == [Assignment(agent="helper", description="Look around", prompt="look")]
    assert desk.progress == [{"title": "Look around", **METADATA}]
    assert output.title == "Look around"
    assert output.output == '<task id="ses_child" state="completed">\n<task_result>\ndone\n</task_result>\n</task>'
    assert output.metadata == {**METADATA, "truncated": False}


async def test_the_permission_is_asked_for_the_agent(desk: Desk) -> None:
    await desk.run("task", **GIVEN)
    assert desk.asked == [("task", ["helper"], ["helper"])]


async def test_a_task_in_the_background_says_that_it_runs(desk: Desk) -> None:
    desk.task_result = TaskResult(state="running", text="")
    output = await desk.run("task", **GIVEN, background=True)
    assert output.output.splitlines()[0] == '<task id="ses_child" state="running">'
    assert output.metadata["background"] is True


@pytest.mark.parametrize(
    ("state", "failure"), [("failed", ToolFailure), ("rejected", Rejected), ("stopped", Interrupted)]
)
async def test_a_task_that_came_to_nothing_fails(desk: Desk, state: str, failure: type[ToolFailure]) -> None:
    desk.task_result = TaskResult(state="failed", text="no key").but(state=state)
    with pytest.raises(failure, match="<task_error>\nno key\n</task_error>") as raised:
        await desk.run("task", **GIVEN)
    assert type(raised.value) is failure


def test_the_description_names_the_agents() -> None:
    told = describe([Agent(name="scout", description="Looks around."), Agent(name="plain")])
    assert "- scout: Looks around.\n- plain: It has no description." in told
    assert "(There are none.)" in describe([])

"""The request of a turn: tool choice, tools and reminder for each kind of turn."""

import pytest

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.lowering import Lowered
from turnkeeper.core.next_action import STRUCTURED_TOOL, RunTurn
from turnkeeper.core.turn_request import TurnInputs, build_request
from turnkeeper.core.view import Rewritten, SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import JsonSchemaFormat
from turnkeeper.model.request import SystemTurn, ToolDefinition
from turnkeeper.testing.builders import NOW, a_history, a_session, a_text, a_user, an_assistant, an_epoch

MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="openai-chat")
USER = a_user("ses_one", "msg_1").but(seq=1)
SAID = HistoryItem(message=USER, parts=(a_text(USER, "prt_1", "go"),))
FORMAT = JsonSchemaFormat(schema={"$schema": "draft", "type": "object"})
TOOLS = (ToolDefinition(name="Zebra", description="", schema={}),)


def inputs(*, step: int = 1, steps: int | None = None, is_structured: bool = False) -> TurnInputs:
    user = USER.but(format=FORMAT) if is_structured else USER
    view, history = SessionView(seq=1, session=a_session()), a_history((SAID,), seq=1)
    agent = Agent(name="build", steps=steps)
    return TurnInputs(view, history, RunTurn(user=SAID, step=step), user, MODEL, agent, an_epoch(), TOOLS)


@pytest.mark.parametrize(
    ("given", "choice", "tools", "reminder"),
    [
        (inputs(), "auto", ["Zebra"], None),
        (inputs(step=2, steps=3), "auto", ["Zebra"], None),
        (inputs(step=3, steps=3), "none", ["Zebra"], "max_steps"),
        (inputs(is_structured=True), "required", [STRUCTURED_TOOL, "Zebra"], "structured"),
        (inputs(step=3, steps=3, is_structured=True), "required", [STRUCTURED_TOOL, "Zebra"], "structured"),
    ],
)
def test_tool_choice_tools_and_reminder_follow_from_the_turn(
    given: TurnInputs, choice: str, tools: list[str], reminder: str | None
) -> None:
    lowered = Lowered(MODEL)
    lowered.add(given.history.entries)
    request = build_request(given, lowered, str, now=NOW).request
    last = request.messages[-1]
    assert (request.tool_choice, [tool.name for tool in request.tools]) == (choice, tools)
    assert (last.text if isinstance(last, SystemTurn) else None) == reminder


def test_a_schema_loses_the_mark_that_some_providers_reject() -> None:
    lowered = Lowered(MODEL)
    lowered.add([SAID])
    request = build_request(inputs(is_structured=True), lowered, str, now=NOW).request
    assert request.tools[0].schema == {"type": "object"}


@pytest.mark.parametrize(("seq", "is_declared"), [(2, False), (4, True)])
def test_a_change_of_history_is_declared_to_the_first_turn_after_it(seq: int, is_declared: bool) -> None:
    turn = HistoryItem(message=an_assistant("ses_one", "msg_2", "msg_1").but(seq=3), parts=())
    view = SessionView(seq=5, session=a_session(), rewritten=Rewritten(seq=seq, reason="pruned"))
    past = a_history((SAID, turn), seq=5)
    given = TurnInputs(view, past, inputs().action, USER, MODEL, Agent(name="build"), an_epoch(), TOOLS)
    assert (given.rewritten is not None) is is_declared

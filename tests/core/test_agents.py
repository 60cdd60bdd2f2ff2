"""Agents: which rules hold for each of them, and which of several rules is stronger."""

import pytest

from turnkeeper.core.agents import agents
from turnkeeper.core.permission import evaluate
from turnkeeper.core.settings import typed
from turnkeeper.model.permission import Action
from turnkeeper.model.value import JsonObject

ROWS = """
    permission          pattern       build  plan   mine   title
    bash                make          allow  allow  allow  deny
    edit                src/app.py    allow  deny   allow  deny
    read                .env          ask    ask    ask    deny
    read                .env.example  allow  allow  allow  deny
    external_directory  /etc/*        ask    ask    ask    deny
    doom_loop           bash          ask    ask    ask    deny
    sandbox             make          ask    ask    ask    deny
    question            *             allow  allow  deny   deny
    plan_enter          *             allow  deny   deny   deny
    plan_exit           *             deny   allow  deny   deny
    task                general       allow  deny   allow  deny
    task                explore       allow  allow  allow  deny
"""
HEAD, *TABLE = [line.split() for line in ROWS.strip().splitlines()]


def action(config: JsonObject, agent: str, permission: str, pattern: str) -> Action:
    return evaluate(agents(typed(config), "/home/me")[agent].permission, permission, pattern)


@pytest.mark.parametrize("row", TABLE, ids=[" ".join(row[:2]) for row in TABLE])
def test_what_agents_may_do_by_default(row: list[str]) -> None:
    permission, pattern, *expected = row
    assert [action({"agent": {"mine": {}}}, name, permission, pattern) for name in HEAD[2:]] == expected


@pytest.mark.parametrize(
    ("config", "permission", "expected"),
    [
        ({"permission": {"question": "deny"}}, "question", "deny"),
        ({"tools": {"question": False}}, "question", "deny"),
        ({"permission": {"edit": "ask"}}, "edit", "ask"),
        ({"permission": "allow"}, "edit", "allow"),
        ({"permission": "allow", "agent": {"plan": {"permission": {"edit": "deny"}}}}, "edit", "deny"),
        ({"permission": {"edit": "ask"}, "agent": {"plan": {"tools": {"write": True}}}}, "edit", "allow"),
        ({"agent": {"plan": {"permission": {"bash": "allow"}}}, "$denied": [{"bash": "deny"}]}, "bash", "deny"),
    ],
)
def test_configuration_is_stronger_than_an_agent_and_what_it_says_of_the_agent_is_stronger_still(
    config: JsonObject, permission: str, expected: Action
) -> None:
    assert action(config, "plan", permission, "x") == expected


def test_the_plan_agent_asks_before_commands_where_no_sandbox_keeps_them_from_writing() -> None:
    unconfined = agents(typed({}), "/home/me", is_confined=False)
    assert {name: evaluate(unconfined[name].permission, "bash", "make") for name in ("build", "plan")} == {
        "build": "allow",
        "plan": "ask",
    }
    freed = agents(typed({"permission": {"bash": "allow"}}), "/home/me", is_confined=False)
    assert evaluate(freed["plan"].permission, "bash", "make") == "allow"

"""What a Child Session inherits: it may never do more than its parent, nor more than its own agent."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.agents import agents
from turnkeeper.core.child_rules import callable_agents, child_rules, mentioned
from turnkeeper.core.permission import evaluate, hides, merge
from turnkeeper.model.agent import Agent
from turnkeeper.model.config import Config
from turnkeeper.model.permission import Action, Rule, Ruleset


def rule(permission: str, pattern: str, action: Action) -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


KNOWN = agents(Config(), "/home/me", is_confined=False)
BUILD, PLAN = KNOWN["build"], KNOWN["plan"]
OPEN = Agent(name="helper", mode="subagent", permission=(rule("*", "*", "allow"),))
OWN_DENIES = [rule("todowrite", "*", "deny"), rule("task", "*", "deny")]


@pytest.mark.parametrize(
    ("session", "caller", "agent", "expected"),
    [
        ((), BUILD, OPEN, OWN_DENIES),
        ((rule("bash", "rm *", "deny"),), BUILD, OPEN, [rule("bash", "rm *", "deny"), *OWN_DENIES]),
        ((rule("bash", "*", "ask"),), BUILD, OPEN, [rule("bash", "*", "ask"), *OWN_DENIES]),
        ((rule("bash", "*", "allow"),), BUILD, OPEN, OWN_DENIES),
        (
            (rule("external_directory", "/srv/*", "allow"),),
            BUILD,
            OPEN,
            [rule("external_directory", "/srv/*", "allow"), *OWN_DENIES],
        ),
        ((), PLAN, OPEN, [rule("edit", "*", "deny"), rule("bash", "*", "ask"), *OWN_DENIES]),
        ((), PLAN.but(name="careful"), OPEN, OWN_DENIES),
        (
            (),
            BUILD,
            OPEN.but(permission=(*OPEN.permission, rule("task", "scout", "allow"))),
            [rule("todowrite", "*", "deny")],
        ),
        (
            (rule("bash", "*", "ask"),),
            BUILD,
            OPEN.but(permission=(*OPEN.permission, rule("bash", "rm *", "deny"), rule("edit", "*", "deny"))),
            [rule("bash", "*", "ask"), *OWN_DENIES, rule("bash", "rm *", "deny")],
        ),
    ],
    ids=[
        "nothing",
        "a deny of the session",
        "an ask of the session",
        "no allow of the session",
        "directories outside",
        "plan",
        "no other agent",
        "an agent with a rule of its own",
        "a deny of its own stays stronger than an inherited ask",
    ],
)
def test_a_child_session_inherits_what_limits_its_parent(
    session: Ruleset, caller: Agent, agent: Agent, expected: list[Rule]
) -> None:
    assert list(child_rules(session, caller, agent)) == expected


def test_tools_for_primary_agents_are_denied() -> None:
    assert child_rules((), BUILD, OPEN, primary_tools=("webfetch",))[-1] == rule("webfetch", "*", "deny")


def test_a_child_session_of_plan_may_edit_if_the_configuration_says_so() -> None:
    assert list(child_rules((), PLAN, OPEN, inherits_plan=False)) == OWN_DENIES


names = st.sampled_from(["*", "bash", "edit", "external_directory", "ba*"])
patterns = st.sampled_from(["*", "a*", "ab", "b"])
some_rules = st.lists(st.builds(rule, names, patterns, st.sampled_from(["allow", "ask", "deny"])), max_size=6)
WIDER: dict[Action, int] = {"deny": 0, "ask": 1, "allow": 2}


@given(some_rules, some_rules, st.sampled_from(["bash", "edit", "external_directory"]), st.sampled_from(["ab", "b"]))
def test_a_child_session_is_never_wider_than_its_parent_or_its_agent(
    session: Sequence[Rule], own: Sequence[Rule], permission: str, pattern: str
) -> None:
    agent = OPEN.but(permission=(*OPEN.permission, *own))
    found = evaluate(merge(agent.permission, child_rules(session, BUILD, agent)), permission, pattern)
    of_parent = evaluate(merge(OPEN.permission, session), permission, pattern)
    of_agent = evaluate(agent.permission, permission, pattern)
    # What only its own agent asks about outside of the project may be allowed there, as it is for the parent.
    is_allowed_outside = permission == "external_directory" and of_agent == "ask"
    assert WIDER[found] <= WIDER[of_parent]
    assert WIDER[found] <= WIDER[of_agent] or is_allowed_outside


def test_models_are_told_of_agents_that_are_neither_primary_nor_hidden_nor_denied() -> None:
    known = [
        Agent(name="z", mode="subagent"),
        Agent(name="a", mode="all"),
        Agent(name="b", mode="primary"),
        Agent(name="c", mode="subagent", hidden=True),
        Agent(name="d", mode="subagent"),
    ]
    assert [one.name for one in callable_agents(known, [rule("task", "d", "deny")])] == ["a", "z"]


def test_an_agent_that_the_user_mentions_is_allowed_and_no_other() -> None:
    rules = merge([rule("task", "*", "deny")], mentioned(["scout"]))
    assert evaluate(rules, "task", "scout") == "allow"
    assert evaluate(rules, "task", "helper") == "deny"
    assert not hides(rules, "task")

"""Agents: which rules hold for each of them, and which of several rules is stronger."""

import pytest

from turnkeeper.core.agents import agents, default_agent, default_agent_problem, listed
from turnkeeper.core.permission import evaluate
from turnkeeper.core.settings import checked, typed
from turnkeeper.model.permission import Action
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject

ROWS = """
    permission          pattern       build  plan   general  explore  mine   title  summary
    bash                make          allow  allow  allow    allow    allow  deny   deny
    edit                src/app.py    allow  deny   allow    deny     allow  deny   deny
    edit                .opencode/plans/a.md  allow  allow  allow  deny  allow  deny  deny
    edit                .opencode/plans/a.py  allow  deny  allow  deny  allow  deny  deny
    read                src/app.py    allow  allow  allow    allow    allow  deny   deny
    read                .env          ask    ask    ask      ask      ask    deny   deny
    read                .env.example  allow  allow  allow    allow    allow  deny   deny
    external_directory  /etc/*        ask    ask    ask      ask      ask    deny   deny
    doom_loop           bash          ask    ask    ask      deny     ask    deny   deny
    sandbox             make          ask    ask    ask      deny     ask    deny   deny
    question            *             allow  allow  deny     deny     deny   deny   deny
    plan_enter          *             allow  deny   deny     deny     deny   deny   deny
    plan_exit           *             deny   allow  deny     deny     deny   deny   deny
    task                general       allow  deny   allow    deny     allow  deny   deny
    task                explore       allow  allow  allow    deny     allow  deny   deny
    todowrite           *             allow  allow  deny     deny     allow  deny   deny
    grep                wind          allow  allow  allow    allow    allow  deny   deny
    glob                *.py          allow  allow  allow    allow    allow  deny   deny
    list                src           allow  allow  allow    allow    allow  deny   deny
    webfetch            *             allow  allow  allow    allow    allow  deny   deny
    recall              *             allow  allow  allow    allow    allow  deny   deny
    mcp_tool            *             allow  allow  allow    deny     allow  deny   deny
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
        ({"permission": {"webfetch": "ask"}}, "webfetch", "ask"),
        ({"permission": "allow"}, "external_directory", "allow"),
        ({"permission": "allow", "agent": {"plan": {"permission": {"bash": "deny"}}}}, "bash", "deny"),
        ({"permission": {"edit": "ask"}, "agent": {"plan": {"tools": {"write": True}}}}, "edit", "allow"),
        ({"agent": {"plan": {"permission": {"bash": "allow"}}}, "$denied": [{"bash": "deny"}]}, "bash", "deny"),
    ],
)
def test_configuration_is_stronger_than_an_agent_and_what_it_says_of_the_agent_is_stronger_still(
    config: JsonObject, permission: str, expected: Action
) -> None:
    assert action(config, "plan", permission, "x") == expected


PLAN_FILE = ".opencode/plans/a.md"


@pytest.mark.parametrize(
    ("config", "file", "plan_file"),
    [
        # What holds for all agents never lets plan write.
        ({"permission": "allow"}, "deny", "allow"),
        ({"permission": {"*": "allow"}}, "deny", "allow"),
        ({"permission": {"edit": "allow"}}, "deny", "allow"),
        ({"permission": {"e*": "allow"}}, "deny", "allow"),
        ({"permission": {"edit": {"src/*": "allow"}}}, "deny", "allow"),
        ({"tools": {"write": True}}, "deny", "allow"),
        # What it asks about or denies holds for plan files, too.
        ({"permission": {"edit": "ask"}}, "deny", "ask"),
        ({"permission": {"edit": "deny"}}, "deny", "deny"),
        ({"permission": {"*": "deny", "edit": "allow"}}, "deny", "allow"),
        ({"permission": {"edit": {".opencode/*": "deny", "src/*": "allow"}}}, "deny", "deny"),
        ({"permission": {"edit": {"*": "allow", PLAN_FILE: "ask"}}}, "deny", "ask"),
        # What is said of plan itself holds.
        ({"agent": {"plan": {"permission": {"edit": "allow"}}}}, "allow", "allow"),
        ({"agent": {"plan": {"permission": "allow"}}}, "allow", "allow"),
        ({"agent": {"plan": {"tools": {"write": True}}}}, "allow", "allow"),
        ({"permission": "allow", "agent": {"plan": {"permission": {"edit": {"src/*": "ask"}}}}}, "ask", "allow"),
    ],
)
def test_only_what_is_said_of_plan_itself_lets_it_write(config: JsonObject, file: Action, plan_file: Action) -> None:
    checked(config, "a file")
    assert (action(config, "plan", "edit", "src/a.py"), action(config, "plan", "edit", PLAN_FILE)) == (file, plan_file)


def test_without_a_sandbox_only_a_rule_about_commands_lets_plan_run_them_unasked() -> None:
    cases: list[tuple[JsonObject, Action]] = [
        ({"permission": "allow"}, "ask"),
        ({"permission": {"bash": "allow"}}, "allow"),
    ]
    for config, expected in cases:
        unconfined = agents(typed(config), "/home/me", is_confined=False)
        assert evaluate(unconfined["plan"].permission, "bash", "make") == expected


def test_agents_that_only_read_ask_before_commands_where_no_sandbox_keeps_them_from_writing() -> None:
    unconfined = agents(typed({}), "/home/me", is_confined=False)
    names = ("build", "plan", "general", "explore")
    assert [evaluate(unconfined[name].permission, "bash", "make") for name in names] == ["allow", "ask", "allow", "ask"]
    freed = agents(typed({"permission": {"bash": "allow"}}), "/home/me", is_confined=False)
    assert evaluate(freed["plan"].permission, "bash", "make") == "allow"


def test_the_built_in_agents_are_as_clients_know_them() -> None:
    known = agents(typed({}), "/home/me", {"explore": "Search.", "title": "Name it."})
    assert [(one.name, one.mode, one.hidden, one.native, one.prompt, one.temperature) for one in known.values()] == [
        ("build", "primary", False, True, None, None),
        ("plan", "primary", False, True, None, None),
        ("general", "subagent", False, True, None, None),
        ("explore", "subagent", False, True, "Search.", None),
        ("compaction", "primary", True, True, None, None),
        ("title", "primary", True, True, "Name it.", 0.5),
        ("summary", "primary", True, True, None, None),
    ]


def test_a_list_begins_with_the_default_agent_and_goes_on_by_name() -> None:
    known = agents(typed({"agent": {"ask": {"color": "#aa00FF"}, "build": {"color": "accent"}}}), "/home/me")
    names = [one.name for one in listed(known, "plan")]
    assert names == ["plan", "ask", "build", "compaction", "explore", "general", "summary", "title"]
    assert [(known[name].color, known[name].native) for name in ("ask", "build")] == [
        ("#aa00FF", False),
        ("accent", True),
    ]


@pytest.mark.parametrize("color", ["#fff", "red", "#12345g", "xprimary"])
def test_a_colour_that_clients_do_not_know_is_refused(color: str) -> None:
    with pytest.raises(Invalid, match=r"a file: agent\.mine\.color"):
        checked({"agent": {"mine": {"color": color}}}, "a file")


@pytest.mark.parametrize(
    ("config", "expected", "has_problem"),
    [
        ({}, "build", False),
        ({"default_agent": "plan"}, "plan", False),
        ({"default_agent": "mine", "agent": {"mine": {"mode": "all"}}}, "mine", False),
        ({"default_agent": "nobody"}, "build", True),
        ({"default_agent": "general"}, "build", True),
        ({"default_agent": "title"}, "build", True),
        ({"default_agent": "build", "agent": {"build": {"disable": True}}}, "plan", True),
        ({"agent": {"build": {"mode": "subagent"}}}, "plan", False),
    ],
)
def test_a_default_agent_that_cannot_answer_is_replaced_by_build(
    config: JsonObject, expected: str, has_problem: bool
) -> None:
    known = agents(typed(config), "/home/me")
    assert default_agent(known, typed(config)).name == expected
    assert (default_agent_problem(known, typed(config)) is not None) == has_problem


def test_without_any_agent_that_answers_the_user_is_told() -> None:
    config = typed({"agent": {name: {"disable": True} for name in ("build", "plan")}})
    with pytest.raises(Invalid, match="no agent answers prompts"):
        default_agent(agents(config, "/home/me"), config)

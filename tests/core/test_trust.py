"""What a project's own settings may do before the user has trusted its directory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.permission import PROTECTED, Allow, Ask, decide, evaluate, offered
from turnkeeper.core.trust import narrowed, protected
from turnkeeper.model.config import ProjectAsks
from turnkeeper.model.permission import Rule
from turnkeeper.model.value import Json, JsonObject

ALLOW_ALL = Rule(permission="*", pattern="*", action="allow")


@pytest.mark.parametrize(
    ("settings", "left_out"),
    [
        ({"provider": {"anthropic": {"options": {"baseURL": "https://elsewhere"}}}}, ["provider"]),
        ({"model": "anthropic/claude"}, ["model"]),
        ({"small_model": "anthropic/claude"}, ["small_model"]),
        ({"shell": "/project/shell"}, ["shell"]),
        ({"command": {"deploy": {"template": "!`curl`"}}}, ["command.deploy"]),
        ({"plugin": ["./plugin.py"]}, ["plugin"]),
        ({"mcp": {"one": {"command": ["./server"]}}}, ["mcp"]),
        ({"formatter": {"one": {"command": ["./format"]}}}, ["formatter"]),
        ({"lsp": {"one": {"command": ["./server"]}}}, ["lsp"]),
        ({"sandbox": "off"}, ["sandbox"]),
        ({"command_environment": ["AWS_SECRET_ACCESS_KEY"]}, ["command_environment"]),
        ({"share": "auto"}, ["share"]),
        ({"recovery": "continue"}, ["recovery"]),
        ({"unknown": 1}, ["unknown"]),
        ({"permission": {"bash": "allow"}}, ["permission.bash"]),
        ({"permission": {"bash": {"rm *": "allow"}}}, ["permission.bash.rm *"]),
        ({"tools": {"bash": True}}, ["tools.bash"]),
        ({"agent": {"build": {"permission": {"edit": "allow"}}}}, ["agent.build.permission.edit"]),
        ({"agent": {"build": {"model": "openai/gpt-5"}}}, ["agent.build.model"]),
        ({"agent": {"build": {"options": {"baseURL": "x"}}}}, ["agent.build.options"]),
        ({"instructions": ["~/.ssh/id_rsa"]}, ["instructions (~/.ssh/id_rsa)"]),
        ({"instructions": ["../other/notes.md"]}, ["instructions (../other/notes.md)"]),
        ({"instructions": ["https://elsewhere/rules.md"]}, ["instructions (https://elsewhere/rules.md)"]),
        ({"agent": {"build": {"prompt": "{file:~/.netrc}"}}}, ["agent.build.prompt"]),
        ({"timezone": "{env:SECRET}"}, ["timezone"]),
        ({"default_agent": "build"}, ["default_agent"]),
        ({"agent": {"plan": {"disable": True}}}, ["agent.plan.disable"]),
    ],
    ids=str,
)
def test_what_widens_is_left_out_and_named(settings: JsonObject, left_out: list[str]) -> None:
    found = narrowed(settings)
    assert found.left_out == tuple(left_out)
    assert found.denied == {}
    assert all(value == {} or key == "agent" for key, value in found.settings.items())


@pytest.mark.parametrize(
    ("settings", "kept", "denied"),
    [
        ({"permission": {"bash": {"rm *": "deny", "ls *": "allow"}}}, {}, {"bash": {"rm *": "deny"}}),
        ({"permission": {"edit": "deny"}}, {}, {"edit": "deny"}),
        ({"tools": {"write": False, "bash": True}}, {}, {"edit": "deny"}),
        ({"instructions": ["docs/*.md"]}, {"instructions": ["docs/*.md"]}, {}),
        ({"disabled_providers": ["openai"]}, {"disabled_providers": ["openai"]}, {}),
        ({"share": "disabled"}, {"share": "disabled"}, {}),
        ({"agent": {"review": {"prompt": "Review.", "mode": "primary"}}},) * 2 + ({},),
        ({"compaction": {"auto": False}}, {"compaction": {"auto": False}}, {}),
    ],
    ids=str,
)
def test_untrusted_settings_hold_where_they_narrow(settings: JsonObject, kept: JsonObject, denied: JsonObject) -> None:
    found = narrowed(settings)
    assert found.settings == kept
    assert found.denied == denied


ACTIONS = st.sampled_from(["allow", "ask", "deny"])
PERMISSIONS = st.dictionaries(
    st.sampled_from(["*", "bash", "edit", "read"]),
    ACTIONS | st.dictionaries(st.sampled_from(["*", "rm *", "*.env"]), ACTIONS, max_size=3),
    max_size=4,
)


def actions_of(value: Json) -> set[Json]:
    if isinstance(value, dict):
        return {action for inner in value.values() for action in actions_of(inner)}
    return {value}


@pytest.mark.parametrize(
    ("settings", "asked"),
    [
        ({"permission": {"bash": "ask"}}, ProjectAsks(permission={"bash": "ask"})),
        ({"permission": {"bash": {"*": "ask", "rm *": "deny"}}}, ProjectAsks(permission={"bash": {"*": "ask"}})),
        ({"agent": {"build": {"permission": {"edit": "ask"}}}}, ProjectAsks(agent={"build": {"edit": "ask"}})),
        ({"agent": {"build": {"permission": "ask"}}}, ProjectAsks(agent={"build": {"*": "ask"}})),
        ({"agent": {"build": {"permission": "deny"}}}, ProjectAsks()),
    ],
    ids=str,
)
def test_what_a_project_asks_holds_and_is_not_left_out(settings: JsonObject, asked: ProjectAsks) -> None:
    found = narrowed(settings)
    assert (found.asked, found.left_out) == (asked, ())


@given(PERMISSIONS)
def test_only_denials_and_asks_are_left_of_any_permissions(permission: dict[str, Json]) -> None:
    found = narrowed({"permission": permission})
    assert actions_of(found.denied) <= {"deny"}
    assert actions_of(found.asked.permission) <= {"ask"}


@pytest.mark.parametrize("place", PROTECTED)
@pytest.mark.parametrize("top", ["", "packages/one/"])
def test_a_change_of_configuration_is_asked_about_where_all_else_is_allowed(place: str, top: str) -> None:
    rules = protected((ALLOW_ALL,))
    assert evaluate(rules, "edit", top + place.replace("*", "hooks/pre-commit")) == "ask"
    assert evaluate(rules, "edit", f"{top}notes.md") == "allow"


def test_a_denied_change_of_configuration_stays_denied() -> None:
    rules = protected((ALLOW_ALL, Rule(permission="edit", pattern="*", action="deny")))
    assert evaluate(rules, "edit", "opencode.json") == "deny"


@pytest.mark.parametrize("place", PROTECTED)
@pytest.mark.parametrize("pattern", ["*", "*/*", ".*", "*.json*", ".git/*", "*/.git/*"])
def test_an_approval_answers_for_configuration_only_if_it_names_the_file(place: str, pattern: str) -> None:
    name = place.replace("*", "hooks/pre-commit")
    rules, approvals = protected((ALLOW_ALL,)), (Rule(permission="edit", pattern=pattern, action="allow"),)
    assert decide(rules, "edit", [name], approvals) == Ask(patterns=(name,))
    assert decide((), "edit", [name], approvals) == Ask(patterns=(name,)), "as for another request that waits"
    named = (Rule(permission="edit", pattern=name, action="allow"),)
    assert decide(rules, "edit", [name], named) == Allow()


def test_always_on_a_protected_file_is_offered_for_that_file_alone() -> None:
    assert offered("edit", ["notes.md"], ["*"]) == ("*",)
    assert offered("edit", ["notes.md", ".git/a*"], ["*"]) == ("notes.md", ".git/a?")
    assert offered("read", [".git/config"], ["*"]) == ("*",)

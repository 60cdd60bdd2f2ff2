"""What is wrong with a value is named, and the rest of the file holds."""

import pytest

from turnkeeper.core.setting_checks import PERMISSIONS, Problem, sifted, unknown_permissions
from turnkeeper.model.setting_names import UNUSED
from turnkeeper.model.value import JsonObject
from turnkeeper.tools import BUILT_IN
from turnkeeper.tools import load as load_tools


@pytest.mark.parametrize(
    ("raw", "kept", "problems"),
    [
        (
            {"model": 7, "small_model": "a/b"},
            {"small_model": "a/b"},
            [Problem(("model",), "model: Expected `str | null`, got `int`; it is left out")],
        ),
        (
            {"disabled_providers": ["a", 2]},
            {},
            [Problem(("disabled_providers", 1), "disabled_providers.1: Expected `str`, got `int`; it is left out")],
        ),
        (
            {"command": {"a": {"template": "x"}, "b": {}}},
            {"command": {"a": {"template": "x"}}},
            [Problem(("command", "b"), "command.b: Object missing required field `template`; it is left out")],
        ),
        (
            {"permission": {"bash": 1}},
            {"permission": {}},
            [Problem(("permission", "bash"), "permission.bash: Expected `str | object`, got `int`", is_error=True)],
        ),
        (
            {"sandbox": "on"},
            {},
            [
                Problem(
                    ("sandbox",),
                    "sandbox: Invalid enum value 'on'; use one of 'off', 'read-only', 'workspace'",
                    is_error=True,
                )
            ],
        ),
        (
            {"ask": {"timeout": 1e308}},
            {"ask": {}},
            [Problem(("ask", "timeout"), "ask.timeout: Expected `float` <= 1099511627776.0; it is left out")],
        ),
        ({"colour": 1}, {"colour": 1}, [Problem(("colour",), "there is no setting 'colour'; it is ignored")]),
        ({"modle": "a/b"}, None, [Problem(("modle",), "there is no setting 'modle'; did you mean 'model'?")]),
        # Also a setting of opencode that has no effect here.
        (
            {"usrname": "Ada"},
            None,
            [Problem(("usrname",), "there is no setting 'usrname'; did you mean 'username'?")],
        ),
        (
            {"compaction": {"atuo": True}},
            {"compaction": {"atuo": True}},
            [Problem(("compaction", "atuo"), "there is no setting 'compaction.atuo'; did you mean 'compaction.auto'?")],
        ),
        ({"provider": {"x": {"options": {"setCacheKey": True}}}}, None, []),
        # Where further keys are allowed, another spelling of a known one is a mistake nevertheless.
        *(
            (
                {"provider": {"x": {"options": {wrong: "http://127.0.0.1"}}}},
                None,
                [
                    Problem(
                        ("provider", "x", "options", wrong),
                        f"there is no setting 'provider.x.options.{wrong}'; did you mean 'provider.x.options.baseURL'?",
                    )
                ],
            )
            for wrong in ("baseUrl", "base_url", "base-url", "BASEURL")
        ),
        # Entries of lists are looked at, too.
        (
            {"provider": {"x": {"models": {"m": {"cost": {"tiers": [{"input": 1}, {"inptu": 1}]}}}}}},
            None,
            [
                Problem(
                    ("provider", "x", "models", "m", "cost", "tiers", 1, "inptu"),
                    "there is no setting 'provider.x.models.m.cost.tiers.1.inptu';"
                    " did you mean 'provider.x.models.m.cost.tiers.1.input'?",
                )
            ],
        ),
        ({"agent": {"x": {"reasoningEffort": "high"}}}, {"agent": {"x": {"options": {"reasoningEffort": "high"}}}}, []),
    ],
)
def test_a_wrong_value_is_left_out_and_named(raw: JsonObject, kept: JsonObject | None, problems: list[Problem]) -> None:
    found = sifted(raw)
    assert (list(found.problems), found.settings) == (problems, raw if kept is None else kept)


def test_every_wrong_value_of_a_file_is_named() -> None:
    raw = {"model": 1, "shell": 2, "compaction": {"auto": "x", "tail_turns": -1}, "timezone": "UTC"}
    found = sifted(raw)
    assert [one.path for one in found.problems] == [
        ("model",),
        ("shell",),
        ("compaction", "auto"),
        ("compaction", "tail_turns"),
    ]
    assert found.settings == {"compaction": {}, "timezone": "UTC"}


def test_settings_that_only_opencode_has_are_no_mistake() -> None:
    raw: dict[str, object] = {}
    for key in UNUSED:
        inner, steps = raw, key.replace("*", "name").split(".")
        for step in steps[:-1]:
            inner = inner.setdefault(step, {"template": "x"} if step == "name" and steps[0] == "command" else {})  # type: ignore[assignment]  # Objects, by construction.
        inner[steps[-1]] = {}
    assert sifted(raw).problems == ()


@pytest.mark.parametrize(
    ("settings", "names"),
    [
        ({"permission": {"bash": "ask", "*": "deny", "my_*": "ask", "git?": "deny"}}, []),
        ({"permission": {"bsh": "deny", "weather": "ask"}}, ["bsh"]),
        ({"tools": {"reed": False}, "agent": {"a": {"permission": {"edti": "deny"}, "tools": {"grpe": False}}}}, 3),
        ({"permission": {"jira_search": "ask", "jira2_x": "ask"}}, ["jira2_x"]),
    ],
)
def test_a_rule_that_names_no_tool_is_found(settings: JsonObject, names: list[str] | int) -> None:
    found = [one.path[-1] for one in unknown_permissions(settings, {*PERMISSIONS, "weather"}, ["jira"])]
    assert (found if isinstance(names, list) else len(found)) == names


def test_every_built_in_tool_may_be_named_by_a_rule() -> None:
    tools = load_tools()
    assert {*BUILT_IN, *(tool.name for tool in tools), *(tool.permission for tool in tools)} <= PERMISSIONS


@pytest.mark.parametrize(
    ("pattern", "advice"),
    [
        ("/etc/hosts", "'/etc/hosts/*' for a directory, or '/etc/*' if"),
        ("~/notes", "'~/notes/*' for a directory, or '~/*' if"),
        ("../other/", "'../other/*' for a directory, or '../*' if"),
        ("$HOME/a.txt", "'$HOME/a.txt/*' for a directory, or '$HOME/*' if"),
        ("*", None),
        ("/etc/*", None),
        ("/etc*", None),
        ("/srv/v?", None),
        ("$(cat a.txt)", None),
    ],
)
def test_a_rule_about_other_directories_that_matches_nothing_is_named_with_what_to_write(
    pattern: str, advice: str | None
) -> None:
    rules: JsonObject = {"external_directory": {pattern: "deny"}, "read": {"/etc/hosts": "allow"}}
    for settings, where in (
        ({"permission": rules}, ()),
        ({"agent": {"mine": {"permission": rules}}}, ("agent", "mine")),
    ):
        problems = sifted(settings).problems
        paths = [(*where, "permission", "external_directory", pattern)] if advice is not None else []
        assert [(one.path, one.is_error) for one in problems] == [(path, False) for path in paths]
        assert all(advice is not None and advice in one.message for one in problems)

"""Permission rules: the last match wins, and no approval undoes a deny."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.permission import (
    Allow,
    Ask,
    Deny,
    decide,
    default_rules,
    evaluate,
    freed,
    hides,
    merge,
    parse_rules,
    parse_switches,
    rooted,
)
from turnkeeper.model.permission import Action, Rule
from turnkeeper.model.refusal import Invalid


def rule(permission: str, pattern: str, action: Action) -> Rule:
    return Rule(permission=permission, pattern=pattern, action=action)


GIT = (rule("bash", "*", "ask"), rule("bash", "git *", "allow"), rule("bash", "git push *", "deny"))


@pytest.mark.parametrize(
    ("permission", "pattern", "action"),
    [
        ("bash", "git status", "allow"),
        ("bash", "git push", "deny"),
        ("bash", "git push --force", "deny"),
        ("bash", "rm x", "ask"),
        ("edit", "x", "ask"),
    ],
)
def test_the_last_matching_rule_decides_and_without_one_the_user_is_asked(
    permission: str, pattern: str, action: str
) -> None:
    assert evaluate(GIT, permission, pattern) == action


@pytest.mark.parametrize("name", ["*", "sand*", "sandbo?"])
def test_only_a_rule_that_names_the_sandbox_lets_commands_out_of_it(name: str) -> None:
    everything = (*default_rules(), rule(name, "*", "allow"))
    assert evaluate(everything, "sandbox", "make") == "ask"
    assert evaluate((rule("sandbox", "*", "deny"), *everything[-1:]), "sandbox", "make") == "deny"
    assert evaluate((*everything, rule("*", "*", "deny")), "sandbox", "make") == "deny"
    assert evaluate((*everything, rule("sandbox", "make", "allow")), "sandbox", "make") == "allow"
    assert evaluate((*everything, rule("sandbox", "make", "allow")), "sandbox", "rm x") == "ask"


def test_a_call_is_allowed_only_if_all_its_patterns_are() -> None:
    assert decide(GIT, "bash", ["git status", "git log"]) == Allow()
    assert decide(GIT, "bash", ["git status", "rm x", "rm x", "ls"]) == Ask(patterns=("rm x", "ls"))
    assert decide(GIT, "bash", ["rm x", "git push"]) == Deny(rules=GIT)
    assert decide((*GIT, rule("*", "z", "deny"), rule("read", "*", "allow")), "bash", ["z"]) == Deny(
        rules=(*GIT, rule("*", "z", "deny"))
    )


def test_a_call_without_patterns_is_allowed() -> None:
    assert decide((), "bash", []) == Allow()


def test_a_denial_tells_the_model_the_rules() -> None:
    reason = Deny(rules=GIT[2:]).reason
    assert '[{"permission":"bash","pattern":"git push *","action":"deny"}]' in reason


def test_an_approval_answers_what_would_be_asked() -> None:
    approvals = (rule("bash", "rm *", "allow"),)
    assert decide(GIT, "bash", ["rm x"], approvals) == Allow()
    assert decide(GIT, "bash", ["rm x", "ls"], approvals) == Ask(patterns=("ls",))


def test_an_approval_never_undoes_a_configured_deny() -> None:
    assert decide(GIT, "bash", ["git push"], (rule("*", "*", "allow"),)) == Deny(rules=GIT)


ACTIONS = st.sampled_from(["allow", "deny", "ask"])
RULES = st.lists(
    st.builds(rule, st.sampled_from(["*", "bash", "edit"]), st.sampled_from(["*", "a", "b", "a*"]), ACTIONS), max_size=5
)


@given(RULES, RULES, st.lists(st.sampled_from(["a", "b", "ab", "c"]), min_size=1, max_size=3))
def test_whatever_is_approved_a_denied_call_stays_denied(
    rules: list[Rule], approvals: list[Rule], patterns: list[str]
) -> None:
    if isinstance(decide(rules, "bash", patterns), Deny):
        assert isinstance(decide(rules, "bash", patterns, approvals), Deny)
    if isinstance(decide(rules, "bash", patterns), Allow):
        assert decide(rules, "bash", patterns, approvals) == Allow()


@given(RULES, RULES)
def test_of_merged_rulesets_the_later_is_stronger(first: list[Rule], second: list[Rule]) -> None:
    merged = merge(first, second)
    assert merged == (*first, *second)
    assert evaluate(merged, "bash", "a") == evaluate(second if matches_any(second, "bash", "a") else first, "bash", "a")


def matches_any(rules: list[Rule], permission: str, pattern: str) -> bool:
    return evaluate([rule("*", "*", "deny"), *rules], permission, pattern) == evaluate(
        [rule("*", "*", "allow"), *rules], permission, pattern
    )


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([rule("*", "*", "deny")], True),
        ([rule("edit", "*", "deny")], True),
        ([rule("edit", "*", "deny"), rule("edit", "docs/*", "allow")], False),
        ([rule("edit", "docs/*", "allow"), rule("edit", "*", "deny")], True),
        ([rule("edit", "*", "deny"), rule("*", "*", "ask")], False),
        ([rule("bash", "*", "deny")], False),
    ],
)
def test_a_tool_is_hidden_when_nothing_under_its_permission_can_run(rules: list[Rule], expected: bool) -> None:
    assert hides(rules, "edit") is expected


@pytest.mark.parametrize(
    ("permission", "pattern", "action"),
    [
        ("bash", "rm -rf x", "allow"),
        ("read", "src/a.py", "allow"),
        ("read", "deploy/.env", "ask"),
        ("read", ".env.local", "ask"),
        ("read", ".env.example", "allow"),
        ("external_directory", "/etc/*", "ask"),
        ("external_directory", "/data/output/x/*", "allow"),
        ("doom_loop", "bash", "ask"),
    ],
)
def test_by_default_secrets_loops_and_what_lies_outside_are_asked_about(
    permission: str, pattern: str, action: str
) -> None:
    assert evaluate(freed(default_rules(), ["/data/output/"]), permission, pattern) == action


def test_a_configuration_becomes_rules_in_the_order_it_was_written() -> None:
    config = {"*": "ask", "bash": {"*": "ask", "git *": "allow"}, "edit": "deny", "mcp_x*": {"~/y": "allow"}}
    assert parse_rules(config, "/home/ada") == (
        rule("*", "*", "ask"),
        rule("bash", "*", "ask"),
        rule("bash", "git *", "allow"),
        rule("edit", "*", "deny"),
        rule("mcp_x*", "/home/ada/y", "allow"),
    )
    assert parse_rules("allow", "/home/ada") == (rule("*", "*", "allow"),)


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("~", "/home/ada"),
        ("~/x/*", "/home/ada/x/*"),
        ("$HOME/x", "/home/ada/x"),
        ("$HOME", "/home/ada"),
        ("~x", "~x"),
        ("a/~/b", "a/~/b"),
    ],
)
def test_the_home_directory_may_begin_a_pattern(pattern: str, expected: str) -> None:
    assert parse_rules({"read": {pattern: "ask"}}, "/home/ada") == (rule("read", expected, "ask"),)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ("maybe", "'permission' must be one of allow, deny, ask, not 'maybe'"),
        (3, "'permission' must be an action or an object, not 3"),
        ({"bash": {"rm *": "no"}}, "'permission.bash.rm *'"),
        ({"bash": None}, "'permission.bash'"),
        ({"todowrite": {"*": "allow"}}, "'permission.todowrite' takes one action"),
    ],
)
def test_a_configuration_that_makes_no_sense_is_refused_by_name(config: object, words: str) -> None:
    with pytest.raises(Invalid) as refusal:
        parse_rules(config, "/home/ada")
    assert words in str(refusal.value)


def test_the_older_switches_become_rules_and_all_editing_goes_by_one_name() -> None:
    assert parse_switches({"write": False, "bash": True, "patch": False}) == (
        rule("edit", "*", "deny"),
        rule("bash", "*", "allow"),
        rule("edit", "*", "deny"),
    )


@pytest.mark.parametrize(
    ("pattern", "file", "is_meant"),
    [
        ("/srv/app/src/*", "src/a.py", True),
        ("/srv/app/src/*", "lib/a.py", False),
        ("/srv/*", "src/a.py", False),
        ("/srv/*", "/srv/other/a.py", True),
        ("/srv/app2/*", "src/a.py", False),
        ("../other/*", "/srv/other/a.py", True),
        ("../other/*", "other/a.py", False),
        ("src/*", "/srv/src/a.py", False),
    ],
)
def test_a_pattern_about_files_is_meant_however_it_is_written(pattern: str, file: str, is_meant: bool) -> None:
    rules = rooted((rule("edit", "*", "allow"), rule("edit", pattern, "deny"), rule("read", "*", "allow")), "/srv/app")
    assert evaluate(rules, "edit", file) == ("deny" if is_meant else "allow")
    assert evaluate(rules, "read", file) == "allow"
    assert not hides(rules, "edit")


def test_a_rule_about_every_permission_means_files_only_by_their_names() -> None:
    rules = rooted((rule("*", "*", "allow"), rule("*", "/srv/app/src/*", "deny")), "/srv/app")
    assert evaluate(rules, "edit", "src/a.py") == "deny"
    assert evaluate(rules, "bash", "src/run.sh") == "allow"

"""The permission matrix: agent, configuration, session and approvals, each with every action."""

from itertools import product

import pytest

from turnkeeper.core.permission import Allow, Ask, Decision, Deny, decide, default_rules, merge, parse_rules
from turnkeeper.model.permission import Action, Rule

SAID: tuple[Action | None, ...] = (None, "allow", "ask", "deny")


def said(action: Action | None, pattern: str = "*") -> tuple[Rule, ...]:
    return () if action is None else (Rule(permission="bash", pattern=pattern, action=action),)


def outcome(decision: Decision) -> Action:
    match decision:
        case Allow():
            return "allow"
        case Deny():
            return "deny"
        case Ask():
            return "ask"


# The last column is what becomes of the call. A row reads: what agent, configuration and session say about it, in this
# order, and whether the user approved it before.
ROWS = """
    agent   config  session | without an approval | with one
    -       -       -       | ask                 | allow
    allow   -       -       | allow               | allow
    ask     -       -       | ask                 | allow
    deny    -       -       | deny                | deny
    -       allow   -       | allow               | allow
    -       ask     -       | ask                 | allow
    -       deny    -       | deny                | deny
    -       -       allow   | allow               | allow
    -       -       ask     | ask                 | allow
    -       -       deny    | deny                | deny
    allow   allow   -       | allow               | allow
    allow   ask     -       | ask                 | allow
    allow   deny    -       | deny                | deny
    ask     allow   -       | allow               | allow
    ask     ask     -       | ask                 | allow
    ask     deny    -       | deny                | deny
    deny    allow   -       | allow               | allow
    deny    ask     -       | ask                 | allow
    deny    deny    -       | deny                | deny
    allow   -       allow   | allow               | allow
    allow   -       ask     | ask                 | allow
    allow   -       deny    | deny                | deny
    ask     -       allow   | allow               | allow
    ask     -       deny    | deny                | deny
    deny    -       allow   | allow               | allow
    deny    -       ask     | ask                 | allow
    -       allow   allow   | allow               | allow
    -       allow   ask     | ask                 | allow
    -       allow   deny    | deny                | deny
    -       ask     allow   | allow               | allow
    -       ask     deny    | deny                | deny
    -       deny    allow   | allow               | allow
    -       deny    ask     | ask                 | allow
    allow   allow   deny    | deny                | deny
    allow   deny    allow   | allow               | allow
    allow   deny    ask     | ask                 | allow
    deny    allow   ask     | ask                 | allow
    deny    allow   deny    | deny                | deny
    deny    deny    allow   | allow               | allow
    deny    deny    ask     | ask                 | allow
    deny    deny    deny    | deny                | deny
"""
TABLE = [line.replace("|", " ").split() for line in ROWS.strip().splitlines()[1:]]


@pytest.mark.parametrize(("agent", "config", "session", "without", "approved"), TABLE, ids=[" ".join(r) for r in TABLE])
def test_the_last_ruleset_decides_and_an_approval_answers_only_questions(
    agent: Action, config: Action, session: Action, without: Action, approved: Action
) -> None:
    rules = merge(*(said(None if one not in SAID else one) for one in (agent, config, session)))
    assert outcome(decide(rules, "bash", ["git push"])) == without
    assert outcome(decide(rules, "bash", ["git push"], said("allow", "git push *"))) == approved


@pytest.mark.parametrize(("agent", "config", "session"), list(product(SAID, SAID, SAID)))
def test_every_combination_follows_the_last_word(agent: Action, config: Action, session: Action) -> None:
    rules = merge(said(agent), said(config), said(session))
    last = ([None, *(one for one in (agent, config, session) if one is not None)])[-1] or "ask"
    assert outcome(decide(rules, "bash", ["x"])) == last
    for approval in SAID:
        approved = outcome(decide(rules, "bash", ["x"], said(approval)))
        assert approved == ("allow" if last == "ask" and approval == "allow" else last)


@pytest.mark.parametrize(
    ("general", "narrow", "expected"),
    [
        ("allow", "deny", {"git push": "deny", "git push origin": "deny", "git status": "allow"}),
        ("deny", "allow", {"git push": "allow", "git push origin": "allow", "git status": "deny"}),
        ("ask", "allow", {"git push": "allow", "git status": "ask"}),
        ("allow", "ask", {"git push": "ask", "git pushes": "allow"}),
    ],
)
def test_a_narrow_rule_after_a_general_one_decides_and_before_it_says_nothing(
    general: Action, narrow: Action, expected: dict[str, Action]
) -> None:
    after = (*said(general), *said(narrow, "git push *"))
    before = (*said(narrow, "git push *"), *said(general))
    for command, action in expected.items():
        assert outcome(decide(after, "bash", [command])) == action
        assert outcome(decide(before, "bash", [command])) == general


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["ls"], "allow"),
        (["ls", "make"], "ask"),
        (["ls", "rm x"], "deny"),
        (["make", "rm x"], "deny"),
        (["rm x", "ls"], "deny"),
    ],
)
def test_of_several_commands_the_strictest_counts(patterns: list[str], expected: Action) -> None:
    rules = (*said("ask"), *said("allow", "ls *"), *said("deny", "rm *"))
    assert outcome(decide(rules, "bash", patterns)) == expected
    assert outcome(decide(rules, "bash", patterns, said("allow"))) == ("allow" if expected == "ask" else expected)


@pytest.mark.parametrize(
    ("permission", "pattern", "expected"),
    [
        ("read", "src/app.py", "allow"),
        ("read", ".env", "deny"),
        ("read", ".env.example", "allow"),
        ("edit", "src/app.py", "ask"),
        ("edit", "docs/guide.md", "allow"),
        ("bash", "git log", "allow"),
        ("bash", "rm -rf x", "deny"),
        ("bash", "make", "ask"),
        ("external_directory", "/etc/*", "deny"),
        ("external_directory", "/home/ada/notes/*", "allow"),
        ("doom_loop", "bash", "ask"),
        ("mcp_tool", "*", "allow"),
    ],
)
def test_a_configuration_is_laid_over_the_defaults(permission: str, pattern: str, expected: Action) -> None:
    config = {
        "read": {"*.env": "deny"},
        "edit": {"*": "ask", "docs/*": "allow"},
        "bash": {"*": "ask", "git log *": "allow", "rm *": "deny"},
        "external_directory": {"*": "deny", "~/notes/*": "allow"},
    }
    rules = merge(default_rules(), parse_rules(config, "/home/ada"))
    assert outcome(decide(rules, permission, [pattern])) == expected

"""Plan mode: when a prompt gets a reminder, and which file the plan agent may write."""

from collections.abc import Sequence

import pytest

from turnkeeper.core.agents import PLANS, agents
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.permission import evaluate, hides
from turnkeeper.core.plan_mode import MARK, plan_name, plan_rules, wanted_reminder
from turnkeeper.core.settings import typed
from turnkeeper.model.agent import Agent
from turnkeeper.model.value import JsonObject
from turnkeeper.testing.builders import a_session, a_text, a_user, an_assistant

SESSION = "ses_one"


def entries(words: str) -> list[HistoryItem]:
    """A history: ``u`` is a prompt, ``e`` and ``l`` one with a reminder, ``p`` and ``b`` answers, ``s`` a Summary."""
    found: list[HistoryItem] = []
    for nth, word in enumerate(words):
        message_id = f"msg_{nth}"
        if word in "uel":
            mark = {"e": "enter", "l": "leave"}.get(word)
            part = a_text(a_user(SESSION, message_id), f"prt_{nth}", "x").but(metadata={MARK: mark} if mark else None)
            found.append(HistoryItem(message=a_user(SESSION, message_id), parts=(part,)))
        else:
            agent = {"p": "plan", "b": "build", "s": "compaction"}[word]
            answer = an_assistant(SESSION, message_id, "msg_0").but(agent=agent, summary=True if word == "s" else None)
            found.append(HistoryItem(message=answer, parts=()))
    return found


@pytest.mark.parametrize(
    ("history", "agent", "expected"),
    [
        ("u", "build", None),
        ("u", "plan", "enter"),
        ("ubu", "plan", "enter"),
        ("e", "plan", None),
        ("epu", "plan", None),
        ("epup", "plan", None),
        ("epu", "build", "leave"),
        ("epu", "other", "leave"),
        ("epl", "build", None),
        ("eplbu", "build", None),
        ("eplbu", "plan", "enter"),
        ("eu", "build", "leave"),
        ("euu", "plan", None),
        ("eplu", "plan", "enter"),
        ("us", "plan", "enter"),
        ("pusu", "plan", "enter"),
        ("epsu", "build", "leave"),
        ("ubsu", "build", None),
    ],
)
def test_a_prompt_gets_a_reminder_when_the_mode_is_switched(history: str, agent: str, expected: str | None) -> None:
    assert wanted_reminder(entries(history), Agent(name=agent)) == expected


def rules_of(config: JsonObject, own: Sequence[str], agent: str = "plan") -> tuple[str, str, str, bool]:
    """What the agent may do to its plan, to another plan and to a source file; whether editing is hidden."""
    known = agents(typed(config), "/home/me")[agent]
    rules = plan_rules(known.permission, known, a_session(), own)
    paths = (own[0], f"{PLANS}/1-other.md", "src/app.py")
    one, two, three = (evaluate(rules, "edit", path) for path in paths)
    return one, two, three, hides(rules, "edit")


OWN = f"{PLANS}/{plan_name(a_session())}"


@pytest.mark.parametrize(
    ("config", "own", "expected"),
    [
        ({}, OWN, ("allow", "deny", "deny", False)),
        ({}, "../data/plans/a.md", ("allow", "deny", "deny", False)),
        ({"permission": {"edit": "deny"}}, OWN, ("deny", "deny", "deny", True)),
        ({"permission": {"edit": "deny"}}, "../data/plans/a.md", ("deny", "deny", "deny", True)),
        ({"permission": {"edit": "ask"}}, OWN, ("ask", "deny", "deny", False)),
        ({"permission": {"edit": "ask"}}, "../data/plans/a.md", ("ask", "deny", "deny", False)),
        ({"permission": "allow"}, OWN, ("allow", "deny", "deny", False)),
        ({"agent": {"plan": {"permission": "allow"}}}, OWN, ("allow", "allow", "allow", False)),
        ({"$asked": [{"permission": {"edit": "ask"}}]}, OWN, ("ask", "deny", "deny", False)),
        ({"$asked": [{"permission": {"bash": "ask"}}]}, OWN, ("allow", "deny", "deny", False)),
        ({"$denied": [{"edit": "deny"}]}, OWN, ("deny", "deny", "deny", True)),
    ],
)
def test_the_plan_agent_writes_its_own_plan_and_nothing_else(
    config: JsonObject, own: str, expected: tuple[str, str, str, bool]
) -> None:
    assert rules_of(config, [own]) == expected


def test_other_agents_keep_their_rules() -> None:
    assert rules_of({}, [OWN], "build") == ("allow", "allow", "allow", False)
    assert rules_of({}, [OWN], "explore") == ("deny", "deny", "deny", True)


def test_the_name_of_a_plan_stays_in_its_folder() -> None:
    session = a_session().but(slug="../../etc/pass wd")
    assert plan_name(session) == f"{session.time.created}--etc-pass-wd.md"


PATTERNS = ("*", "a.py", ".env", f"{PLANS}/a.md", "/etc/*", "general")
NAMES = ("bash", "edit", "read", "grep", "question", "plan_exit", "task", "external_directory", "todowrite", "other")


@pytest.mark.parametrize("asked", [{"*": "ask"}, {"bash": "ask", "edit": "ask"}, {"read": {"*": "ask"}}])
def test_what_an_untrusted_project_asks_undoes_no_deny_of_an_agent_and_no_other_allow(asked: JsonObject) -> None:
    plain = agents(typed({}), "/home/me")
    config = typed({"$asked": [{"permission": asked}]})
    for name, agent in agents(config, "/home/me").items():
        for permission in NAMES:
            for pattern in PATTERNS:
                before = evaluate(plain[name].permission, permission, pattern)
                is_asked = before == "allow" and ("*" in asked or permission in asked)
                expected = "ask" if is_asked else before
                assert evaluate(agent.permission, permission, pattern) == expected, (name, permission, pattern)

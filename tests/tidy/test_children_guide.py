"""The guide to Child Sessions is true: its program prints what stands below it, and its table is what is inherited."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from turnkeeper.core.child_rules import child_rules
from turnkeeper.model.agent import Agent
from turnkeeper.model.permission import Action, Rule

ROOT = Path(__file__).resolve().parents[2]
GUIDE = (ROOT / "docs/guides/children.md").read_text("utf-8")
PROGRAM = re.compile(r"<!-- program -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
ROW = re.compile(r"^\| (\w+): (\w+) `(\w+)` `([^`]+)` \| (?:-|(\w+) `(\w+)` `([^`]+)`) \|$", re.MULTILINE)
ACTIONS: dict[str, Action] = {"allow": "allow", "ask": "ask", "deny": "deny"}
TIMEOUT_S = 120


def test_the_program_prints_what_stands_below_it(tmp_path: Path) -> None:
    [(program, printed)] = PROGRAM.findall(GUIDE)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, timeout=TIMEOUT_S, check=False
    )
    assert (done.returncode, done.stdout) == (0, printed), done.stderr


@pytest.mark.parametrize("row", ROW.findall(GUIDE), ids=lambda row: " ".join(row[:4]))
def test_a_child_session_inherits_what_the_table_says(row: tuple[str, ...]) -> None:
    source, action, permission, pattern, *kept = row
    rule = Rule(permission=permission, pattern=pattern, action=ACTIONS[action])
    session = (rule,) if source == "session" else ()
    caller = Agent(name=source if source in ("plan", "build") else "build", permission=() if session else (rule,))
    found = child_rules(session, caller, Agent(name="scout"))
    same = [one for one in found if (one.permission, one.pattern) == (permission, pattern)]
    expected = [Rule(permission=kept[1], pattern=kept[2], action=ACTIONS[kept[0]])] if kept[0] else []
    assert same == expected


def test_the_table_has_every_kind_of_rule() -> None:
    assert {row[0] for row in ROW.findall(GUIDE)} == {"session", "plan", "build", "always"}

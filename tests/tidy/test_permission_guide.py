"""The guide to permissions is true: each call in its tables is decided as it says."""

import json
import re
from contextlib import suppress
from pathlib import Path

import pytest
from shell_project import ShellProject

from turnkeeper.core.permission import Ask, Deny, decide, default_rules, merge, parse_rules
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.tools.tool import ToolFailure

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/permissions.md").read_text("utf-8")
BLOCK = re.compile(
    r"<!-- rules -->\n```json\n(?P<rules>[^`]*)```|^\| (?P<tool>\w+) `(?P<call>[^\n]+?)` \| (?P<told>[^\n]+) \|$", re.M
)


def rows() -> list[tuple[str, str, str, str]]:
    """Each call of the guide, with the rules above it and what is told of it."""
    found, rules = [], "{}"
    for one in BLOCK.finditer(GUIDE):
        if one["rules"]:
            rules = one["rules"]
        else:
            found.append((rules, one["tool"], one["call"].replace(r"\|", "|"), one["told"].replace(r"\|", "|")))
    return found


def decided(rules: Ruleset, asked: list[tuple[str, list[str]]]) -> str:
    """What becomes of a call that asks for these patterns, in the words of the guide."""
    questions = []
    for permission, patterns in asked:
        match decide(rules, permission, patterns):
            case Deny():
                return f"denied by {permission}"
            case Ask(patterns=open_patterns):
                questions.append(f"asks {permission} {', '.join(f'`{one}`' for one in open_patterns)}")
    return "; ".join(questions) or "runs"


async def asked_by(tool: str, call: str, shell_project: ShellProject) -> list[tuple[str, list[str]]]:
    """What a call asks for when everything is allowed."""
    if tool == "bash":
        told = shell_project.verdict(call)
        outside = [f"{place.rstrip('/')}/*" for place in told.outside]
        asked = [("external_directory", [*outside, *told.computed]), ("edit", told.written), ("bash", told.patterns)]
        return [(permission, patterns) for permission, patterns in asked if patterns]
    desk = shell_project.desk([Rule(permission="*", pattern="*", action="allow")])
    context = shell_project.context(desk)
    with suppress(ToolFailure):  # A file may not be there: what matters is what was asked.
        await desk.toolbox.run("read", {"filePath": call}, context)
    if tool == "edit":  # Which needs a file that was read, if there is one.
        desk.asked.clear()
        with suppress(ToolFailure):
            await desk.toolbox.run("write", {"filePath": call, "content": "new\n"}, context)
    return [(permission, patterns) for permission, patterns, _ in desk.asked]


@pytest.mark.parametrize(("rules", "tool", "call", "told"), rows(), ids=[f"{row[1]} {row[2]}" for row in rows()])
async def test_a_call_is_decided_as_the_guide_says(rules: str, tool: str, call: str, told: str, tmp_path: Path) -> None:
    shell_project = ShellProject.made(tmp_path)
    asked = await asked_by(tool, call, shell_project)
    assert decided(merge(default_rules(), parse_rules(json.loads(rules), "~")), asked) == told


def test_the_guide_has_many_examples() -> None:
    assert len(rows()) > 40

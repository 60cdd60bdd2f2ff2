"""A call that a rule denies is denied before the user is asked about anything else that it needs."""

from pathlib import Path

import pytest
from desk import Desk

from turnkeeper.core.permission import default_rules, parse_rules
from turnkeeper.core.sandbox import Confinement
from turnkeeper.model.value import JsonObject
from turnkeeper.tools.tool import Denied, Rejected

PATCH = "*** Begin Patch\n*** Add File: ../other/a.txt\n+a\n*** Add File: b.txt\n+b\n*** End Patch"
CASES: list[tuple[str, JsonObject, JsonObject]] = [
    ("bash", {"command": "rm one.txt"}, {"bash": {"*": "ask", "rm *": "deny"}, "edit": "ask"}),
    ("bash", {"command": "cat ../other/a.txt"}, {"bash": "deny", "external_directory": "ask"}),
    ("bash", {"command": "make", "outside": True}, {"bash": "ask", "sandbox": "deny"}),
    ("read", {"filePath": "../other/a.txt"}, {"external_directory": "ask", "read": "deny"}),
    ("list", {"path": "../other"}, {"external_directory": "ask", "list": "deny"}),
    ("write", {"filePath": "../other/b.txt", "content": "b"}, {"external_directory": "ask", "edit": "deny"}),
    (
        "edit",
        {"filePath": "../other/b.txt", "oldString": "", "newString": "b"},
        {"external_directory": "ask", "edit": "deny"},
    ),
    (
        "multiedit",
        {"filePath": "../other/b.txt", "edits": [{"oldString": "", "newString": "b"}]},
        {"external_directory": "ask", "edit": "deny"},
    ),
    ("apply_patch", {"patchText": PATCH}, {"external_directory": "ask", "edit": {"b.txt": "deny"}}),
    ("glob", {"pattern": "*", "path": "../other"}, {"external_directory": "deny", "glob": "ask"}),
    ("glob", {"pattern": "*", "path": "../other"}, {"external_directory": "ask", "glob": "deny"}),
    ("grep", {"pattern": "a", "path": "../other"}, {"external_directory": "deny", "grep": "ask"}),
    ("grep", {"pattern": "a", "path": "../other"}, {"external_directory": "ask", "grep": "deny"}),
    ("grep", {"pattern": "a", "path": "../other/a.txt"}, {"external_directory": "ask", "read": "deny"}),
]


@pytest.mark.parametrize(("tool", "arguments", "permission"), CASES, ids=str)
async def test_a_denied_call_asks_nothing(
    desk: Desk, tmp_path: Path, tool: str, arguments: JsonObject, permission: JsonObject
) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "a.txt").write_text("a\n")
    desk.confined = Confinement(mode="workspace")
    desk.rules = [*default_rules(), *parse_rules(permission, "/home")]
    with pytest.raises(Denied):
        await desk.run(tool, **arguments)
    assert desk.asked == []
    desk.rules = [rule for rule in desk.rules if rule.action != "deny"]
    with pytest.raises(Rejected):
        await desk.run(tool, **arguments)
    assert desk.asked != [], "what else it needs would be asked about"

"""Tools: one file each. A new one is a file here, its text in ``texts`` and a line in BUILT_IN."""

from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from turnkeeper.tools.tool import AnyTool

BUILT_IN: Final[dict[str, str]] = {
    "apply_patch": "turnkeeper.tools.apply_patch:APPLY_PATCH",
    "bash": "turnkeeper.tools.bash:BASH",
    "edit": "turnkeeper.tools.edit:EDIT",
    "glob": "turnkeeper.tools.glob:GLOB",
    "grep": "turnkeeper.tools.grep:GREP",
    "invalid": "turnkeeper.tools.invalid:INVALID",
    "jobs": "turnkeeper.tools.jobs:JOBS",
    "list": "turnkeeper.tools.list:LIST",
    "multiedit": "turnkeeper.tools.multiedit:MULTIEDIT",
    "plan_exit": "turnkeeper.tools.plan_exit:PLAN_EXIT",
    "question": "turnkeeper.tools.question:QUESTION",
    "read": "turnkeeper.tools.read:READ",
    "recall": "turnkeeper.tools.recall:RECALL",
    "skill": "turnkeeper.tools.skill:SKILL",
    "task": "turnkeeper.tools.task:TASK",
    "todoread": "turnkeeper.tools.todoread:TODOREAD",
    "todowrite": "turnkeeper.tools.todowrite:TODOWRITE",
    "webfetch": "turnkeeper.tools.webfetch:WEBFETCH",
    "write": "turnkeeper.tools.write:WRITE",
}
"""Each tool's name and where it is. Named, not imported: a program that runs no tool loads none."""


def load(names: Iterable[str] = tuple(BUILT_IN)) -> "list[AnyTool]":
    """The built-in tools of these names."""
    tools = []
    for name in names:
        module, _, constant = BUILT_IN[name].partition(":")
        # The table holds names, so the checker cannot see what they lead to; the tool contract looks at each.
        tool: AnyTool = getattr(import_module(module), constant)
        tools.append(tool)
    return tools

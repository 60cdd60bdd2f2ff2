"""Writing calls: which calls of tools on record may have changed files."""

from typing import Final

from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolPending

READERS: Final = frozenset(
    {
        *("glob", "grep", "invalid", "list", "plan_exit", "question", "read", "recall", "skill"),
        *("todoread", "todowrite", "webfetch"),
    }
)
"""Built-in tools that write no file."""


def may_write(part: ToolPart) -> bool:
    """Whether a call may have changed files: it was run here, by a tool that is not known to write none."""
    return part.tool not in READERS and not isinstance(part.state, ToolPending) and not part.is_hosted

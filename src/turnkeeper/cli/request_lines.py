"""What a permission request is about besides its patterns, as lines for people."""

from typing import TYPE_CHECKING

from turnkeeper.cli.screen import harmless, one_line

if TYPE_CHECKING:
    from turnkeeper.model.permission import PermissionRequest


def command_lines(request: "PermissionRequest") -> list[str]:
    """The command that asks for something besides to run: to change files, or to leave the project."""
    match request.permission, request.metadata:
        case "edit" | "external_directory", {"command": str(command)}:
            first, *others = harmless(command).splitlines() or [""]
            return [f"by the command: {first}", *others]
    return []


def covered_by_always(request: "PermissionRequest") -> str:
    """What an answer "always" approves, in words."""
    patterns = request.always or request.patterns
    if "*" not in patterns:
        return ", ".join(map(one_line, patterns))
    return (
        "every edit except of configuration and .git"
        if request.permission == "edit"
        else f"every {one_line(request.permission)}"
    )

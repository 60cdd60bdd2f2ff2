"""Requests to the user as lines of text: their subject, and the commands that answer them."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

from turnkeeper.cli.screen import harmless, one_line
from turnkeeper.model.refusal import NotFound

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.permission import PermissionRequest
    from turnkeeper.model.question import QuestionRequest
    from turnkeeper.model.session import Session


async def open_requests(
    tk: "Turnkeeper | Client", directory: str | None
) -> "list[PermissionRequest | QuestionRequest]":
    """The open requests of the sessions of a directory."""
    return [*await tk.permissions(directory=directory), *await tk.questions(directory=directory)]


async def origin(get: "Callable[[str], Awaitable[Session]]", session_id: str) -> str:
    """Which Child Session asks, and for which session it works in the end; nothing for a session without a parent."""
    try:
        session = root = await get(session_id)
        seen = {session_id}
        while root.parent_id is not None and root.parent_id not in seen:  # An imported one may be its own ancestor.
            seen.add(root.parent_id)
            root = await get(root.parent_id)
    except NotFound:  # Removed meanwhile.
        return ""
    return f"asked by {one_line(session.title)}, for {root.id}" if root is not session else ""


def cause_lines(request: "PermissionRequest") -> list[str]:
    """Why a call asks for more than its tool: the command that changes files, or what lies outside the project."""
    match request.permission, request.metadata:
        case "edit" | "external_directory", {"command": str(command)}:
            first, *others = harmless(command).splitlines() or [""]
            return [f"by the command: {first}", *others]
        case "external_directory", {"filepath": str(path)}:
            return [f"to reach: {one_line(path)}"]
    return []


def covered_by_always(request: "PermissionRequest") -> str:
    """The scope of an answer "always", in words."""
    patterns = request.always or request.patterns
    if "*" not in patterns:
        return ", ".join(map(one_line, patterns))
    return (
        "every edit except of configuration and .git"
        if request.permission == "edit"
        else f"every {one_line(request.permission)}"
    )


def patterns_asked(request: "PermissionRequest") -> str:
    """The requested permission and pattern, as rules match them."""
    return ", ".join(map(one_line, request.patterns))


def permission_wait(request: "PermissionRequest") -> list[str]:
    """What a call needs permission for, and the commands that answer."""
    return [
        f"{one_line(request.permission)}: {patterns_asked(request)}",
        *cause_lines(request),
        f"answer: turnkeeper permission allow {request.id}, or permission deny {request.id}",
    ]


def question_wait(request: "QuestionRequest") -> list[str]:
    """The questions of a call, and the commands that answer."""
    places = " ".join(["ANSWER"] * len(request.questions))
    return [
        *(one_line(one.question) for one in request.questions),
        f"answer: turnkeeper question answer {request.id} {places}, or question reject {request.id}",
    ]

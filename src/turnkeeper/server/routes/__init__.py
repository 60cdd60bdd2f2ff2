"""All routes of the server. A new file of routes is added to ``FILES``."""

from importlib import import_module
from typing import Final

from turnkeeper.server.route import Route

FILES: Final = (
    "health",
    "boot",
    "mcp",
    "config",
    "session",
    "all_sessions",
    "message",
    "turn",
    "revert",
    "command",
    "permission",
    "question",
    "tool",
    "plugin",
    "event",
    "api_session",
    "api_message",
    "api_catalogue",
    "api_ask",
    "upkeep",
    "share",
    "page",
    "view",
    "insight",
)
"""Modules of this package; each has a tuple ``ROUTES``."""


def load() -> tuple[Route, ...]:
    """The routes of all files."""
    return tuple(route for file in FILES for route in import_module(f"{__name__}.{file}").ROUTES)

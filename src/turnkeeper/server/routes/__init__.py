"""Every operation the server knows. A further file of routes is a line here."""

from importlib import import_module
from typing import Final

from turnkeeper.server.route import AnyRoute

FILES: Final = (
    "health",
    "boot",
    "config",
    "session",
    "everywhere",
    "message",
    "turn",
    "command",
    "permission",
    "question",
    "tool",
    "event",
    "api_session",
    "api_message",
    "api_catalogue",
    "api_ask",
    "upkeep",
)
"""Modules of this package; each has a table ``ROUTES``."""


def load() -> tuple[AnyRoute, ...]:
    """All routes, file by file."""
    return tuple(route for file in FILES for route in import_module(f"{__name__}.{file}").ROUTES)

"""The source of an imported session: ``imported`` in its metadata."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from turnkeeper.model.session import Session
    from turnkeeper.model.value import JsonObject

KEY = "imported"


def imported_from(session: "Session") -> "JsonObject":
    """The program, its id of the session and the imported title; empty if the session was not imported so."""
    found = (session.metadata or {}).get(KEY)
    return found if isinstance(found, dict) else {}


def program_of(session: "Session") -> str | None:
    """The program that a session was imported from; None if none is named."""
    name = imported_from(session).get("program")
    return name if isinstance(name, str) else None

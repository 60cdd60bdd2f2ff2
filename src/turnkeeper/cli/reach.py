"""Sessions: what commands need of them, wherever they are: in a store, or behind a server."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from turnkeeper.model.refusal import Invalid

if TYPE_CHECKING:
    from turnkeeper.api import Turnkeeper
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.message_with_parts import MessageWithParts
    from turnkeeper.model.page import Page
    from turnkeeper.model.permission import Ruleset
    from turnkeeper.model.session import Session, SessionModel
    from turnkeeper.model.status import Status
    from turnkeeper.model.todo import Todo
    from turnkeeper.model.value import JsonObject


class NotServed(Invalid):
    """Servers do not do this, or not yet: it is done on a store."""


class Sessions(Protocol):
    """The use cases that a store (Turnkeeper) and a server's Client both have, under one name and with one meaning."""

    async def create(
        self,
        *,
        directory: str | Path | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        title: str | None = None,
        permission: "Ruleset | None" = None,
        agent: str | None = None,
        model: "SessionModel | None" = None,
        metadata: "JsonObject | None" = None,
    ) -> "Session":
        """Begin a session."""

    async def get(self, session_id: str) -> "Session":
        """One session."""

    async def list(
        self,
        *,
        project_id: str | None = None,
        directory: str | Path | None = None,
        parent_id: str | None = None,
        roots: bool = True,
        archived: bool = False,
        search: str | None = None,
        since: int | None = None,
        limit: int = 100,
        after: str | None = None,
    ) -> "Page[Session]":
        """A page of sessions."""

    async def children(self, session_id: str, *, recursive: bool = False) -> "Sequence[Session]":
        """The Child Sessions of a session."""

    async def rename(self, session_id: str, title: str) -> "Session":
        """Give a session a title."""

    async def archive(self, session_id: str) -> "Session":
        """Take a session off the list."""

    async def restore(self, session_id: str) -> "Session":
        """Put it back."""

    async def fork(
        self, session_id: str, *, message_id: str | None = None, directory: str | Path | None = None
    ) -> "Session":
        """Copy its history into a new session."""

    async def remove(self, session_id: str) -> "Sequence[Session]":
        """Remove it and its descendants."""

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> "Page[MessageWithParts]":
        """A page of its history."""

    async def todos(self, session_id: str) -> "tuple[Todo, ...]":
        """Its task list."""

    async def status(self, session_id: str) -> "Status":
        """What it is doing."""

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: "ModelChoice | None" = None
    ) -> "MessageWithParts":
        """Run a command of the user's in it."""

    async def interrupt(self, session_id: str) -> bool:
        """Stop it; whether it was being run."""

    async def abort(self, session_id: str) -> bool:
        """Stop it, or close what was left open; whether there was anything to stop."""


def here(sessions: Sessions) -> "Turnkeeper | None":
    """The store itself, for what only a store can say; None behind a server."""
    from turnkeeper.api import Turnkeeper  # Loaded by now, if it is one.

    return sessions if isinstance(sessions, Turnkeeper) else None

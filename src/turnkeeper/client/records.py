"""Records: sessions of a server and their messages: read, changed, removed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from turnkeeper.core.arguments import checked
from turnkeeper.core.labels import wanted_label
from turnkeeper.core.sharing import EXPIRES_S
from turnkeeper.mint import Mint
from turnkeeper.model.message import ModelName, session_model
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.status import IDLE, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from turnkeeper.client.connection import ServerConnection
    from turnkeeper.model.redaction import RedactionReport
    from turnkeeper.model.share import ShareLink


@checked
class Records:
    """Methods that need no model and no stream. ``Client`` adds the others."""

    def __init__(self, connection: "ServerConnection", mint: Mint) -> None:
        self._connection, self._mint = connection, mint

    async def create(
        self,
        *,
        directory: str | Path | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        title: str | None = None,
        permission: Ruleset | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        metadata: JsonObject | None = None,
        label: str | None = None,
    ) -> Session:
        """Create a session in a directory. An ``id`` that exists gives the stored session, unchanged.

        Only hosts with the ``label`` run it; its directory exists there.
        """
        wanted_label(label, metadata)
        if label is not None:
            metadata = {**(metadata or {}), "label": label}
        body = body_of(
            id=id,
            parentID=parent_id,
            title=title,
            permission=permission,
            agent=agent,
            model=session_model(model),
            metadata=metadata,
        )
        return await self._connection.call("POST", "/session", Session, query=located(directory), body=body)

    async def share(
        self,
        session_id: str,
        *,
        include: "Sequence[str] | None" = None,
        expires_s: float | None = EXPIRES_S,
    ) -> "ShareLink":
        """Give a session a link, which ends an earlier one. Secrets are masked in what it shows."""
        from turnkeeper.model.share import ShareLink

        body = {"expires": expires_s, **body_of(include=tuple(include) if include is not None else None)}
        return await self._connection.call("POST", f"/tk{path_of(session_id)}/share", ShareLink, body=body, waits=True)

    async def unshare(self, session_id: str) -> Session:
        """Withdraw the link to a session."""
        return await self._connection.call("DELETE", f"{path_of(session_id)}/share", Session)

    async def redactions(self, session_id: str) -> "RedactionReport":
        """What a link to a session would mask: counts by kind and place, and no secret."""
        from turnkeeper.model.redaction import RedactionReport

        return await self._connection.call("GET", f"/tk{path_of(session_id)}/redactions", RedactionReport, waits=True)

    async def get(self, session_id: str) -> Session:
        """A session."""
        return await self._connection.call("GET", path_of(session_id), Session)

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
    ) -> Page[Session]:
        """A page of sessions, newest activity first. ``after`` is the ``older`` cursor of the previous page."""
        query = {
            "project": project_id,
            "directory": str(directory) if directory is not None else None,
            "parent": parent_id,
            "roots": roots,
            "archived": archived,
            "search": search,
            "start": since,
            "limit": limit,
            "cursor": after,
        }
        found = await self._connection.answer("GET", "/experimental/session", query=query)
        items = self._connection.value(found, tuple[Session, ...])
        return Page(items=items, older=found.headers.get("x-next-cursor"))

    async def children(self, session_id: str, *, recursive: bool = False) -> Sequence[Session]:
        """The Child Sessions of a session."""
        found = list(await self._connection.call("GET", f"{path_of(session_id)}/children", tuple[Session, ...]))
        if recursive:
            for child in list(found):
                found += await self.children(child.id, recursive=True)
        return found

    async def update(
        self,
        session_id: str,
        *,
        title: str | None = None,
        metadata: JsonObject | None = None,
        permission: Ruleset | None = None,
    ) -> Session:
        """Change a session's title, metadata or permission rules. Rules are appended to the existing rules."""
        return await self._patch(session_id, body_of(title=title, metadata=metadata, permission=permission))

    async def rename(self, session_id: str, title: str) -> Session:
        """Set a session's title."""
        return await self.update(session_id, title=title)

    async def archive(self, session_id: str) -> Session:
        """Hide a session from the list; everything is kept."""
        return await self._patch(session_id, {"time": {"archived": self._mint.now()}})

    async def restore(self, session_id: str) -> Session:
        """Show an archived session on the list again."""
        return await self._patch(session_id, {"time": {"archived": None}})

    async def fork(
        self,
        session_id: str,
        *,
        message_id: str | None = None,
        at: int | None = None,
        directory: str | Path | None = None,
        worktree: str | Path | None = None,
    ) -> Session:
        """A new session with a copy of the history, whole or up to (without) a message; ``origin`` is not sent.

        With ``at``, the history is copied as it was after that event. ``worktree`` is a new directory on the server's
        machine, with the files of that moment.
        """
        if directory is not None:
            raise Invalid("a server forks into the directory of the original; leave out the directory")
        body = body_of(messageID=message_id, at=at, worktree=str(worktree) if worktree is not None else None)
        return await self._connection.call("POST", f"{path_of(session_id)}/fork", Session, body=body)

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session, its descendants and everything that belongs to them; returns them, children first."""
        gone = [*reversed(await self.children(session_id, recursive=True)), await self.get(session_id)]
        await self._connection.call("DELETE", path_of(session_id), bool)
        return gone

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list of a session."""
        return await self._connection.call("GET", f"{path_of(session_id)}/todo", tuple[Todo, ...])

    async def diffs(self, session_id: str, *, message_id: str | None = None) -> tuple[FileDiff, ...]:
        """The files that a session, or one of its prompts, changed."""
        query = {"messageID": message_id}
        return await self._connection.call("GET", f"{path_of(session_id)}/diff", tuple[FileDiff, ...], query=query)

    async def statuses(self) -> dict[str, Status]:
        """The status of each session that is not idle."""
        return await self._connection.call("GET", "/session/status", dict[str, Status])

    async def status(self, session_id: str) -> Status:
        """The status of a session: idle, busy, or waiting for a retry."""
        found = (await self.statuses()).get(session_id)
        if found is None:
            await self.get(session_id)  # Raises NotFound for an unknown session, which has no status.
        return found or IDLE

    # Messages.

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history, oldest first: the newest messages, or those before a cursor of another page."""
        if after is not None:
            raise Invalid("a server pages backwards only; use before, and the older cursor of a page")
        if limit < 1:  # For a server, 0 means all messages.
            raise Invalid(f"a page holds at least one item, not {limit}")
        query = {"limit": limit, "before": before}
        found = await self._connection.answer("GET", f"{path_of(session_id)}/message", query=query)
        items = self._connection.value(found, tuple[MessageWithParts, ...])
        return Page(items=items, older=found.headers.get("x-next-cursor"))

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """A message with its parts."""
        return await self._connection.call(
            "GET", f"{path_of(session_id)}/message/{quoted(message_id)}", MessageWithParts
        )

    async def remove_message(self, session_id: str, message_id: str) -> None:
        """Remove a message and its parts from the history."""
        await self.message(session_id, message_id)  # Raises NotFound, where the server would report success.
        await self._connection.call("DELETE", f"{path_of(session_id)}/message/{quoted(message_id)}", bool)

    async def _patch(self, session_id: str, change: JsonObject) -> Session:
        return await self._connection.call("PATCH", path_of(session_id), Session, body=change)


def body_of(**fields: object) -> dict[str, object]:
    """The body of a request: the fields that have a value."""
    return {name: value for name, value in fields.items() if value is not None}


def located(directory: str | Path | None) -> dict[str, str | int | bool | None] | None:
    """The query that names a directory."""
    return {"directory": str(directory)} if directory is not None else None


def path_of(session_id: str) -> str:
    """The path of a session."""
    return f"/session/{quoted(session_id)}"


def quoted(name: str) -> str:
    """A name as a segment of a path. Raises Invalid for an empty name, which would give another path."""
    if not name:
        raise Invalid("the id is empty; pass the id of a session, message or request")
    return quote(name, safe="")

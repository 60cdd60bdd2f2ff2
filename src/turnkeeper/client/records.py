"""Records: the sessions of a server and what was said in them: read, changed, removed."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from turnkeeper.core.arguments import checked
from turnkeeper.mint import Mint
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import FileDiff, Session, SessionModel
from turnkeeper.model.status import IDLE, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject

if TYPE_CHECKING:
    from turnkeeper.client.line import ServerConnection


@checked
class Records:
    """What needs no model and no stream. ``Client`` has the rest."""

    def __init__(self, line: "ServerConnection", mint: Mint) -> None:
        self._line, self._mint = line, mint

    async def create(
        self,
        *,
        directory: str | Path | None = None,
        id: str | None = None,
        parent_id: str | None = None,
        title: str | None = None,
        permission: Ruleset | None = None,
        agent: str | None = None,
        model: SessionModel | None = None,
        metadata: JsonObject | None = None,
    ) -> Session:
        """Begin a session in a directory. An ``id`` that exists gives the stored session, unchanged."""
        given = {
            "id": id,
            "parentID": parent_id,
            "title": title,
            "permission": permission,
            "agent": agent,
            "model": model,
            "metadata": metadata,
        }
        body = {name: value for name, value in given.items() if value is not None}
        return await self._line.call("POST", "/session", Session, query=located(directory), body=body)

    async def get(self, session_id: str) -> Session:
        """One session."""
        return await self._line.call("GET", path_of(session_id), Session)

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
        """A page of sessions, newest activity first. ``after`` is the ``older`` cursor of the page before."""
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
        found = await self._line.answer("GET", "/experimental/session", query=query)
        items = self._line.value(found, tuple[Session, ...])
        return Page(items=items, older=found.headers.get("x-next-cursor"))

    async def children(self, session_id: str, *, recursive: bool = False) -> Sequence[Session]:
        """The Child Sessions of a session."""
        found = list(await self._line.call("GET", f"{path_of(session_id)}/children", tuple[Session, ...]))
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
        """Change what a session says of itself; what is not given stays. Rules are added behind those there are."""
        given = {"title": title, "metadata": metadata, "permission": permission}
        return await self._patch(session_id, {name: value for name, value in given.items() if value is not None})

    async def rename(self, session_id: str, title: str) -> Session:
        """Give a session a title."""
        return await self.update(session_id, title=title)

    async def archive(self, session_id: str) -> Session:
        """Take a session off the list; it keeps everything."""
        return await self._patch(session_id, {"time": {"archived": self._mint.now()}})

    async def restore(self, session_id: str) -> Session:
        """Put an archived session back on the list."""
        return await self._patch(session_id, {"time": {"archived": None}})

    async def fork(
        self, session_id: str, *, message_id: str | None = None, directory: str | Path | None = None
    ) -> Session:
        """A new session with a copy of the history, whole or up to (without) a message; ``origin`` is not sent."""
        if directory is not None:
            raise Invalid("over a server a fork works where its original does; leave out the directory")
        body = {"messageID": message_id} if message_id is not None else {}
        return await self._line.call("POST", f"{path_of(session_id)}/fork", Session, body=body)

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session, its descendants and all that belongs to them; what was removed, children first."""
        gone = [*reversed(await self.children(session_id, recursive=True)), await self.get(session_id)]
        await self._line.call("DELETE", path_of(session_id), bool)
        return gone

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list."""
        return await self._line.call("GET", f"{path_of(session_id)}/todo", tuple[Todo, ...])

    async def diffs(self, session_id: str, *, message_id: str | None = None) -> tuple[FileDiff, ...]:
        """What the session, or one prompt of it, changed on disk, file by file."""
        query = {"messageID": message_id}
        return await self._line.call("GET", f"{path_of(session_id)}/diff", tuple[FileDiff, ...], query=query)

    async def statuses(self) -> dict[str, Status]:
        """What sessions are doing, of those that are doing anything."""
        return await self._line.call("GET", "/session/status", dict[str, Status])

    async def status(self, session_id: str) -> Status:
        """What a session is doing: idle, busy, or waiting to try again."""
        found = (await self.statuses()).get(session_id)
        if found is None:
            await self.get(session_id)  # Raises NotFound: what is not there is not idle.
        return found or IDLE

    # What was said.

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history in the order it happened: the newest, or those before a cursor of another page."""
        if after is not None:
            raise Invalid("over a server history is read backwards; use before, and the older cursor of a page")
        if limit < 1:  # A server would take 0 for all of them.
            raise Invalid(f"a page holds at least one item, not {limit}")
        query = {"limit": limit, "before": before}
        found = await self._line.answer("GET", f"{path_of(session_id)}/message", query=query)
        items = self._line.value(found, tuple[MessageWithParts, ...])
        return Page(items=items, older=found.headers.get("x-next-cursor"))

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts."""
        return await self._line.call("GET", f"{path_of(session_id)}/message/{quoted(message_id)}", MessageWithParts)

    async def remove_message(self, session_id: str, message_id: str) -> None:
        """Take a message and its parts out of the history."""
        await self.message(session_id, message_id)  # Raises NotFound: a server calls what is not there removed.
        await self._line.call("DELETE", f"{path_of(session_id)}/message/{quoted(message_id)}", bool)

    async def _patch(self, session_id: str, change: JsonObject) -> Session:
        return await self._line.call("PATCH", path_of(session_id), Session, body=change)


def located(directory: str | Path | None) -> dict[str, str | int | bool | None] | None:
    """The query that names a directory."""
    return {"directory": str(directory)} if directory is not None else None


def path_of(session_id: str) -> str:
    """Where a session is."""
    return f"/session/{quoted(session_id)}"


def quoted(name: str) -> str:
    """A name as a segment of a path, whatever was typed. Raises Invalid for none: the path would be another one."""
    if not name:
        raise Invalid("the id is empty; say which one is meant")
    return quote(name, safe="")

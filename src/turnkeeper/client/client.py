"""Client: the sessions of a server. The methods and values are those of Turnkeeper; refusals are raised as there."""

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from turnkeeper.client.values import Answer, Health, PendingPermission, SessionEvent
from turnkeeper.mint import Mint
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import FileDiff, Session, SessionModel
from turnkeeper.model.status import IDLE, Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.store.page import Page
from turnkeeper.store.queries import MessageWithParts

if TYPE_CHECKING:
    import httpx2

    from turnkeeper.client.line import Sleep
    from turnkeeper.client.memory import Application
    from turnkeeper.client.subscription import Subscription

USERNAME: Final = "opencode"
AGENT: Final = "build"
SILENCE_S: Final = 30.0
"""How long a stream may be silent: servers say something every ten seconds."""
TAIL_SILENCE_S: Final = 90.0
"""The same for the stream of one session, which is silent while nothing happens; coming back costs one request."""


class _Durable(Value):
    seq: int
    version: int


class _Event(Value):
    id: str
    type: str
    durable: _Durable
    data: JsonObject

    def event(self) -> SessionEvent:
        return SessionEvent(
            id=self.id, type=self.type, number=self.durable.seq, version=self.durable.version, data=self.data
        )


class _History(Value):
    data: tuple[_Event, ...]
    has_more: bool


class Client:
    """A server's sessions: ``async with Client("http://127.0.0.1:4096") as client``. Any number of tasks may use it.

    ``directory`` is where new sessions work: on the server's machine, by default where the server was started.
    """

    def __init__(
        self,
        url: str,
        *,
        directory: str | Path | None = None,
        username: str | None = None,
        password: str | None = None,
        transport: "httpx2.AsyncBaseTransport | None" = None,
        sleep: "Sleep | None" = None,
    ) -> None:
        import anyio

        # Imported here, as httpx2 takes longer to load than most commands take.
        from turnkeeper.client.line import Line

        if not url.startswith(("http://", "https://")):
            raise Invalid(f"{url!r} is no address of a server; write http://HOST:PORT")
        self.url = url
        self._mint = Mint()
        self._line: Line = Line(
            url,
            directory=str(directory) if directory is not None else None,
            auth=(username or USERNAME, password) if password is not None else None,
            transport=transport,
            sleep=sleep or anyio.sleep,
        )

    @classmethod
    def in_memory(
        cls,
        app: "Application",
        *,
        directory: str | Path | None = None,
        username: str | None = None,
        password: str | None = None,
        sleep: "Sleep | None" = None,
    ) -> "Client":
        """A client of an ASGI application in this process, without a socket."""
        from turnkeeper.client.memory import ADDRESS, InMemory

        return cls(
            ADDRESS,
            directory=directory,
            username=username,
            password=password,
            transport=InMemory(app),
            sleep=sleep,
        )

    async def __aenter__(self) -> "Client":
        await self._line.http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._line.http.__aexit__(kind, error, traceback)

    async def health(self) -> Health:
        """Whether the server is well, and its version."""
        return await self._line.call("GET", "/global/health", Health)

    # Sessions.

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
        return await self._line.call("POST", "/session", Session, query=_in(directory), body=body)

    async def get(self, session_id: str) -> Session:
        """One session."""
        return await self._line.call("GET", _of(session_id), Session)

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
        found = list(await self._line.call("GET", f"{_of(session_id)}/children", tuple[Session, ...]))
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
        """A new session with a copy of the history, whole or up to (without) a message."""
        if directory is not None:
            raise Invalid("over a server a fork works where its original does; leave out the directory")
        body = {"messageID": message_id} if message_id is not None else {}
        return await self._line.call("POST", f"{_of(session_id)}/fork", Session, body=body)

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session, its descendants and all that belongs to them; what was removed, children first."""
        gone = [*reversed(await self.children(session_id, recursive=True)), await self.get(session_id)]
        await self._line.call("DELETE", _of(session_id), bool)
        return gone

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list."""
        return await self._line.call("GET", f"{_of(session_id)}/todo", tuple[Todo, ...])

    async def diffs(self, session_id: str, *, message_id: str | None = None) -> tuple[FileDiff, ...]:
        """What the session, or one prompt of it, changed on disk, file by file."""
        query = {"messageID": message_id}
        return await self._line.call("GET", f"{_of(session_id)}/diff", tuple[FileDiff, ...], query=query)

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
        query = {"limit": limit, "before": before}
        found = await self._line.answer("GET", f"{_of(session_id)}/message", query=query)
        items = self._line.value(found, tuple[MessageWithParts, ...])
        return Page(items=items, older=found.headers.get("x-next-cursor"))

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts."""
        return await self._line.call("GET", f"{_of(session_id)}/message/{_quoted(message_id)}", MessageWithParts)

    async def remove_message(self, session_id: str, message_id: str) -> None:
        """Take a message and its parts out of the history."""
        await self._line.call("DELETE", f"{_of(session_id)}/message/{_quoted(message_id)}", bool)

    # Work.

    async def prompt(self, session_id: str, prompt: str | Prompt) -> MessageWithParts:
        """Send a prompt and wait until the session rests: the last thing that was said.

        It has an id, so that it is sent again on a broken line and yet admitted once.
        """
        body = self._prompt(prompt)
        return await self._line.call(
            "POST", f"{_of(session_id)}/message", MessageWithParts, body=body, waits=True, again=True
        )

    async def prompt_async(self, session_id: str, prompt: str | Prompt) -> str:
        """Send a prompt: once this returns it is safe. The id of its message; what comes of it is heard of."""
        body = self._prompt(prompt)
        await self._line.answer("POST", f"{_of(session_id)}/prompt_async", body=body, again=True)
        assert body.message_id is not None
        return body.message_id

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: ModelChoice | None = None
    ) -> MessageWithParts:
        """Run a command of the user's in a session that rests; its output becomes part of the history."""
        body: dict[str, object] = {"command": command, "agent": agent or (await self.get(session_id)).agent or AGENT}
        if model is not None:
            body["model"] = model
        return await self._line.call("POST", f"{_of(session_id)}/shell", MessageWithParts, body=body, waits=True)

    async def abort(self, session_id: str) -> bool:
        """Stop a session and wait until all is settled; whether it was doing anything."""
        was_idle = await self.status(session_id) == IDLE
        await self._line.call("POST", f"{_of(session_id)}/abort", bool, waits=True)
        return not was_idle

    async def interrupt(self, session_id: str) -> bool:
        """The same as ``abort``: what is stopped is stopped where it runs."""
        return await self.abort(session_id)

    async def wait(self, session_id: str) -> None:
        """Wait until a session rests, if the server runs it."""
        await self._line.answer("POST", f"/api{_of(session_id)}/wait", waits=True, again=True)

    async def compact(self, session_id: str, *, auto: bool = False, model: ModelChoice | None = None) -> None:
        """Let a Summary take the place of older history; it is done however small the session is.

        ``auto`` lets the session go on with its work. Raises Busy while it runs.
        """
        if model is None and not auto:
            await self._line.answer("POST", f"/api{_of(session_id)}/compact", waits=True)
            return
        if model is None:
            model = await self._model(session_id)
        body = {"providerID": model.provider_id, "modelID": model.model_id, "auto": auto}
        await self._line.call("POST", f"{_of(session_id)}/summarize", bool, body=body, waits=True)

    async def _model(self, session_id: str) -> ModelChoice:
        chosen = (await self.get(session_id)).model
        if chosen is None:
            raise Invalid(f"session {session_id!r} has used no model yet; name one")
        return ModelChoice(provider_id=chosen.provider_id, model_id=chosen.id)

    # Questions.

    async def permissions(self, *, directory: str | Path | None = None) -> tuple[PendingPermission, ...]:
        """Questions for permission that wait for an answer in a directory."""
        return await self._line.call("GET", "/permission", tuple[PendingPermission, ...], query=_in(directory))

    async def reply(self, request_id: str, answer: Answer, *, message: str | None = None) -> None:
        """Answer a question for permission. A message with a rejection is advice for the model, which then goes on."""
        body = {"reply": answer, **({"message": message} if message is not None else {})}
        await self._line.call("POST", f"/permission/{_quoted(request_id)}/reply", bool, body=body)

    # What happens.

    def subscribe(self, *, session_id: str | None = None, size: int = 0) -> "Subscription":
        """What happens from now on: ``async with client.subscribe() as heard: async for one in heard``.

        It comes back by itself when the line breaks. ``size`` is of no account: the server's queue is bounded.
        """
        from turnkeeper.client.frames import Frames
        from turnkeeper.client.subscription import Subscription

        async def read(before: str | None) -> Page[MessageWithParts]:
            return await self.messages(session_id or "", before=before)

        async def status() -> Status:
            return await self.status(session_id or "")

        frames = Frames(self._line, "/global/event", {"ids": True}, silence_s=SILENCE_S)
        return Subscription(frames, session_id, read, status)

    async def history(self, session_id: str, *, after: int = 0, limit: int = 50) -> tuple[Sequence[SessionEvent], bool]:
        """Durable events of a session behind a number, and whether there are more."""
        query = {"after": after, "limit": limit}
        found = await self._line.call("GET", f"/api{_of(session_id)}/history", _History, query=query)
        return [one.event() for one in found.data], found.has_more

    async def events(self, session_id: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """The durable events of a session behind a number, then each new one. Never ends.

        A broken line leaves no gap and repeats nothing, also if the server was started anew meanwhile.
        """
        import msgspec

        from turnkeeper.client.frames import Frames

        path = f"/api{_of(session_id)}/event"
        frames = Frames(self._line, path, {"ids": True}, silence_s=TAIL_SILENCE_S, last=str(after))
        decoder = msgspec.json.Decoder(_Event)
        async with aclosing(frames):
            await frames.open()
            while True:
                yield decoder.decode((await frames.next()).data).event()

    def _prompt(self, prompt: str | Prompt) -> Prompt:
        if isinstance(prompt, str):
            prompt = Prompt(parts=(TextInput(text=prompt),))
        return prompt if prompt.message_id is not None else prompt.but(message_id=self._mint.message_id())

    async def _patch(self, session_id: str, change: JsonObject) -> Session:
        return await self._line.call("PATCH", _of(session_id), Session, body=change)


def _in(directory: str | Path | None) -> dict[str, str | int | bool | None] | None:
    return {"directory": str(directory)} if directory is not None else None


def _of(session_id: str) -> str:
    return f"/session/{_quoted(session_id)}"


def _quoted(name: str) -> str:
    return quote(name, safe="")

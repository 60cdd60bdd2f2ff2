"""Client: the sessions of a server, with the methods, values and refusals of Turnkeeper."""

import warnings
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from turnkeeper.client.records import Records, body_of, located, path_of, quoted
from turnkeeper.client.values import (
    AgentSummary,
    Health,
    MessagePage,
    SavedPermissions,
    SessionEvent,
    UsableProviders,
    WireEvent,
)
from turnkeeper.core.arguments import checked
from turnkeeper.core.commands import ACTIONS
from turnkeeper.mint import Mint
from turnkeeper.model.command import Command
from turnkeeper.model.message import ModelChoice, ModelName, model_choice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.page import Page
from turnkeeper.model.permission import Absence, PermissionAnswer, PermissionRequest, SavedApproval
from turnkeeper.model.plugin import PluginStatus
from turnkeeper.model.prompt import FileInput, Prompt, TextInput
from turnkeeper.model.question import QuestionRequest
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.restore import Reverted
from turnkeeper.model.session import Session
from turnkeeper.model.status import IDLE, Status

if TYPE_CHECKING:
    import httpx2

    from turnkeeper.client.connection import Sleep
    from turnkeeper.client.memory import Application
    from turnkeeper.client.subscription import Subscription

USERNAME: Final = "opencode"
AGENT: Final = "build"
SILENCE_S: Final = 30.0
"""How long a stream may be silent: servers send a heartbeat every ten seconds."""
TAIL_SILENCE_S: Final = 90.0
"""How long the stream of one session may be silent. It has no heartbeat; reconnecting costs one request."""


@checked
class Client(Records):
    """A server's sessions: ``async with Client("http://127.0.0.1:4096") as client``. Any number of tasks may use it.

    ``directory`` is where new sessions work, on the server's machine: by default where the server was started.
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

        # Imported here, because httpx2 takes longer to load than most commands take to run.
        from turnkeeper.client.connection import ServerConnection

        if not url.startswith(("http://", "https://")):
            raise Invalid(f"{url!r} is not the URL of a server; write http://HOST:PORT")
        self.url = url
        connection = ServerConnection(
            url,
            directory=str(directory) if directory is not None else None,
            auth=(username or USERNAME, password) if password is not None else None,
            transport=transport,
            sleep=sleep or anyio.sleep,
        )
        super().__init__(connection, Mint())

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
        """A client of an ASGI application in this process, without a socket: ``App(Service(tk, ...), routes.load)``."""
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
        await self._connection.http.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._connection.http.__aexit__(kind, error, traceback)

    @property
    def is_lost(self) -> bool:
        """Whether the server does not answer now, and a request or a stream is being tried again."""
        return bool(self._connection.retried)

    async def health(self) -> Health:
        """Whether the server is healthy, and its version."""
        return await self._connection.call("GET", "/global/health", Health)

    async def agents(self, *, directory: str | Path | None = None) -> tuple[AgentSummary, ...]:
        """The agents of a directory on the server, by default that of the client."""
        return await self._connection.call("GET", "/agent", tuple[AgentSummary, ...], query=located(directory))

    async def models(self, *, directory: str | Path | None = None) -> dict[str, str]:
        """The names of the models that a directory on the server can use, by ``provider/model``."""
        found = await self.providers(directory=directory)
        return {f"{one.id}/{id}": model.name for one in found.providers for id, model in one.models.items()}

    async def plugins(self, *, directory: str | Path | None = None) -> tuple[PluginStatus, ...]:
        """The plugins of a directory on the server, and what went wrong in each last."""
        return await self._connection.call("GET", "/plugin", tuple[PluginStatus, ...], query=located(directory))

    async def providers(self, *, directory: str | Path | None = None) -> UsableProviders:
        """The providers that a directory on the server can use, with their models."""
        return await self._connection.call("GET", "/config/providers", UsableProviders, query=located(directory))

    # Runs.

    async def prompt(self, session_id: str, prompt: str | Prompt) -> MessageWithParts:
        """Send a prompt and wait until the session is idle; returns the last answer.

        The prompt has an id, so it is retried after a connection error and still admitted once.
        """
        body = self._prompt(prompt)
        return await self._connection.call(
            "POST", f"{path_of(session_id)}/message", MessageWithParts, body=body, waits=True, again=True
        )

    async def prompt_async(self, session_id: str, prompt: str | Prompt) -> str:
        """Send a prompt; it is durable when this returns the id of its message. The answer is published as events."""
        body = self._prompt(prompt)
        await self._connection.answer("POST", f"{path_of(session_id)}/prompt_async", body=body, again=True)
        assert body.message_id is not None
        return body.message_id

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: ModelName | None = None
    ) -> MessageWithParts:
        """Run a shell command of the user in an idle session; its output becomes part of the history."""
        chosen = model_choice(model) if model is not None else None
        body = body_of(command=command, agent=agent or (await self.get(session_id)).agent or AGENT, model=chosen)
        return await self._connection.call(
            "POST", f"{path_of(session_id)}/shell", MessageWithParts, body=body, waits=True
        )

    async def commands(self, directory: str | Path | None = None) -> tuple[Command, ...]:
        """The commands of a directory, by name, with the built-in actions. ``where`` says only that they are known."""
        listed = await self._connection.call("GET", "/command", tuple[Command, ...], query=located(directory))
        known = {**ACTIONS, **{one.name: one.but(where=self.url) for one in listed}}
        return tuple(one for _, one in sorted(known.items()))

    async def command(
        self,
        session_id: str,
        name: str,
        arguments: str = "",
        *,
        input: str = "",
        files: Sequence[FileInput] = (),
        id: str | None = None,
        agent: str | None = None,
        model: ModelName | None = None,
        variant: str | None = None,
    ) -> MessageWithParts:
        """Send a command as a prompt and wait until the session is idle; returns the last answer.

        It has an id, so it is retried after a connection error and still expanded and admitted once.
        """
        chosen = model_choice(model) if model is not None else None
        body = body_of(
            command=name,
            arguments=arguments,
            input=input or None,
            parts=tuple(files) or None,
            messageID=id or self._mint.message_id(),
            agent=agent or None,
            model=f"{chosen.provider_id}/{chosen.model_id}" if chosen is not None else None,
            variant=variant or (chosen.variant if chosen is not None else None) or None,
        )
        path = f"{path_of(session_id)}/command"
        return await self._connection.call("POST", path, MessageWithParts, body=body, waits=True, again=True)

    async def stop(self, session_id: str) -> bool:
        """Stop a session and wait until its calls are settled; returns whether it was running."""
        was_idle = await self.status(session_id) == IDLE
        await self._connection.call("POST", f"{path_of(session_id)}/abort", bool, waits=True)
        return not was_idle

    async def abort(self, session_id: str) -> bool:
        """Deprecated: use ``stop``."""
        warnings.warn("abort is deprecated; use stop", DeprecationWarning, stacklevel=2)
        return await self.stop(session_id)

    async def interrupt(self, session_id: str) -> bool:
        """Deprecated: use ``stop``."""
        warnings.warn("interrupt is deprecated; use stop", DeprecationWarning, stacklevel=2)
        return await self.stop(session_id)

    async def wait(self, session_id: str) -> None:
        """Wait until a session is idle, whichever process runs it."""
        await self._connection.answer("POST", f"/api{path_of(session_id)}/wait", waits=True, again=True)

    async def compact(self, session_id: str, *, auto: bool = False, model: ModelName | None = None) -> None:
        """Replace older history by a Summary, however short the history is.

        ``auto`` lets the session continue its work. Raises Busy while it runs.
        """
        if model is None and not auto:
            await self._connection.answer("POST", f"/api{path_of(session_id)}/compact", waits=True)
            return
        chosen = model_choice(model) if model is not None else await self._model(session_id)
        body = {"providerID": chosen.provider_id, "modelID": chosen.model_id, "auto": auto}
        await self._connection.call("POST", f"{path_of(session_id)}/summarize", bool, body=body, waits=True)

    async def revert(self, session_id: str, message_id: str, *, part_id: str | None = None) -> Session:
        """Set history and files aside from a message or part on. Nothing changes if there is none. Raises Busy."""
        body = body_of(messageID=message_id, partID=part_id)
        return await self._connection.call("POST", f"{path_of(session_id)}/revert", Session, body=body, waits=True)

    async def unrevert(self, session_id: str) -> Session:
        """Bring back what a revert has set aside. Raises Busy."""
        return await self._connection.call("POST", f"{path_of(session_id)}/unrevert", Session, waits=True)

    async def undo(self, session_id: str, *, message_id: str | None = None, dry_run: bool = False) -> Reverted:
        """Revert the last prompt and what followed it; once more: the prompt before. Or revert from a message on.

        ``dry_run`` only says what would become of each file. Raises Busy while the session runs.
        """
        body = body_of(dryRun=dry_run, messageID=message_id)
        return await self._connection.call("POST", f"{path_of(session_id)}/undo", Reverted, body=body, waits=True)

    async def redo(self, session_id: str, *, dry_run: bool = False) -> Reverted:
        """Bring back the first prompt that was undone, with what followed it. Raises Busy, and Invalid if none was."""
        body = {"dryRun": dry_run}
        return await self._connection.call("POST", f"{path_of(session_id)}/redo", Reverted, body=body, waits=True)

    async def _model(self, session_id: str) -> ModelChoice:
        chosen = (await self.get(session_id)).model
        if chosen is None:
            raise Invalid(f"session {session_id!r} has used no model yet; name one")
        return model_choice(chosen)

    # Permission requests.

    async def permissions(self, *, directory: str | Path | None = None) -> tuple[PermissionRequest, ...]:
        """Pending permission requests of a directory."""
        return await self._connection.call(
            "GET", "/permission", tuple[PermissionRequest, ...], query=located(directory)
        )

    async def reply(
        self,
        request_id: str,
        answer: PermissionAnswer,
        *,
        message: str | None = None,
        absence: Absence | None = None,
    ) -> None:
        """Reply to a permission request. A message with a rejection is advice for the model, which then continues.

        ``absence`` says why a rejection is not the user's own, which the model is told. The first reply holds, so it is
        retried after a connection error; NotFound may then mean that it had arrived.
        """
        body = body_of(reply=answer, message=message, absence=absence)
        await self._connection.call("POST", f"/permission/{quoted(request_id)}/reply", bool, body=body, again=True)

    async def questions(self, *, directory: str | Path | None = None) -> tuple[QuestionRequest, ...]:
        """Questions of models that wait for an answer in a directory."""
        return await self._connection.call("GET", "/question", tuple[QuestionRequest, ...], query=located(directory))

    async def answer(
        self, request_id: str, given: Sequence[Sequence[str]] | None, *, absence: Absence | None = None
    ) -> None:
        """Answer questions of a model: for each the chosen labels or a text of your own. None dismisses them.

        ``absence`` says why a dismissal is not the user's own, which the model is told. Retried as ``reply`` is.
        """
        path = f"/question/{quoted(request_id)}"
        if given is None:
            query = {"absence": absence} if absence is not None else None
            await self._connection.call("POST", f"{path}/reject", bool, query=query, again=True)
        else:
            await self._connection.call("POST", f"{path}/reply", bool, body={"answers": given}, again=True)

    async def approvals(self) -> tuple[SavedApproval, ...]:
        """What was allowed for good, in every project."""
        found = await self._connection.call("GET", "/api/permission/saved", SavedPermissions)
        return tuple(one.approval() for one in found.data)

    async def revoke(self, approval_id: str) -> None:
        """Take back what was allowed for good."""
        await self._connection.answer("DELETE", f"/api/permission/saved/{quoted(approval_id)}")

    # Events.

    def subscribe(self, *, session_id: str | None = None, size: int = 0) -> "Subscription":
        """Notifications from now on: ``async with client.subscribe() as events: async for one in events``.

        The subscription reconnects by itself. ``size`` has no effect: the server's queue is bounded.
        """
        from turnkeeper.client.frames import Frames
        from turnkeeper.client.subscription import Subscription

        async def read(before: str | None) -> Page[MessageWithParts]:
            return await self.messages(session_id or "", before=before)

        async def status() -> Status:
            return await self.status(session_id or "")

        frames = Frames(self._connection, "/global/event", {"ids": True}, silence_s=SILENCE_S)
        return Subscription(frames, session_id, read, status)

    async def history(self, session_id: str, *, after: int = 0, limit: int = 50) -> tuple[Sequence[SessionEvent], bool]:
        """Durable events of a session after an event number, and whether there are more."""
        query = {"after": after, "limit": limit}
        found = await self._connection.call("GET", f"/api{path_of(session_id)}/history", MessagePage, query=query)
        return [one.event() for one in found.data], found.has_more

    async def events(self, session_id: str, *, after: int = 0) -> AsyncIterator[SessionEvent]:
        """The durable events of a session after an event number, then each new one.

        It ends only with the session: NotFound is raised once that is removed. After a connection
        error no event is missing or repeated, also if the server was restarted.
        """
        import msgspec

        from turnkeeper.client.frames import Frames

        path = f"/api{path_of(session_id)}/event"
        frames = Frames(self._connection, path, {"ids": True}, silence_s=TAIL_SILENCE_S, last=str(after))
        decoder = msgspec.json.Decoder(WireEvent)
        async with aclosing(frames):
            await frames.open()
            while True:
                yield decoder.decode((await frames.next()).data).event()

    def _prompt(self, prompt: str | Prompt) -> Prompt:
        if isinstance(prompt, str):
            prompt = Prompt(parts=(TextInput(text=prompt),))
        if not isinstance(prompt, Prompt):
            raise Invalid(f"a prompt is text or a Prompt, not {prompt!r:.80}")
        return prompt if prompt.message_id is not None else prompt.but(message_id=self._mint.message_id())

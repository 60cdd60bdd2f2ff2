"""The Python interface: what a program does with an open store. Every method is one use case."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from turnkeeper.bus import Bus, Listener, Subscription
from turnkeeper.core.entry import Recorded
from turnkeeper.core.limits import RECALL_HITS_MAX, RECALL_PAGE_CHARS
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import Part
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.session import FileDiff, Session, SessionModel
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import JsonObject
from turnkeeper.sessions import create, edit, fork, history, listing, remove
from turnkeeper.store.page import Page
from turnkeeper.store.queries import Found, MessageWithParts
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import identify

if TYPE_CHECKING:
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.core.recall import RecallHit, RecallPage
    from turnkeeper.interop.export_all import Layout
    from turnkeeper.interop.report import ImportReport, Progress
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.prompt import Prompt, Receipt
    from turnkeeper.model.status import Status
    from turnkeeper.registry import Registration
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.run.recover import Left, Recovery
    from turnkeeper.run.runtime import Runtime, Settings
    from turnkeeper.sessions.compact import Compacted
    from turnkeeper.sessions.context import ContextReport
    from turnkeeper.sessions.diagnosis import Diagnosis
    from turnkeeper.store.documents import LedgerRow


class Turnkeeper:
    """Durable agent sessions. Every method is safe to call from several tasks and several processes at once."""

    def __init__(
        self,
        store: Store,
        bus: "Bus[Notification | Delta]",
        directory: Path,
        settings: "Settings | Callable[[], Settings] | None" = None,
    ) -> None:
        self.store = store
        self.group: TaskGroup | None = None
        """Where drains live; None while nothing can be run."""
        self._bus, self._directory, self._settings = bus, directory, settings
        self._running: Runtime | None = None

    @property
    def runtime(self) -> "Runtime":
        """What runs sessions in this process; made when it is first needed."""
        if self._running is None:
            # Imported here: who only looks at sessions must not pay for what runs them.
            from turnkeeper.run.runtime import Runtime, Settings

            assert self.group is not None, "a store that was opened only to look at runs nothing"
            settings = self._settings() if callable(self._settings) else self._settings
            self._running = Runtime(self.store, self.group, self._bus.publish, settings or Settings())
        return self._running

    @property
    def running(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return self._running.active if self._running is not None else frozenset()

    @property
    def bus(self) -> "Bus[Notification | Delta]":
        """Where what happens is told; for those who measure."""
        return self._bus

    def context(self, component: "ContextComponent") -> "Registration[ContextComponent]":
        """Let every session that is run here know one more fact: ``with tk.context(component): ...``.

        It is told at the next boundary and leaves with the scope; registering it again is how a plugin is reloaded.
        """
        return self.runtime.components.register(component)

    async def stop(self) -> None:
        """Stop every session that is being run here, and wait until all is settled."""
        if self._running is not None:
            await self._running.aclose()

    async def prompt(
        self,
        session_id: str,
        prompt: "str | Prompt",
        *,
        resume: bool = True,
    ) -> "Receipt":
        """Admit a prompt: once this returns it is safe. The session is then run, unless ``resume`` is False."""
        from turnkeeper.model.prompt import Prompt, TextInput
        from turnkeeper.sessions import prompt as prompting

        if isinstance(prompt, str):
            prompt = Prompt(parts=(TextInput(text=prompt),))
        receipt = await prompting.prompt(self.store, self.runtime, session_id, prompt)
        if resume and not prompt.no_reply:
            self.runtime.wake(session_id)
        return receipt

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: "ModelChoice | None" = None
    ) -> MessageWithParts:
        """Run a command of the user's in a session that rests; its output becomes part of the history.

        No model is asked. Raises Busy while the session runs; a prompt that comes meanwhile is run after it.
        """
        from turnkeeper.sessions import shell

        session = await self.store.queries.session(session_id)
        place = await identify(session.directory)
        return await shell.shell(self.store, self.runtime, place, session, command, agent=agent, model=model)

    async def run(self, session_id: str, *, resume: bool = False) -> "Outcome":
        """Run a session until it rests. ``resume`` asks for one more turn where the last one failed or was stopped."""
        await self.store.queries.state(session_id)
        return await self.runtime.run(session_id, resume=resume)

    async def compact(
        self, session_id: str, *, force: bool = False, auto: bool = False, model: "ModelChoice | None" = None
    ) -> "Compacted":
        """Let a Summary take the place of older history, which is kept for ``recall``; only if it is worth it.

        ``force`` does it in any case; ``auto`` lets the session go on with its work. Raises Busy while it runs.
        """
        from turnkeeper.sessions import compact

        session = await self.store.queries.session(session_id)
        place = await identify(session.directory)
        done = await compact.compact(self.store, self.runtime, place, session, force=force, auto=auto, model=model)
        if auto and done.summary is not None:
            self.runtime.wake(session_id)
        return done

    async def wait(self, session_id: str) -> "Outcome":
        """Wait until a session rests, if it is being run here."""
        return await self.runtime.wait(session_id)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session and wait until all is settled; whether it was being run here."""
        return self._running is not None and await self._running.interrupt(session_id)

    async def abort(self, session_id: str) -> bool:
        """Stop a session here, or close what a dead process left open; whether there was anything to stop.

        Raises Busy while another living process runs it: only that process can stop.
        """
        from turnkeeper.sessions import abort

        return await self.interrupt(session_id) or await abort.close(self.store, session_id)

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait until what is done for a session beside its turns is done: a session that ends here gets its title."""
        if self._running is not None:
            await self._running.wait_upkeep(session_id)

    async def recover(
        self, policy: "Recovery | None" = None, *, ask: Callable[[str], Awaitable[bool]] | None = None
    ) -> Sequence[str]:
        """Close what dead processes left open and run on what may be, by policy; the sessions that were found."""
        return await self.runtime.recover(policy, ask=ask)

    async def take_over(self) -> "Sequence[Left]":
        """The first half of ``recover``: close what dead processes left open. What may go on waits for ``run_on``."""
        if not await self.store.engine.scan(("busy",), limit=1):
            return ()  # Nothing is open: there is no need to load what runs sessions.
        return await self.runtime.take_over()

    async def run_on(self, left: "Sequence[Left]") -> None:
        """The second half of ``recover``: run what was taken over and has something to do, until it rests."""
        if not all(one.rests for one in left):
            await self.runtime.run_on(left)

    async def status(self, session_id: str) -> "Status":
        """What a session is doing: idle, busy, or waiting to try again."""
        return (await self.store.queries.state(session_id)).status

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
        place = await identify(directory or self._directory)
        return await create.create(
            self.store,
            place,
            id=id,
            parent_id=parent_id,
            title=title,
            permission=permission,
            agent=agent,
            model=model,
            metadata=metadata,
        )

    async def get(self, session_id: str) -> Session:
        """One session."""
        return await self.store.queries.session(session_id)

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
        return await listing.sessions(
            self.store,
            project_id=project_id,
            directory=str(directory) if directory is not None else None,
            parent_id=parent_id,
            roots=roots,
            archived=archived,
            search=search,
            since=since,
            limit=limit,
            after=after,
        )

    async def children(self, session_id: str, *, recursive: bool = False) -> Sequence[Session]:
        """The Child Sessions of a session."""
        await self.store.queries.state(session_id)
        return await self.store.queries.children(session_id, recursive=recursive)

    async def update(self, session_id: str, editor: Callable[[Session], Session]) -> Session:
        """Change a session by a pure function, atomically: ``lambda session: session.but(title="New")``."""
        return await edit.update(self.store, session_id, editor)

    async def rename(self, session_id: str, title: str) -> Session:
        """Give a session a title."""
        return await edit.rename(self.store, session_id, title)

    async def touch(self, session_id: str) -> Session:
        """Count something as activity."""
        return await edit.touch(self.store, session_id)

    async def archive(self, session_id: str) -> Session:
        """Take a session off the list; it keeps everything."""
        return await edit.archive(self.store, session_id)

    async def restore(self, session_id: str) -> Session:
        """Put an archived session back on the list."""
        return await edit.restore(self.store, session_id)

    async def move(self, session_id: str, directory: str | Path) -> Session:
        """Let a session work in another directory from now on."""
        return await edit.move(self.store, session_id, await identify(directory))

    async def fork(
        self, session_id: str, *, message_id: str | None = None, directory: str | Path | None = None
    ) -> Session:
        """A new session with a copy of the history, whole or up to (without) a message."""
        place = await identify(directory) if directory is not None else None
        return await fork.fork(self.store, session_id, message_id=message_id, place=place)

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session, its descendants and all that belongs to them; what was removed, children first."""
        if self._running is not None:
            await self._running.forget(session_id)
        return await remove.remove(self.store, session_id, self._bus.publish)

    async def messages(
        self, session_id: str, *, limit: int = 50, before: str | None = None, after: str | None = None
    ) -> Page[MessageWithParts]:
        """A page of the history in the order it happened: the newest, or next to a cursor of another page."""
        return await self.store.queries.messages(session_id, limit=limit, before=before, after=after)

    def stream(self, session_id: str, *, reverse: bool = True) -> AsyncIterator[MessageWithParts]:
        """Every message, newest first unless asked otherwise, without ever loading the whole history."""
        return self.store.queries.stream(session_id, reverse=reverse)

    async def message(self, session_id: str, message_id: str) -> MessageWithParts:
        """One message with its parts."""
        return await self.store.queries.message(session_id, message_id)

    async def update_part(self, part: Part) -> Part:
        """Record a part anew, whole. It keeps its place in the message."""
        return await history.update_part(self.store, part)

    async def remove_part(self, session_id: str, message_id: str, part_id: str) -> None:
        """Take a part out of its message."""
        await history.remove_part(self.store, session_id, message_id, part_id)

    async def remove_message(self, session_id: str, message_id: str) -> None:
        """Take a message and its parts out of the history."""
        await history.remove_message(self.store, session_id, message_id)

    async def todos(self, session_id: str) -> tuple[Todo, ...]:
        """The task list."""
        await self.store.queries.state(session_id)
        return await self.store.queries.todos(session_id)

    async def set_todos(self, session_id: str, todos: Iterable[Todo]) -> tuple[Todo, ...]:
        """Replace the task list."""
        return await edit.set_todos(self.store, session_id, tuple(todos))

    async def explain_context(self, session_id: str) -> "ContextReport":
        """What the model of a session was told, and how much of each request its provider could reuse."""
        from turnkeeper.sessions import context

        return await context.report(self.store, session_id)

    def ledger(self, session_id: str | None = None) -> "AsyncIterator[LedgerRow]":
        """What was paid for: one row for each attempt, of one session or of all."""
        return self.store.queries.ledger(session_id)

    async def diffs(self, session_id: str) -> tuple[FileDiff, ...]:
        """What the session changed on disk, file by file."""
        await self.store.queries.state(session_id)
        return await self.store.queries.diffs(session_id)

    async def search(self, words: str, *, session_id: str | None = None, limit: int = 50) -> Sequence[Found]:
        """Where these words were said, newest first, in all sessions or in one."""
        return await self.store.queries.search(words, session_id=session_id, limit=limit)

    async def recall(
        self, session_id: str, handle: str, *, offset: int = 0, limit: int | None = RECALL_PAGE_CHARS
    ) -> "RecallPage":
        """A text of the session by its handle, exactly, from a character on; also one that no model is shown."""
        from turnkeeper.core.recall import page
        from turnkeeper.store.recall import SessionRecall

        await self.store.queries.state(session_id)
        found = await SessionRecall(self.store.queries, session_id).find(handle)
        return page(found, offset, chars_max=limit, bytes_max=None)

    async def recall_search(
        self, session_id: str, query: str, *, limit: int = RECALL_HITS_MAX
    ) -> "Sequence[RecallHit]":
        """Texts of the session that hold these words, with their handles; those that no model is shown come first."""
        from turnkeeper.store.recall import SessionRecall

        await self.store.queries.state(session_id)
        return await SessionRecall(self.store.queries, session_id).search(query, limit)

    def export(self, session_id: str, *, sanitise: bool = False) -> AsyncIterator[bytes]:
        """A session as JSON in opencode's shape, piece by piece; ``sanitise`` leaves out what was said."""
        # Imported here, as below: most programs that open a store neither export, import nor examine it.
        from turnkeeper.interop import export

        return export.chunks(self.store, session_id, sanitise=sanitise)

    async def export_all(
        self,
        target: str | Path,
        session_ids: Iterable[str] | None = None,
        *,
        layout: "Layout" = "json",
        sanitise: bool = False,
        progress: "Progress | None" = None,
    ) -> int:
        """Write these sessions (by default all) into a folder or a ``.jsonl`` file, and say how many they were."""
        from turnkeeper.interop import export_all

        return await export_all.export_all(
            self.store, Path(target), session_ids, layout=layout, sanitise=sanitise, progress=progress
        )

    async def import_sessions(self, path: str | Path, *, progress: "Progress | None" = None) -> "ImportReport":
        """Take in what ``export``, ``export_all`` or opencode wrote. Ids are kept; what is here is never changed."""
        from turnkeeper.interop import import_json
        from turnkeeper.interop.importer import Importer

        importer = Importer(self.store, progress)
        await importer.take(import_json.open_export(Path(path)))
        return importer.tally.report(str(path))

    async def import_opencode(
        self, path: str | Path | None = None, *, progress: "Progress | None" = None
    ) -> "ImportReport":
        """Take in opencode's history: its database, its JSON trees, or (by default) all it has on this machine."""
        from turnkeeper.interop import opencode

        place = Path(path) if path is not None else opencode.default_path(os.environ)
        return await opencode.import_opencode(self.store, place, progress=progress)

    def subscribe(self, *, session_id: str | None = None, size: int = 1024) -> Subscription[Notification | Delta]:
        """What happens from now on: ``async with tk.subscribe() as notifications: async for one in notifications``."""
        match = (lambda one: one.session_id == session_id) if session_id is not None else None
        return self._bus.subscribe(match=match, size=size)

    def listen(self, receive: Callable[[Notification | Delta], None]) -> Listener[Notification | Delta]:
        """Have everything that happens from now on handed over at once, until the listener is closed."""
        return self._bus.listen(receive)

    def publish(self, notification: Notification) -> None:
        """Tell every subscriber of something that no log holds, such as a question to the user."""
        self._bus.publish(notification)

    def hush(self) -> None:
        """End every subscription once it has delivered what is queued: nothing more will be heard."""
        self._bus.close()

    def tail(self, session_id: str, *, after: int = 0) -> AsyncIterator[Recorded]:
        """The durable events of a session from ``after + 1`` on, then each new one, of every process. Never ends."""
        return self.store.journal.tail(session_id, after)

    async def doctor(self, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> "Diagnosis":
        """Whether the store is what its logs say; with ``fix``, derived documents are written again."""
        from turnkeeper.sessions import doctor

        return await doctor.examine(self.store, fix=fix, progress=progress)

"""Turnkeeper: an open store, its runtime and its subscriptions, and export and import."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.api.past import Past
from turnkeeper.api.reverting import Reverting
from turnkeeper.bus import Bus, Listener, Subscription
from turnkeeper.core.arguments import checked
from turnkeeper.core.limits import STOP_S
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.sessions import remove
from turnkeeper.store.store import Store
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.project import stored_place

if TYPE_CHECKING:
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.interop.export_all import ExportLayout
    from turnkeeper.interop.report import ImportReport, ProgressReport
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.permission import Answer, PermissionRequest, SavedApproval
    from turnkeeper.model.prompt import Prompt, Receipt
    from turnkeeper.model.question import QuestionRequest
    from turnkeeper.registry import Registration
    from turnkeeper.run.answers import AnswerDoor
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.run.recover import Left, Recovery
    from turnkeeper.run.runtime import Runtime, Settings
    from turnkeeper.sessions.compact import Compacted
    from turnkeeper.sessions.diagnosis import Diagnosis
    from turnkeeper.store.damaged import DamagedNames


@checked
class Turnkeeper(Past, Reverting):
    """Durable agent sessions. Every method is safe to call from several tasks and several processes at once."""

    def __init__(
        self,
        store: Store,
        bus: "Bus[Notification | Delta]",
        directory: Path,
        settings: "Settings | Callable[[], Settings] | None" = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, directory)
        self.group: TaskGroup | None = None
        """The task group of drains; None if this store was opened without a runtime."""
        self._bus, self._settings, self._given_environ = bus, settings, environ
        self._running: Runtime | None = None

    @property
    def runtime(self) -> "Runtime":
        """The runtime of this process, created at the first use."""
        if self._running is None:
            # Imported here, because programs that only read sessions should start fast.
            from turnkeeper.run.runtime import Runtime, Settings
            from turnkeeper.sessions.child import CalledSessions

            assert self.group is not None, "the store was opened without a runtime"
            settings = self._settings() if callable(self._settings) else self._settings
            called = CalledSessions(self.store, lambda: self.runtime)
            self._running = Runtime(self.store, self.group, self._bus.publish, settings or Settings(), called)
        return self._running

    @property
    def running(self) -> frozenset[str]:
        """The sessions that this process runs."""
        return self._running.active if self._running is not None else frozenset()

    @property
    def bus(self) -> "Bus[Notification | Delta]":
        """The bus of notifications, for metrics."""
        return self._bus

    def context(self, component: "ContextComponent") -> "Registration[ContextComponent]":
        """Add a Context Component to every session that this process runs: ``with tk.context(component): ...``.

        The model gets it at the next boundary. Leaving the scope removes it; a reloaded plugin registers it again.
        """
        return self.runtime.components.register(component)

    async def stop(self, timeout_s: float = STOP_S) -> None:
        """Interrupt all sessions that this process runs, and wait until they are settled or the timeout is over."""
        if self._running is not None:
            await self._running.aclose(timeout_s)

    async def prompt(self, session_id: str, prompt: "str | Prompt", *, resume: bool = True) -> "Receipt":
        """Admit a prompt, durably, and start running the session unless ``resume`` is False."""
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
        """Run a shell command of the user in an idle session. Its output becomes part of the history.

        No model is asked. Raises Busy while the session runs. A prompt that arrives meanwhile is run afterwards.
        """
        from turnkeeper.sessions import shell

        session = await self.store.queries.session(session_id)
        place = await stored_place(session.directory)
        return await shell.shell(self.store, self.runtime, place, session, command, agent=agent, model=model)

    async def run(self, session_id: str, *, resume: bool = False) -> "Outcome":
        """Run a session until it rests. ``resume`` adds a turn if the last one failed or was stopped."""
        await self.store.queries.state(session_id)
        return await self.runtime.run(session_id, resume=resume)

    async def compact(
        self, session_id: str, *, force: bool = False, auto: bool = False, model: "ModelChoice | None" = None
    ) -> "Compacted":
        """Replace older history by a Summary for the model, if the session is large enough. ``recall`` still reads it.

        ``force`` also compacts a small session; ``auto`` continues its work afterwards. Raises Busy while it runs.
        """
        from turnkeeper.sessions import compact

        session = await self.store.queries.session(session_id)
        place = await stored_place(session.directory)
        done = await compact.compact(self.store, self.runtime, place, session, force=force, auto=auto, model=model)
        if auto and done.summary is not None:
            self.runtime.wake(session_id)
        return done

    async def wait(self, session_id: str) -> "Outcome":
        """Wait until a session rests, also if another process runs it.

        The outcome has the kind ``abandoned`` if the process that ran the session died: see ``is_abandoned``.
        """
        from turnkeeper.sessions import wait

        return await wait.wait(self.store, self.runtime, session_id)

    async def wait_family(self, session_id: str) -> "Outcome":
        """Wait as ``wait`` does, and also for the Child Sessions that work for the session in the background."""
        outcome = await self.wait(session_id)
        return await self._running.wait_family(session_id) if self._running is not None else outcome

    async def is_abandoned(self, session_id: str) -> bool:
        """Whether the process that ran a session died. The status stays busy until the open turn is closed.

        ``run`` closes the turn and answers waiting prompts, and with ``resume`` continues the turn that was cut off.
        ``abort`` only closes the turn. ``recover`` does either for all such sessions.
        """
        from turnkeeper.sessions import wait

        owner = (await self.store.queries.state(session_id)).owner
        here = self._running.owner if self._running is not None else None
        return owner is not None and session_id not in self.running and wait.is_abandoned(owner, here)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session and wait until its turn is settled; whether this process ran it."""
        if self._running is not None and await self._running.interrupt(session_id):
            return True
        await self.store.queries.state(session_id)
        return False

    async def abort(self, session_id: str) -> bool:
        """Stop a session, or close the turn that a dead process left open; whether there was one.

        Raises Busy while another living process runs the session: only that process can stop it.
        """
        from turnkeeper.sessions import abort

        return await self.interrupt(session_id) or await abort.close(self.store, session_id)

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait for the background work of a session, such as writing its title."""
        await self.store.queries.state(session_id)
        if self._running is not None:
            await self._running.wait_upkeep(session_id)

    async def recover(
        self, policy: "Recovery | None" = None, *, ask: Callable[[str], Awaitable[bool]] | None = None
    ) -> Sequence[str]:
        """Close the turns that dead processes left open, and continue sessions by policy; the ids of the sessions."""
        return await self.runtime.recover(policy, ask=ask)

    async def take_over(self) -> "Sequence[Left]":
        """Close the turns that dead processes left open: the first half of ``recover``."""
        if not await self.store.engine.scan(("busy",), limit=1):
            return ()  # No turn is open, so the runtime need not be imported.
        return await self.runtime.take_over()

    async def resume_taken_over(self, left: "Sequence[Left]") -> None:
        """Run the sessions that were taken over until they rest: the second half of ``recover``."""
        if not all(one.rests for one in left):
            await self.runtime.resume_taken_over(left)

    async def run_answered(self) -> None:
        """Run each session whose waiting call was answered by a process that does not run it. Never ends.

        A server does this: see ``serving``.
        """
        from turnkeeper.sessions import answers

        await answers.watch(self.store, self._sleep, self._go_on)

    async def permissions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> "Sequence[PermissionRequest]":
        """Permission requests that wait for an answer; of one directory or session, or all."""
        from turnkeeper.sessions import answers

        place = str(directory) if directory is not None else None
        return await answers.permissions(self.store, directory=place, session_id=session_id)

    async def reply(
        self,
        request_id: str,
        answer: "Answer",
        *,
        message: str | None = None,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None:
        """Answer a permission request. If no process runs the session it is then run here, unless ``resume`` is False.

        ``always`` is saved for the project and also answers what else of the session it covers. A rejection rejects
        what else of the session waits; a message with it is advice for the model, which then goes on.
        """
        from turnkeeper.sessions import answers

        found = await answers.reply(self._door, request_id, answer, message=message, session_id=session_id)
        if resume:
            await self._go_on(found)

    async def questions(
        self, *, directory: str | Path | None = None, session_id: str | None = None
    ) -> "Sequence[QuestionRequest]":
        """Questions of models that wait for an answer; of one directory or session, or all."""
        from turnkeeper.sessions import answers

        place = str(directory) if directory is not None else None
        return await answers.questions(self.store, directory=place, session_id=session_id)

    async def answer(
        self,
        request_id: str,
        given: Sequence[Sequence[str]] | None,
        *,
        session_id: str | None = None,
        resume: bool = True,
    ) -> None:
        """Answer questions of a model: for each the chosen labels or a text of your own. None dismisses them."""
        from turnkeeper.sessions import answers

        found = await answers.answer_questions(self._door, request_id, given, session_id=session_id)
        if resume:
            await self._go_on(found)

    async def approvals(self, *, project_id: str | None = None) -> "Sequence[SavedApproval]":
        """What was allowed for good, in one project or in all."""
        return self._door.approvals.saved(project_id)

    async def revoke(self, approval_id: str) -> bool:
        """Take back what was allowed for good; whether it was."""
        return self._door.approvals.revoke(approval_id)

    @property
    def _door(self) -> "AnswerDoor":
        from turnkeeper.run.answers import AnswerDoor
        from turnkeeper.workspace.approvals import Approvals

        if self._running is not None:
            return AnswerDoor(self.store, self._running.approvals)
        mint = self.store.mint
        return AnswerDoor(self.store, Approvals(self._environ, mint.now, mint.ascending))

    async def _go_on(self, session_id: str) -> bool:
        """Run a session whose call was answered, unless a process runs it: that one finds the answer in the log."""
        from turnkeeper.workspace.owner import is_alive

        owner = (await self.store.queries.state(session_id)).owner
        is_free = session_id not in self.running and (owner is None or not is_alive(owner))
        if self.group is not None and is_free:
            self.runtime.wake(session_id)
        return is_free

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session and its descendants with all their data; the removed sessions, children first."""
        if self._running is not None:
            await self._running.forget(session_id)
        removed = await remove.remove(self.store, session_id, self._bus.publish, self._outputs())
        from turnkeeper.workspace import snapshot_upkeep

        await to_thread.run_sync(snapshot_upkeep.forget, self._environ, [session.id for session in removed])
        return removed

    def _outputs(self) -> OutputFiles | None:
        """The files with the complete outputs of tools."""
        if self._running is not None:
            return self._running.outputs
        return OutputFiles.of(self._environ, self.store.mint.now, self.store.mint.ascending)

    @property
    def _environ(self) -> Mapping[str, str]:
        if self._settings is None or callable(self._settings):
            return os.environ if self._given_environ is None else self._given_environ
        return self._settings.environ

    @property
    def _sleep(self) -> Callable[[float], Awaitable[None]]:
        return anyio.sleep if self._settings is None or callable(self._settings) else self._settings.sleep

    def export(
        self, session_id: str, *, sanitise: bool = False, damaged: "DamagedNames | None" = None
    ) -> AsyncIterator[bytes]:
        """A session as JSON in opencode's format, in pieces. ``sanitise`` leaves out all texts.

        Raises DamagedDocument if the store is damaged. With a ``damaged`` list, unreadable documents are left out and
        named there, and so are documents that the log contradicts.
        """
        # Imported here, because most programs neither export, import nor examine.
        from turnkeeper.interop import export

        return export.chunks(self.store, session_id, sanitise=sanitise, damaged=damaged)

    async def export_all(
        self,
        target: str | Path,
        session_ids: Iterable[str] | None = None,
        *,
        layout: "ExportLayout" = "json",
        sanitise: bool = False,
        progress: "ProgressReport | None" = None,
        damaged: "DamagedNames | None" = None,
    ) -> int:
        """Write these sessions, by default all, to a folder or a ``.jsonl`` file; the number of written sessions.

        With a ``damaged`` list, sessions that cannot be read are left out and named there.
        """
        from turnkeeper.interop import export_all

        return await export_all.export_all(
            self.store, Path(target), session_ids, layout=layout, sanitise=sanitise, progress=progress, damaged=damaged
        )

    async def import_sessions(self, path: str | Path, *, progress: "ProgressReport | None" = None) -> "ImportReport":
        """Import what ``export``, ``export_all`` or opencode wrote. Ids are kept, and stored data is not changed."""
        from turnkeeper.interop import import_json
        from turnkeeper.interop.importer import Importer

        importer = Importer(self.store, progress)
        await importer.take(import_json.open_export(Path(path)))
        return importer.tally.report(str(path))

    async def import_opencode(
        self, path: str | Path | None = None, *, progress: "ProgressReport | None" = None
    ) -> "ImportReport":
        """Import opencode's history: a database, a JSON tree, or by default all history on this machine."""
        from turnkeeper.interop import opencode

        place = Path(path) if path is not None else opencode.default_path(os.environ)
        return await opencode.import_opencode(self.store, place, progress=progress)

    def subscribe(self, *, session_id: str | None = None, size: int = 1024) -> Subscription[Notification | Delta]:
        """New notifications: ``async with tk.subscribe() as notifications: async for one in notifications``."""
        if size < 1:
            raise Invalid(f"a subscriber needs room for at least one notification, not {size}")
        match = (lambda one: one.session_id == session_id) if session_id is not None else None
        return self._bus.subscribe(match=match, size=size)

    def listen(self, receive: Callable[[Notification | Delta], None]) -> Listener[Notification | Delta]:
        """Call ``receive`` with each new notification until the listener is closed."""
        return self._bus.listen(receive)

    def publish(self, notification: Notification) -> None:
        """Publish a notification that is not derived from an event, such as a question to the user."""
        if not isinstance(notification, Notification):
            raise Invalid(f"a Notification is published, not {notification!r:.80}")
        self._bus.publish(notification)

    async def doctor(self, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> "Diagnosis":
        """Compare the documents of the store with its logs. ``fix`` writes wrong documents again."""
        from turnkeeper.sessions import doctor

        return await doctor.examine(self.store, fix=fix, progress=progress)

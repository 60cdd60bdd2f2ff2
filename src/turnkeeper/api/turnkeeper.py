"""Turnkeeper: an open store, with what runs its sessions, tells of them, and moves them in and out."""

import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from anyio.abc import TaskGroup

from turnkeeper.api.records import Records
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
from turnkeeper.workspace.project import identify

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
class Turnkeeper(Records):
    """Durable agent sessions. Every method is safe to call from several tasks and several processes at once."""

    def __init__(
        self,
        store: Store,
        bus: "Bus[Notification | Delta]",
        directory: Path,
        settings: "Settings | Callable[[], Settings] | None" = None,
    ) -> None:
        super().__init__(store, directory)
        self.group: TaskGroup | None = None
        """Where drains live; None while nothing can be run."""
        self._bus, self._settings = bus, settings
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

    async def stop(self, timeout_s: float = STOP_S) -> None:
        """Stop every session that is being run here, all at once, and wait until they have settled or time is up."""
        if self._running is not None:
            await self._running.aclose(timeout_s)

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
        """Wait until a session rests, whichever process runs it; at once if it rests already.

        An outcome of the kind ``abandoned`` says that the process which ran it died: see ``is_abandoned``.
        """
        from turnkeeper.sessions import wait

        return await wait.wait(self.store, self.runtime, session_id)

    async def is_abandoned(self, session_id: str) -> bool:
        """Whether the process that ran a session died. Its status stays busy until what it left is closed.

        ``run`` closes it and takes up what waits; with ``resume`` it also goes on where the turn was cut off.
        ``abort`` only closes it, and ``recover`` does either for all such sessions.
        """
        from turnkeeper.sessions import wait

        owner = (await self.store.queries.state(session_id)).owner
        here = self._running.owner if self._running is not None else None
        return owner is not None and session_id not in self.running and wait.is_abandoned(owner, here)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session and wait until all is settled; whether it was being run here."""
        if self._running is not None and await self._running.interrupt(session_id):
            return True
        await self.store.queries.state(session_id)
        return False

    async def abort(self, session_id: str) -> bool:
        """Stop a session here, or close what a dead process left open; whether there was anything to stop.

        Raises Busy while another living process runs it: only that process can stop.
        """
        from turnkeeper.sessions import abort

        return await self.interrupt(session_id) or await abort.close(self.store, session_id)

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait until what is done for a session beside its turns is done: a session that ends here gets its title."""
        await self.store.queries.state(session_id)
        if self._running is not None:
            await self._running.wait_upkeep(session_id)

    async def recover(
        self, policy: "Recovery | None" = None, *, ask: Callable[[str], Awaitable[bool]] | None = None
    ) -> Sequence[str]:
        """Close what dead processes left open and run on what may be, by policy; the sessions that were found."""
        return await self.runtime.recover(policy, ask=ask)

    async def take_over(self) -> "Sequence[Left]":
        """Close what dead processes left open: the first half of ``recover``; ``resume_taken_over`` is the second."""
        if not await self.store.engine.scan(("busy",), limit=1):
            return ()  # Nothing is open: there is no need to load what runs sessions.
        return await self.runtime.take_over()

    async def resume_taken_over(self, left: "Sequence[Left]") -> None:
        """The second half of ``recover``: run what was taken over and has something to do, until it rests."""
        if not all(one.rests for one in left):
            await self.runtime.resume_taken_over(left)

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

    async def _go_on(self, session_id: str) -> None:
        """Run a session whose call was answered, unless a process runs it: that one finds the answer in the log."""
        from turnkeeper.workspace.owner import is_alive

        owner = (await self.store.queries.state(session_id)).owner
        if self.group is not None and session_id not in self.running and (owner is None or not is_alive(owner)):
            self.runtime.wake(session_id)

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session, its descendants and all that belongs to them; what was removed, children first."""
        if self._running is not None:
            await self._running.forget(session_id)
        return await remove.remove(self.store, session_id, self._bus.publish, self._outputs())

    def _outputs(self) -> OutputFiles | None:
        """Where the whole outputs of tools are kept."""
        if self._running is not None:
            return self._running.outputs
        return OutputFiles.of(self._environ, self.store.mint.now, self.store.mint.ascending)

    @property
    def _environ(self) -> Mapping[str, str]:
        return os.environ if self._settings is None or callable(self._settings) else self._settings.environ

    def export(
        self, session_id: str, *, sanitise: bool = False, damaged: "DamagedNames | None" = None
    ) -> AsyncIterator[bytes]:
        """A session as JSON in opencode's shape, piece by piece; ``sanitise`` leaves out what was said.

        Raises DamagedDocument where the store is damaged. With a list the export goes on without what cannot be read,
        and the list names that, and what contradicts the log.
        """
        # Imported here, as below: most programs that open a store neither export, import nor examine it.
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
        """Write these sessions (by default all) into a folder or a ``.jsonl`` file, and say how many they were.

        With a list for what is ``damaged``, a session that cannot be read is named there and left out.
        """
        from turnkeeper.interop import export_all

        return await export_all.export_all(
            self.store, Path(target), session_ids, layout=layout, sanitise=sanitise, progress=progress, damaged=damaged
        )

    async def import_sessions(self, path: str | Path, *, progress: "ProgressReport | None" = None) -> "ImportReport":
        """Take in what ``export``, ``export_all`` or opencode wrote. Ids are kept; what is here is never changed."""
        from turnkeeper.interop import import_json
        from turnkeeper.interop.importer import Importer

        importer = Importer(self.store, progress)
        await importer.take(import_json.open_export(Path(path)))
        return importer.tally.report(str(path))

    async def import_opencode(
        self, path: str | Path | None = None, *, progress: "ProgressReport | None" = None
    ) -> "ImportReport":
        """Take in opencode's history: its database, its JSON trees, or (by default) all it has on this machine."""
        from turnkeeper.interop import opencode

        place = Path(path) if path is not None else opencode.default_path(os.environ)
        return await opencode.import_opencode(self.store, place, progress=progress)

    def subscribe(self, *, session_id: str | None = None, size: int = 1024) -> Subscription[Notification | Delta]:
        """What happens from now on: ``async with tk.subscribe() as notifications: async for one in notifications``."""
        if size < 1:
            raise Invalid(f"a subscriber needs room for at least one notification, not {size}")
        match = (lambda one: one.session_id == session_id) if session_id is not None else None
        return self._bus.subscribe(match=match, size=size)

    def listen(self, receive: Callable[[Notification | Delta], None]) -> Listener[Notification | Delta]:
        """Have everything that happens from now on handed over at once, until the listener is closed."""
        return self._bus.listen(receive)

    def publish(self, notification: Notification) -> None:
        """Tell every subscriber of something that no log holds, such as a question to the user."""
        if not isinstance(notification, Notification):
            raise Invalid(f"a Notification is published, not {notification!r:.80}")
        self._bus.publish(notification)

    def close_subscriptions(self) -> None:
        """End every subscription once it has delivered what is queued: nothing more will be heard."""
        self._bus.close()

    async def doctor(self, *, fix: bool = False, progress: Callable[[int, int], None] | None = None) -> "Diagnosis":
        """Whether the store is what its logs say; with ``fix``, derived documents are written again."""
        from turnkeeper.sessions import doctor

        return await doctor.examine(self.store, fix=fix, progress=progress)

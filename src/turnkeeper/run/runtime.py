"""The runtime: everything that runs sessions in this process, put together."""

import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path

import anyio
import anyio.lowlevel
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.bus import Bus
from turnkeeper.context.components import Components
from turnkeeper.core.history import History
from turnkeeper.core.limits import STOP_S
from turnkeeper.core.next_action import last_user
from turnkeeper.core.restores import is_pending
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.notification import AnyNotification, Delta
from turnkeeper.model.refusal import Busy, Elsewhere, Invalid, NotFound, Refusal
from turnkeeper.providers.transport import Network
from turnkeeper.run.abandon import CallTasks
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.change_summaries import ChangeSummaries
from turnkeeper.run.children import Children, ChildSessions
from turnkeeper.run.compact import Compaction
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.delegating import delegate, new_coordinator
from turnkeeper.run.directories import Directories
from turnkeeper.run.drain import Drain
from turnkeeper.run.failover import Failover
from turnkeeper.run.families import Families
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.histories import Histories
from turnkeeper.run.job_wakes import new_wakes
from turnkeeper.run.open_turns import OpenTurns
from turnkeeper.run.ownership import new_lease_keeper
from turnkeeper.run.plugin_events import PluginEvents
from turnkeeper.run.prepare import Preparation
from turnkeeper.run.recover import TakeOver
from turnkeeper.run.release import Releases
from turnkeeper.run.reverts import Reverts
from turnkeeper.run.settings import Settings
from turnkeeper.run.settlements import Settlements
from turnkeeper.run.snapshot_collection import SnapshotCollection, with_pending_undo
from turnkeeper.run.titles import Titles
from turnkeeper.run.turn import Surroundings
from turnkeeper.run.worker import Worker
from turnkeeper.store.engine import EngineError, StoreDamaged, StoreUnavailable
from turnkeeper.store.store import Store
from turnkeeper.workspace.approvals import Approvals
from turnkeeper.workspace.config import ProgramSettings
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

log = logging.getLogger(__name__)

__all__ = ["Runtime", "Settings"]


class Runtime:
    """Runs sessions: one drain each, all in one task group."""

    def __init__(
        self,
        store: Store,
        group: TaskGroup,
        publish: Callable[[Delta], None],
        settings: Settings,
        sessions: ChildSessions,
        bus: Bus[AnyNotification] | None = None,
    ) -> None:
        """``sessions`` creates Child Sessions and prompts them. ``bus`` is the source of events for plugins."""
        self._store, self._settings, self._environ = store, settings, settings.environ
        self.group = group
        """The task group of all background work."""
        self._calls = CallTasks()
        self._plugin_events = PluginEvents(bus, group, store.mint.now)
        self._network = Network(settings.environ)
        self.components = Components()
        for component in settings.components:
            self.components.register(component)
        self.outputs = OutputFiles.of(settings.environ, store.mint.now, store.mint.ascending)
        self.snapshots = Snapshots(settings.environ, store.mint.now, partial(with_pending_undo, store), store.places)
        self.directories = self._new_directories()
        self.jobs = Jobs(group, self.directories.temporary.directory)
        self.approvals = Approvals(settings.environ, store.mint.now, store.mint.ascending)
        self.responders = settings.responders
        """The callbacks of this process that answer requests to the user."""
        self.lease_keeper = new_lease_keeper(
            store, group, settings, stop=self._stop_run, interrupt=self._interrupt_in_background, wake=self.wake
        )
        self.owner = self.lease_keeper.owner
        """The owner that the log names for sessions that are run here."""
        self._interrupted: set[str] = set()
        self._histories = Histories(store)
        self._titles = Titles(store, group, self.directories)
        self._changes = ChangeSummaries(store, group)
        self.children = self._new_children(sessions)
        self._releases = Releases(group, settings.sleep, self.wake, runs=settings.runs)
        self.reverts = Reverts(store, self._histories, self._repository)
        self._taking_over = self._new_taking_over()
        self._drain = self._new_drain(publish)
        self._collection = SnapshotCollection(store, self.snapshots, group, settings.sleep)
        self.wakes = new_wakes(store, self.lease_keeper.host.label_of)
        self._coordinator = new_coordinator(group, self._run_drain, None if settings.runs else self.wakes)
        self._families = Families(
            store, self._coordinator, self._releases, self.children, self.jobs, self.owner, self._interrupted
        )
        self.failover = Failover(
            self._taking_over, self._coordinator, self._families, self.children, self.wakes, self.group
        )
        """Takes over the sessions of other processes."""

    def _new_directories(self) -> Directories:
        settings = self._settings
        return Directories(
            settings.transport or self._network.provider,
            settings.tools,
            settings.environ,
            self.outputs,
            group=self.group,
            snapshots=self.snapshots if settings.snapshots else None,
            started_ns=settings.started_ns,
            own=ProgramSettings(settings.config),
            plugins=self._plugin_events.host(settings),
        )

    def _new_children(self, sessions: ChildSessions) -> Children:
        return Children(
            self._store,
            sessions,
            run=self.run,
            wake=self.wake,
            stop=lambda session_id: self.group.start_soon(self._interrupt_in_background, session_id),
            is_active=lambda session_id: session_id in self.active,
            sleep=self._settings.sleep,
            is_attended=self.responders.is_attended,
        )

    def _new_taking_over(self) -> TakeOver:
        return TakeOver(
            self._store,
            self._histories,
            self.lease_keeper,
            lambda place: self.directories.catalog(place)[0],
            self.reverts,
            self.children,
            is_attended=self.responders.is_attended,
        )

    def _new_drain(self, publish: Callable[[Delta], None]) -> Drain:
        """The loop with everything that it calls."""
        store, settings, setup, changes = self._store, self._settings, self.directories.setup, self._changes
        world = Surroundings(
            mint=store.mint,
            publish=publish,
            sleep=settings.sleep,
            random=settings.random,
            is_interrupted=self._interrupted.__contains__,
            is_cut_off=self.is_cut_off,
        )
        settlements = Settlements(
            store=store,
            group=self.group,
            calls=self._calls,
            world=world,
            responders=self.responders,
            door=AnswerDoor(store, self.approvals),
            environ=settings.environ,
            children=self.children,
            jobs=self.jobs,
        )
        begun = self._titles.begin if settings.titles else None
        boundary, fitter = Boundary(store, settings.environ, self.components), ContextFitter(store, setup)
        return Drain(
            store,
            self._histories,
            self.lease_keeper,
            Preparation(store, world, setup, settlements, boundary, fitter, changes, begun),
            OpenTurns(store, world, setup, settlements, changes, begun),
            Compaction(store, world, setup, settings.hooks),
            fitter,
            self._releases,
            self.reverts,
            self.children,
            self._taking_over,
            self.is_cut_off,
            self.responders.is_attended,
        )

    def wake(self, session_id: str) -> None:
        """Run a session if it has work."""
        self._coordinator.wake(session_id)

    async def request(self, session_id: str, *, resume: bool = False) -> None:
        """Run a session if it has work; the request is durable if workers run it. ``resume`` as in ``run``."""
        await self._coordinator.request(session_id, resume=resume)

    def worker(self, concurrency: int) -> Worker:
        """A worker: it runs sessions that other processes ask for."""
        self.lease_keeper.announce("worker", concurrency)
        return Worker(self.wakes, self.lease_keeper, self.run, concurrency)

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Run a session until it rests."""
        return await self._coordinator.run(session_id, resume=resume)

    async def _run_drain(self, session_id: str, resume: bool) -> str:
        """A drain of a session. One that the store kept from taking the session is tried again."""
        resume = resume or session_id in self.children.resuming
        try:
            return await self._run_and_report(session_id, resume)
        except BaseException as error:
            if resume and self.is_cut_off(session_id, error) and not self._releases.is_owned(session_id):
                self.children.resuming.add(session_id)  # Else the turn that was asked for has begun.
            is_away = isinstance(error, StoreUnavailable) and not isinstance(error, StoreDamaged)
            if is_away and session_id not in self._interrupted:
                self._releases.take_later(session_id)
            raise

    async def _run_and_report(self, session_id: str, resume: bool) -> str:
        """A drain of a session, and the report to its parent if it is a Child Session that rests then."""
        resume = await self.children.resumes(session_id, resume)
        try:
            with self._collection.paused():
                reason = await self._drain.run(session_id, resume)
        except Elsewhere:
            if not self._settings.delegates:
                raise
            return await delegate(self.wakes, session_id, resume=resume)
        except BaseException:
            if session_id in self._interrupted:
                with anyio.CancelScope(shield=True):
                    await self.children.run_ended(session_id, self._interrupted)
            raise
        await self.children.run_ended(session_id, self._interrupted)
        return reason

    async def alone(
        self, session_id: str, work: Callable[[FencedWriter], Awaitable[None]], *, commits: bool = True
    ) -> Outcome:
        """Do something else than a turn as the owner of a session; prompts that come meanwhile are run after it.

        A pending revert is committed first, unless ``commits`` is False. Raises Busy unless the session rests.
        """
        await self._changes.wait(session_id)  # What it records belongs to turns that this work may remove.

        async def done() -> bool:
            with self._collection.paused():
                return await self._drain.alone(session_id, work, commits=commits)

        return await self._coordinator.alone(session_id, done)

    async def commit_revert(self, session_id: str) -> None:
        """Remove what a pending revert has set aside, if there is one, before something is added to the history."""
        while is_pending(await self._store.journal.view(session_id)):
            try:
                await self.alone(session_id, _nothing)
            except Busy:
                if session_id not in self.active:
                    raise
                await self.wait(session_id)  # Another task of this process is doing it.

    async def history(self, session_id: str) -> History:
        """The current history of a session, as the model is shown it."""
        return await self._histories.get(session_id)

    async def compact(self, writer: FencedWriter) -> None:
        """Carry out the compaction that was just asked for, as the owner of the session."""
        view = await self._store.journal.view(writer.session_id)
        history = await self.history(writer.session_id)
        marker = last_user(history)
        assert marker is not None, "the caller has recorded one"
        await self._drain.compaction.run(writer, view, history, marker)

    async def wait(self, session_id: str) -> Outcome:
        """Wait until a session rests."""
        return await self._coordinator.wait(session_id)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session's drain, with the Child Sessions that work for it, and wait until all is settled.

        Returns whether one was stopped; see ``Families.interrupt``. Background jobs are ended without waiting for them.
        """
        return await self._families.interrupt(session_id)

    def is_cut_off(self, session_id: str, error: BaseException) -> bool:
        """Whether a run that ends with this error is stopped because the store is away, and not by its user."""
        is_away = isinstance(error, StoreUnavailable) or self.lease_keeper.is_cutting_off(session_id)
        return is_away and session_id not in self._interrupted

    async def _interrupt_in_background(self, session_id: str) -> None:
        """Interrupt a session from a background task: a failure is logged."""
        try:
            await self.interrupt(session_id)
        except (Refusal, EngineError) as error:
            log.warning("session %s was not stopped with all that works for it: %s", session_id, error)

    async def _stop_run(self, session_id: str) -> None:
        """Stop a session that this runtime may not own any longer. Calls that wait for the user stay open."""
        self.jobs.end_session(session_id)
        await self._coordinator.interrupt(session_id)

    async def forget(self, session_id: str) -> None:
        """Stop a session that is to be removed, and free its resources."""
        await self.interrupt(session_id)
        await self._releases.finish(session_id)
        self._histories.forget(session_id)
        await self.jobs.forget(session_id)
        await to_thread.run_sync(self.directories.temporary.remove, [session_id])

    async def aclose(self, timeout_s: float = STOP_S) -> None:
        """Stop every drain, wait until all have settled or time is up, and close the network connections.

        Calls that wait for the user stay open, and run later. The next owner closes a session that did not settle.
        """
        with anyio.move_on_after(timeout_s) as waiting:
            async with anyio.create_task_group() as group:
                for session_id in self.active:
                    group.start_soon(self._coordinator.interrupt, session_id)
        if waiting.cancelled_caught:
            log.error("these sessions did not stop within %g s: %s", timeout_s, ", ".join(sorted(self.active)))
        await self.jobs.aclose()
        await self._plugin_events.aclose()
        self.directories.close_tools()
        await self._releases.finish_all()
        await self.lease_keeper.aclose()
        await self._network.aclose()

    async def end_calls(self) -> None:
        """Wait until the tools that ignored an interrupt have ended, for a bounded time; name those that have not."""
        with anyio.CancelScope(shield=True):
            if left := await self._calls.end():
                log.warning("these tool calls did not stop, and go on until the program ends: %s", ", ".join(left))

    async def _repository(self, directory: Path) -> ShadowRepository | None:
        """The snapshots of the project of a directory."""
        place = await identify(directory)
        return await self.snapshots.of(place, self.directories.catalog(place)[0])

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait for the background work of a session: its title and its change summaries."""
        await self._titles.wait(session_id)
        await self._changes.wait(session_id)

    @property
    def active(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return self._coordinator.active

    @property
    def environ(self) -> Mapping[str, str]:
        """The environment of the program."""
        return self._environ

    @property
    def home(self) -> Path:
        """The user's home directory."""
        return Path(self._environ.get("HOME") or Path.home())

    def model(self, wanted: ModelChoice, place: ProjectPlace) -> ModelInfo:
        """The model of this name. Raises Invalid with similar names."""
        try:
            return self.directories.model(place, wanted)
        except NotFound as error:
            raise Invalid(str(error)) from error

    async def wait_family(self, session_id: str) -> Outcome:
        """Wait until a session rests and no Child Session of this process works for it in the background."""
        return await self._families.wait(session_id)


async def _nothing(writer: FencedWriter) -> None:
    """Nothing but what is done before any work."""

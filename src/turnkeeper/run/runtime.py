"""The runtime: everything that runs sessions in this process, put together."""

import logging
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import count
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import msgspec
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.context.components import Components
from turnkeeper.core.history import History
from turnkeeper.core.limits import STOP_S
from turnkeeper.core.next_action import last_user
from turnkeeper.core.restores import is_pending
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.notification import Delta
from turnkeeper.model.refusal import Busy, Invalid, NotFound
from turnkeeper.providers.transport import Network
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.run.asking import Responders
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.change_summaries import ChangeSummaries
from turnkeeper.run.compact import Compaction
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.directories import Directories, Transport
from turnkeeper.run.discovery import all_near
from turnkeeper.run.drain import Drain
from turnkeeper.run.histories import Histories
from turnkeeper.run.pen import Pen
from turnkeeper.run.permission import Asker, QuestionAsker, dismiss_all, reject_all
from turnkeeper.run.prepare import Preparation
from turnkeeper.run.recover import AskToContinue, Left, Recovery, TakeOver
from turnkeeper.run.release import Releases
from turnkeeper.run.reverts import Reverts
from turnkeeper.run.snapshot_collection import SnapshotCollection, with_pending_undo
from turnkeeper.run.summarise import Hooks
from turnkeeper.run.titles import Titles
from turnkeeper.run.turn import Surroundings
from turnkeeper.store.store import Store
from turnkeeper.tools import load as load_tools
from turnkeeper.tools.tool import AnyTool
from turnkeeper.workspace.approvals import Approvals
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.owner import this_process
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.snapshots import ShadowRepository, Snapshots

log = logging.getLogger(__name__)

_numbers = count(1)  # Tells the runtimes of this process apart; two of them may have opened one store.


class Settings(msgspec.Struct, frozen=True):
    """How sessions are run here; the defaults are for people, the rest for tests."""

    ask: Asker | None = reject_all
    """Who is asked for permission in this process. None: requests wait until a client or another process answers."""
    question: QuestionAsker | None = dismiss_all
    """Who answers questions of models here. None: they wait likewise."""
    is_attended: bool = True
    """Whether these also answer requests that an earlier process left. With ``reject_all`` they never do."""
    transport: Transport | None = None
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    random: Callable[[], float] = Random().random
    titles: bool = True
    snapshots: bool = True
    """Whether changes of files are recorded, where the configuration does not forbid it."""
    hooks: Hooks = msgspec.field(default_factory=Hooks)
    tools: Callable[[], Sequence[AnyTool]] = load_tools
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)


class Runtime:
    """Runs sessions: one drain each, all in one task group."""

    def __init__(
        self,
        store: Store,
        group: TaskGroup,
        publish: Callable[[Delta], None],
        settings: Settings,
    ) -> None:
        self._store, self._environ = store, settings.environ
        self.group = group
        """Where all that runs beside its caller lives."""
        self._network = Network(settings.environ)
        self.components = Components()
        transport = settings.transport or self._network.provider
        self.outputs = OutputFiles.of(settings.environ, store.mint.now, store.mint.ascending)
        self.snapshots = Snapshots(settings.environ, store.mint.now, partial(with_pending_undo, store))
        self.directories = Directories(
            transport,
            settings.tools,
            settings.environ,
            self.outputs,
            group=group,
            snapshots=self.snapshots if settings.snapshots else None,
        )
        self.jobs = Jobs(group, self.directories.temporary.directory)
        self.approvals = Approvals(settings.environ, store.mint.now, store.mint.ascending)
        self._interrupted: set[str] = set()
        world = Surroundings(
            mint=store.mint,
            publish=publish,
            sleep=settings.sleep,
            random=settings.random,
            is_interrupted=self._interrupted.__contains__,
        )
        self._histories = Histories(store)
        self._titles = Titles(store, group, self.directories)
        self._changes = ChangeSummaries(store, group)
        fitter = ContextFitter(store, self.directories.setup)
        is_attended = settings.is_attended and settings.ask is not reject_all
        responders = Responders(permission=settings.ask, question=settings.question, is_attended=is_attended)
        preparation = Preparation(
            store=store,
            group=group,
            world=world,
            setup=self.directories.setup,
            responders=responders,
            door=AnswerDoor(store, self.approvals),
            boundary=Boundary(store, settings.environ, self.components),
            fitter=fitter,
            changes=self._changes,
            jobs=self.jobs,
            begun=self._titles.begin if settings.titles else None,
        )
        compaction = Compaction(store, world, self.directories.setup, settings.hooks)
        self.owner = this_process().but(runtime=str(next(_numbers)))
        """What the log names as the owner of the sessions that are run here."""
        self._releases = Releases(group, settings.sleep, self.wake)
        self.reverts = Reverts(store, self._histories, self._repository)
        self._drain = Drain(
            store, self._histories, self.owner, preparation, compaction, fitter, self._releases, self.reverts
        )
        self._collection = SnapshotCollection(store, self.snapshots, group, settings.sleep)
        self._coordinator = Coordinator(group, self._run_drain)
        self._taking_over = TakeOver(
            store,
            self._histories,
            self.owner,
            lambda place: self.directories.catalog(place)[0],
            self.reverts,
            is_attended=is_attended,
        )

    def wake(self, session_id: str) -> None:
        """See to it that a session is looked at."""
        self._coordinator.wake(session_id)

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Run a session until it rests."""
        return await self._coordinator.run(session_id, resume=resume)

    async def alone(self, session_id: str, work: Callable[[Pen], Awaitable[None]], *, commits: bool = True) -> Outcome:
        """Do something else than a turn as the owner of a session; prompts that come meanwhile are run after it.

        A pending revert is committed first, unless ``commits`` is False. Raises Busy unless the session rests.
        """
        await self._changes.wait(session_id)  # What it records belongs to turns that this work may remove.

        async def done() -> bool:
            with self._collection.paused():
                return await self._drain.alone(session_id, work, commits=commits)

        return await self._coordinator.alone(session_id, done)

    async def _run_drain(self, session_id: str, resume: bool) -> str:
        with self._collection.paused():
            return await self._drain.run(session_id, resume)

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
        """What the model is shown of a session, as of now."""
        return await self._histories.get(session_id)

    async def compact(self, pen: Pen) -> None:
        """Carry out the compaction that was just asked for, as the owner of the session."""
        view = await self._store.journal.view(pen.session_id)
        history = await self.history(pen.session_id)
        marker = last_user(history)
        assert marker is not None, "the caller has recorded one"
        await self._drain.compaction.run(pen, view, history, marker)

    async def wait(self, session_id: str) -> Outcome:
        """Wait until a session rests."""
        return await self._coordinator.wait(session_id)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session's drain and wait until all is settled; whether one was running here.

        Its background jobs are told to end, and are not waited for.
        """
        self.jobs.end_session(session_id)
        self._interrupted.add(session_id)
        try:
            return await self._coordinator.interrupt(session_id) or await self._releases.finish(session_id)
        finally:
            self._interrupted.discard(session_id)

    async def forget(self, session_id: str) -> None:
        """Stop a session that is to be removed, and let go of what is held of it."""
        await self.interrupt(session_id)
        await self._releases.finish(session_id)
        self._histories.forget(session_id)
        await self.jobs.forget(session_id)
        await to_thread.run_sync(self.directories.temporary.remove, [session_id])

    async def aclose(self, timeout_s: float = STOP_S) -> None:
        """Stop every drain, wait until all have settled or time is up, and close the network connections.

        Calls that wait for the user stay open: they are answered and run later, in whichever process. A session that
        did not settle stays open in the log; the next process to take over closes it.
        """
        with anyio.move_on_after(timeout_s) as waiting:
            async with anyio.create_task_group() as group:
                for session_id in self.active:
                    group.start_soon(self._coordinator.interrupt, session_id)
        if waiting.cancelled_caught:
            log.error("these sessions did not stop within %g s: %s", timeout_s, ", ".join(sorted(self.active)))
        await self.jobs.aclose()
        await self._releases.finish_all()
        await self._network.aclose()

    async def _repository(self, directory: Path) -> ShadowRepository | None:
        """The snapshots of the project of a directory."""
        place = await identify(directory)
        return await self.snapshots.of(place, self.directories.catalog(place)[0])

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait until what is done for a session beside its turns is done."""
        await self._titles.wait(session_id)
        await self._changes.wait(session_id)

    @property
    def active(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return self._coordinator.active

    async def agent(self, name: str | None, place: ProjectPlace) -> Agent:
        """The agent of this name, or the default one. Raises Invalid with what there is."""
        return self.directories.config(place).agent(name)

    def model(self, wanted: ModelChoice, place: ProjectPlace) -> ModelInfo:
        """The model of this name. Raises Invalid with what looks alike."""
        try:
            return self.directories.model(place, wanted)
        except NotFound as error:
            raise Invalid(str(error)) from error

    def instructions_near(self, read: Iterable[Path], place: ProjectPlace) -> list[str]:
        """The instruction files near files of a place that were read."""
        return all_near(read, place, self._environ)

    async def preload(self, directory: Path) -> None:
        """Load what the first turn in a directory will need, in steps, so that other tasks can run between them.

        Raises a Refusal where that turn would be refused.
        """
        place = await identify(directory)
        model = self.directories.model(place, self.directories.default_model(place))
        await anyio.lowlevel.checkpoint()
        setup = await self.directories.setup(place)
        await anyio.lowlevel.checkpoint()
        setup.toolbox.definitions()
        await anyio.lowlevel.checkpoint()
        setup.provider(model)

    async def take_over(self, policy: Recovery | None = None, *, ask: AskToContinue | None = None) -> list[Left]:
        """Close what dead processes left open; the sessions that were found, to be given to ``resume_taken_over``.

        A turn of which nothing was recorded is asked again. Where output was cut off, ``policy`` decides (else the
        session's ``metadata.recovery``, else the configuration of its directory, else ``rest``): ``continue`` goes on,
        ``rest`` waits for the user, ``ask`` asks.
        """
        return await self._taking_over.all(self.active, policy, ask)

    async def resume_taken_over(self, left: Sequence[Left]) -> None:
        """Run those of the sessions that were taken over that have something to do, until they rest."""

        async def run(one: Left) -> None:
            await self.run(one.session_id, resume=one.resumes)

        async with anyio.create_task_group() as group:
            for one in left:
                if not one.rests:
                    group.start_soon(run, one)

    async def recover(self, policy: Recovery | None = None, *, ask: AskToContinue | None = None) -> list[str]:
        """Close what dead processes left open, and run on what may be: the sessions that were found."""
        left = await self.take_over(policy, ask=ask)
        await self.resume_taken_over(left)
        return [one.session_id for one in left]


async def _nothing(pen: Pen) -> None:
    """Nothing but what is done before any work."""

"""A cluster on virtual time, made from a seed: hosts on one store, with pauses, crashes and a network that loses and
delays messages.

Hosts run the real loop: coordinator, drain, writer, lease keeper, leases, recovery, and the engine in memory. Only what
a model does in a turn is simulated. ``simulate(seed)`` gives the problems that were found; equal seeds give equal ones.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from random import Random
from typing import TypeVar, cast

import anyio
import msgspec
from virtual_loop import pass_time, run_virtual

from turnkeeper.core.history import History
from turnkeeper.core.lease import MANY_HOSTS
from turnkeeper.core.next_action import RunTurn
from turnkeeper.core.turn_ends import answered, broken_off, close_turn, open_turn
from turnkeeper.core.view import SessionView
from turnkeeper.mint import Mint
from turnkeeper.model.config import Config
from turnkeeper.model.event import PartRecorded, PromptAdmitted, TurnStarted
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.status import Owner
from turnkeeper.model.stream import FinishStep
from turnkeeper.run.children import Children, ChildSessions
from turnkeeper.run.compact import Compaction
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.coordinator import Coordinator
from turnkeeper.run.drain import Drain
from turnkeeper.run.failover import Failover
from turnkeeper.run.families import Families
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.histories import Histories
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.leases import Leases, Pace
from turnkeeper.run.open_turns import OpenTurns
from turnkeeper.run.prepare import Preparation
from turnkeeper.run.recover import TakeOver
from turnkeeper.run.release import Releases
from turnkeeper.run.reverts import Reverts
from turnkeeper.run.wakes import StoredWakes
from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, EngineError, Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import NOW, a_session, a_text, a_user
from turnkeeper.workspace.jobs import Jobs

T = TypeVar("T")

TROUBLE_S = 90.0
"""How long hosts and network fail; then they are left in peace."""
LATEST_S = 60.0
"""After so long no message of that time is on its way, no host is dead or paused, and no wake is on its way."""
PEACE_S = 600.0
"""How long the cluster then has to answer everything."""


class Hub(MemoryEngine):
    """The store, which notes who wrote under which fence."""

    def __init__(self) -> None:
        super().__init__()
        self.problems: list[str] = []
        self.trace: list[str] = []
        self._writers: dict[tuple[str, int], str] = {}
        self._highest: dict[str, int] = {}

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
        by: str = "",
    ) -> None:
        await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last)
        self.trace.append(f"{asyncio.get_running_loop().time():.3f} {by} {log} {after} {fence}")
        if fence is None:
            return
        if self._writers.setdefault((log, fence), by) != by:
            self.problems.append(f"{log}: {self._writers[log, fence]} and {by} both wrote under fence {fence}")
        if fence < self._highest.get(log, 0):
            self.problems.append(f"{log}: {by} wrote under fence {fence} after {self._highest[log]}")
        self._highest[log] = max(fence, self._highest.get(log, 0))

    def highest(self, log: str) -> int:
        return self._highest.get(log, 0)


class Link(MemoryEngine):
    """The store as one host reaches it: over a network."""

    def __init__(self, hub: Hub, host: "Host") -> None:
        super().__init__()
        self._hub, self._host = hub, host

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
    ) -> None:
        name, given, indexed = self._host.name, dict(documents), dict(texts)
        await self._call(
            lambda: self._hub.append(log, after, entries, given, texts=indexed, fence=fence, last=last, by=name)
        )

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        given = dict(documents)
        await self._call(lambda: self._hub.put(given))

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        return await self._call(lambda: self._hub.read(log, after=after, limit=limit))

    async def length(self, log: str) -> int:
        return await self._call(lambda: self._hub.length(log))

    async def fence(self, log: str) -> int:
        return await self._call(lambda: self._hub.fence(log))

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        return await self._call(lambda: self._hub.get(keys))

    async def scan(
        self,
        prefix: Key,
        *,
        after: Key | None = None,
        before: Key | None = None,
        limit: int | None = None,
        reverse: bool = False,
    ) -> list[tuple[Key, bytes]]:
        return await self._call(
            lambda: self._hub.scan(prefix, after=after, before=before, limit=limit, reverse=reverse)
        )

    async def gather(self, prefixes: Sequence[Key]) -> list[list[tuple[Key, bytes]]]:
        return await self._call(lambda: self._hub.gather(prefixes))

    async def _call(self, request: Callable[[], Coroutine[object, object, T]]) -> T:
        """Send a request, which may come late or not at all; also if its sender has died or given up meanwhile."""
        host, loop = self._host, asyncio.get_running_loop()
        await host.ready()
        there, back, is_lost = host.journey()
        arrived, results, errors = anyio.Event(), list[T](), list[Exception]()

        def serve() -> None:
            try:
                results.append(_immediately(request()))
            except Exception as error:
                errors.append(error)
            loop.call_later(back, arrived.set)

        if is_lost:
            loop.call_later(there, arrived.set)
        else:
            loop.call_later(there, serve)
        host.waiting.add(arrived)
        await arrived.wait()
        host.waiting.discard(arrived)
        await host.ready()
        if errors:
            raise errors[0]
        if not results:
            raise StoreUnavailable("no answer came")
        return results[0]


def _immediately(call: Coroutine[object, object, T]) -> T:
    try:
        call.send(None)
    except StopIteration as stop:
        return cast("T", stop.value)  # What the coroutine returns.
    raise AssertionError("the memory engine never waits")


class Host:
    """One host: a clock, a network, and the life that runs on it until it crashes."""

    def __init__(self, world: "World", number: int) -> None:
        self.world, self.number, self.lives = world, number, 0
        random = world.random
        self._rate, self._offset = random.uniform(0.97, 1.03), random.uniform(0, 1e6)
        self._skew_ms = random.randint(-3_600_000, 3_600_000)
        self.cut_until = 0.0
        self._paused_until = 0.0
        self._is_dead = True
        self.waiting: set[anyio.Event] = set()
        self.scope = anyio.CancelScope()
        self.ended = anyio.Event()
        self.coordinator: Coordinator | None = None

    @property
    def name(self) -> str:
        return f"host{self.number}.{self.lives}"

    def pause(self, seconds: float) -> None:
        self._paused_until = max(self._paused_until, self.world.now + seconds)

    def was_paused_in_the_last(self, seconds: float) -> bool:
        return self._paused_until > self.world.now - seconds

    def crash(self) -> None:
        self._is_dead, self.coordinator = True, None
        self.scope.cancel()
        for arrived in self.waiting:
            arrived.set()

    def wake(self, session_id: str) -> None:
        if self.coordinator is not None:
            self.coordinator.wake(session_id)

    async def ready(self) -> None:
        """Wait while the host is paused. Raises StoreUnavailable in a dead one, which can do nothing any more."""
        while not self._is_dead and self._paused_until > self.world.now:
            await pass_time(self._paused_until - self.world.now)
        if self._is_dead:
            raise StoreUnavailable("the host has crashed")

    def journey(self) -> tuple[float, float, bool]:
        """How long a request takes there and back, and whether it gets lost."""
        random, world = self.world.random, self.world
        there, back = random.uniform(0, 0.02), random.uniform(0, 0.02)
        if (left := self.cut_until - world.now) > 0:
            how = random.randrange(3)
            return (
                (there + left, back, False) if how == 0 else (there, back + left, False) if how == 1 else (2, 0, True)
            )
        if random.random() < world.loss:
            return random.uniform(0, 3), 0, True
        if random.random() < world.slowness:
            there, back = there + random.choice([0, 1, 5, 12]), back + random.choice([0, 1, 5, 12])
        return there, back, False

    async def live(self) -> None:
        """Run sessions until the host crashes."""
        self.lives += 1
        self._is_dead, self.scope, self.ended = False, anyio.CancelScope(), anyio.Event()
        self._paused_until = 0.0
        self.waiting = set()
        with self.scope:
            async with anyio.create_task_group() as group:
                failover = self._build(group)
                group.start_soon(failover.watch)
        self.ended.set()

    def _build(self, group: anyio.abc.TaskGroup) -> Failover:
        link, world = Link(self.world.hub, self), self.world
        mint = Mint(clock=lambda: NOW + self._skew_ms + round(world.now * 1000), random=world.random.randbytes)
        store = Store(link, Journal(link, mint, lambda _: None, lambda: False), Queries(link), mint)
        owner = Owner(
            host=f"host{self.number}",
            pid=self.lives,
            started="0",
            machine=f"simulated {self.number}",
            boot=f"simulated {self.number}",
            lease_s=MANY_HOSTS.lease_s,
        )
        pace = Pace(lambda: world.now * self._rate + self._offset, self._sleep)
        leases = Leases(link, owner, MANY_HOSTS, pace)

        async def run(session_id: str, resume: bool) -> str:
            """As the runtime does: what a session was taken over for is not forgotten when the store stops its run."""
            resume = resume or session_id in children.resuming
            try:
                return await drain.run(session_id, await children.resumes(session_id, resume))
            except BaseException as error:
                if resume and is_cut_off(session_id, error) and not releases.is_owned(session_id):
                    children.resuming.add(session_id)
                raise

        def is_cut_off(session_id: str, error: BaseException) -> bool:
            return isinstance(error, StoreUnavailable) or lease_keeper.is_cutting_off(session_id)

        coordinator = Coordinator(group, run)
        lease_keeper = LeaseKeeper(store, leases, group, stop=coordinator.interrupt, wake=coordinator.wake)
        histories, releases = Histories(store), Releases(group, self._sleep, coordinator.wake)
        # Neither Child Sessions nor reverts nor questions occur here, so their parts are never asked for anything.
        children = Children(
            store,
            cast("ChildSessions", None),
            run=coordinator.run,
            wake=coordinator.wake,
            stop=lambda session_id: None,
            is_active=lambda session_id: session_id in coordinator.active,
            sleep=self._sleep,
        )
        reverts = Reverts(store, histories, cast("Callable[..., Awaitable[None]]", None))
        taking_over = TakeOver(store, histories, lease_keeper, lambda place: Config(), reverts, children)
        drain = Drain(
            store,
            histories,
            lease_keeper,
            cast("Preparation", SimulatedTurns(self, mint)),  # What is simulated.
            cast("OpenTurns", None),
            cast("Compaction", None),
            cast("ContextFitter", NothingToTidy()),
            releases,
            reverts,
            children,
            taking_over,
            is_cut_off,
        )
        self.coordinator = coordinator
        families = Families(store, coordinator, releases, children, cast("Jobs", None), lease_keeper.owner, set())
        return Failover(taking_over, coordinator, families, children, StoredWakes(link, mint), group)

    async def _sleep(self, seconds: float) -> None:
        await pass_time(seconds / self._rate)
        while not self._is_dead and self._paused_until > self.world.now:
            await pass_time(self._paused_until - self.world.now)


class NothingToTidy:
    async def tidy(self, writer: FencedWriter, view: SessionView, history: History) -> None:
        """Nothing grows here so much that it must be pruned."""


class SimulatedTurns:
    """Turns whose model says a few words, each after some time, and does something in the world with each."""

    def __init__(self, host: Host, mint: Mint) -> None:
        self._host, self._mint = host, mint

    async def run(self, writer: FencedWriter, view: SessionView, history: History, action: RunTurn) -> None:
        user, mint, random = action.user.message, self._mint, self._host.world.random
        assert isinstance(user, UserMessage)
        message = open_turn(user, "/", "/", id=mint.message_id(), now=mint.now())
        await writer.append(TurnStarted(message=message))
        try:
            for number in range(random.randint(1, 4)):
                await pass_time(random.choice([0.1, 1, 4, 9]))
                await self._host.ready()
                self._host.world.act(self._host, writer)
                await writer.append(PartRecorded(part=a_text(message, mint.part_id(), f"word {number}")))
        except EngineError:
            raise
        except BaseException as error:
            await writer.append(*close_turn(message, broken_off(error, "turn"), mint.now()))
            raise
        await writer.append(*close_turn(message, answered(FinishStep(reason="stop"), None), mint.now()))


class World:
    """A cluster, its clients and its troubles."""

    def __init__(self, seed: int, hub: Hub) -> None:
        self.random, self.hub = Random(seed), hub
        self.loss = self.random.choice([0, 0, 0.02, 0.1])
        self.slowness = self.random.choice([0, 0, 0.02, 0.1])
        self._trouble = self.random.choice([0.02, 0.1, 0.3])
        self.hosts = [Host(self, number) for number in range(self.random.randint(2, 4))]
        self.sessions = [f"ses_{number}" for number in range(self.random.randint(1, 4))]
        self._prompts: dict[str, list[str]] = {session_id: [] for session_id in self.sessions}
        self._journal = Journal(hub, Mint(clock=lambda: NOW, random=self.random.randbytes), lambda _: None)

    @property
    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def act(self, host: Host, writer: FencedWriter) -> None:
        """Note that a host does something outside of the store for a session."""
        is_stale = self.hub.highest(writer.session_id) > writer.fence
        # One that was paused needs a moment to find out that it was replaced.
        if is_stale and not host.was_paused_in_the_last(MANY_HOSTS.margin_s * 1.1):
            self.hub.problems.append(
                f"{writer.session_id}: {host.name} acted under fence {writer.fence} after it was replaced"
            )

    async def run(self) -> list[str]:
        """Live through the troubles, wait until all is answered, and look at what is in the logs."""
        for session_id in self.sessions:
            policy = self.random.choice(["rest", "continue"])
            await self._journal.create(a_session(session_id, metadata={"recovery": policy}))
        async with anyio.create_task_group() as group:
            for host in self.hosts:
                group.start_soon(host.live)
            async with anyio.create_task_group() as parts:
                parts.start_soon(self._clients)
                parts.start_soon(self._troubles, group)
            self.loss = self.slowness = 0
            await pass_time(LATEST_S)
            with anyio.move_on_after(PEACE_S):
                while not await self._rests():
                    self._wake_all()
                    await pass_time(3)
            group.cancel_scope.cancel()
        return [*self.hub.problems, *[one for session_id in self.sessions for one in await self._judge(session_id)]]

    async def _clients(self) -> None:
        for number in range(self.random.randint(2, 10)):
            await pass_time(self.random.uniform(0, 2 * TROUBLE_S / 10))
            session_id = self.random.choice(self.sessions)
            user = a_user(session_id, f"msg_{number:03d}")
            text = a_text(user, f"prt_{number:03d}", "Do it.")
            await self._journal.append(session_id, PromptAdmitted(message=user, parts=(text,), delivery="queue"))
            self._prompts[session_id].append(user.id)
            self.random.choice(self.hosts).wake(session_id)

    async def _troubles(self, group: anyio.abc.TaskGroup) -> None:
        while self.now < TROUBLE_S:
            await pass_time(1)
            for host in self.hosts:
                if self.random.random() < self._trouble:
                    await self._hurt(host, group)
            self._wake_all()

    async def _hurt(self, host: Host, group: anyio.abc.TaskGroup) -> None:
        seconds = self.random.choice([0.5, 3, 8, 12, 30])
        match self.random.randrange(3):
            case 0:
                host.pause(seconds)
            case 1:
                host.cut_until = max(host.cut_until, self.now + seconds)
            case _ if host.coordinator is not None:
                host.crash()
                group.start_soon(self._bring_back, host, seconds)

    async def _bring_back(self, host: Host, seconds: float) -> None:
        await host.ended.wait()
        await pass_time(seconds)
        await host.live()

    def _wake_all(self) -> None:
        for session_id in self.sessions:
            self.random.choice(self.hosts).wake(session_id)

    async def _rests(self) -> bool:
        """Whether nothing is left to do, also a moment later."""
        for _ in range(2):
            views = [await self._journal.view(session_id) for session_id in self.sessions]
            if any(view.owner is not None or view.turn is not None or view.inbox for view in views):
                return False
            await pass_time(1)
        return True

    async def _judge(self, session_id: str) -> list[str]:
        view = await self._journal.view(session_id)
        problems = []
        if view.owner is not None or view.turn is not None or view.inbox:
            problems.append(f"{session_id}: it never came to rest")
        turns: dict[str, list[AssistantMessage]] = {}
        async for message in Queries(self.hub).stream(session_id):
            if isinstance(message.info, AssistantMessage):
                turns.setdefault(message.info.parent_id, []).insert(0, message.info)
        for prompt in self._prompts[session_id]:
            own = turns.get(prompt, [])
            answers = [one for one in own if one.error is None]
            if not own:
                problems.append(f"{session_id}: prompt {prompt} was lost")
            elif len(answers) > 1 or (answers and own[-1].error is not None):
                problems.append(f"{session_id}: prompt {prompt} was answered more than once")
            elif not answers and (view.session.metadata or {}).get("recovery") == "continue":
                problems.append(f"{session_id}: prompt {prompt} rests though its session is to go on")
        return problems


class Outcome(msgspec.Struct, frozen=True):
    """What came of a simulation: what was wrong, and who wrote when."""

    problems: list[str]
    trace: list[str]


def simulate(seed: int, hub: Callable[[], Hub] = Hub) -> Outcome:
    """Simulate a cluster made from a seed."""
    store = hub()
    problems = run_virtual(lambda: World(seed, store).run())
    return Outcome(problems, store.trace)

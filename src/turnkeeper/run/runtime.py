"""The runtime: everything that runs sessions in this process, put together."""

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random

import anyio
from anyio.abc import TaskGroup

from turnkeeper.core.agents import TITLE, agents, default_agent
from turnkeeper.core.history import History
from turnkeeper.core.view import SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.message import ModelChoice, UserMessage
from turnkeeper.model.notification import Delta
from turnkeeper.model.refusal import Invalid
from turnkeeper.run.coordinator import Coordinator, Outcome
from turnkeeper.run.drain import Drain
from turnkeeper.run.histories import Histories
from turnkeeper.run.means import DirectoryMeans, Transport
from turnkeeper.run.permission import Approvals, Asker, reject_all
from turnkeeper.run.prepare import Preparation
from turnkeeper.run.transport import Network
from turnkeeper.run.turn import Surroundings
from turnkeeper.run.upkeep import give_title, title_request, wants_title
from turnkeeper.store.store import Store
from turnkeeper.workspace.owner import is_alive, this_process
from turnkeeper.workspace.project import ProjectPlace

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Settings:
    """How sessions are run here; the defaults are for people, the rest for tests."""

    ask: Asker = reject_all
    transport: Transport | None = None
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep
    random: Callable[[], float] = Random().random
    titles: bool = True


class Runtime:
    """Runs sessions: one drain each, all in one task group."""

    def __init__(
        self,
        store: Store,
        group: TaskGroup,
        publish: Callable[[Delta], None],
        settings: Settings,
    ) -> None:
        self._store, self._group = store, group
        self._network = Network()
        self.means = DirectoryMeans(settings.transport or self._network.provider)
        world = Surroundings(mint=store.mint, publish=publish, sleep=settings.sleep, random=settings.random)
        self._histories = Histories(store)
        preparation = Preparation(
            store=store,
            world=world,
            means=self.means.means,
            ask=settings.ask,
            approvals=Approvals(),
            begun=self._title if settings.titles else None,
        )
        drain = Drain(store, self._histories, this_process(), preparation)
        self._coordinator = Coordinator(group, drain.run)

    def wake(self, session_id: str) -> None:
        """See to it that a session is looked at."""
        self._coordinator.wake(session_id)

    async def run(self, session_id: str, *, resume: bool = False) -> Outcome:
        """Run a session until it rests."""
        return await self._coordinator.run(session_id, resume=resume)

    async def wait(self, session_id: str) -> Outcome:
        """Wait until a session rests."""
        return await self._coordinator.wait(session_id)

    async def interrupt(self, session_id: str) -> bool:
        """Stop a session's drain and wait until all is settled; whether one was running here."""
        return await self._coordinator.interrupt(session_id)

    async def aclose(self) -> None:
        """Stop every drain, wait until all is settled, and let go of the network."""
        for session_id in self.active:
            await self.interrupt(session_id)
        await self._network.aclose()

    @property
    def active(self) -> frozenset[str]:
        """Sessions that are being run by this process."""
        return self._coordinator.active

    async def agent(self, name: str | None, place: ProjectPlace) -> Agent:
        """The agent of this name, or the default one. Raises Invalid with what there is."""
        config, _ = self.means.catalog(place)
        known = agents(config, str(Path.home()))
        if name is None:
            return default_agent(known, config)
        if name not in known:
            shown = ", ".join(sorted(agent.name for agent in known.values() if not agent.hidden))
            raise Invalid(f"there is no agent {name!r}; the agents are: {shown}")
        return known[name]

    async def recover(self, policy: str = "rest") -> list[str]:
        """Close what dead processes left open, and run on what may be: the sessions that were found.

        A turn of which nothing was recorded is asked again; ``continue`` also goes on where output was cut off.
        """
        found = []
        for key, _ in await self._store.engine.scan(("busy",)):
            session_id = key[-1]
            view = await self._store.journal.view(session_id)
            if view.owner is not None and (is_alive(view.owner) or session_id in self.active):
                continue
            found.append(session_id)
            await self.run(session_id, resume=policy == "continue")
        return found

    def _title(self, view: SessionView, history: History, user: UserMessage, place: ProjectPlace) -> None:
        if wants_title(view, history):
            self._group.start_soon(self._give_title, view.session.id, history, user.model, place)

    async def _give_title(self, session_id: str, history: History, used: ModelChoice, place: ProjectPlace) -> None:
        try:
            means = await self.means.means(place)
            model = self.means.small_model(place, used)
            agent = means.agents.get(TITLE)
            if agent is not None:
                request = title_request(history, model, agent.temperature)
                await give_title(self._store, session_id, means.provider(model), request)
        except Exception:
            # The top of a background job: a session without a title is no reason to end anything.
            log.exception("no title for %s", session_id)

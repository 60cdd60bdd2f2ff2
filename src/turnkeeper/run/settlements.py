"""Settlements: how the calls of a turn are settled, from the configuration of its directory and its agent."""

from collections.abc import Mapping, Sequence
from functools import partial

import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.admission import handed_over
from turnkeeper.core.agents import find_agent
from turnkeeper.core.child_rules import mentioned
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.permission import freed, merge, rooted
from turnkeeper.core.trust import protected
from turnkeeper.core.view import SessionView
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import Event
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import AgentPart, Part
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.session import Session
from turnkeeper.run.abandon import CallTasks
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.run.asking import Asking, Responders
from turnkeeper.run.children import Children
from turnkeeper.run.delegation import CallDelegation, Caller
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.discovery import Discovery
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.permission import dismiss_all
from turnkeeper.run.plan_mode import PlanFile
from turnkeeper.run.settle import Settlement
from turnkeeper.run.turn import Surroundings
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.store.recall import SessionRecall
from turnkeeper.store.store import Store
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.project import ProjectPlace


class TurnSetting(msgspec.Struct, frozen=True):
    """The setting of a turn: its directory, configuration, agent and prompt."""

    place: ProjectPlace
    setup: DirectorySetup
    agent: Agent
    user: UserMessage
    mentions: Sequence[str]
    """The agents that the prompt names."""
    plan: PlanFile

    @classmethod
    def of(
        cls, session: Session, place: ProjectPlace, setup: DirectorySetup, user: HistoryItem, environ: Mapping[str, str]
    ) -> "TurnSetting":
        """The setting of a turn that answers a prompt. Raises Invalid for an unknown agent."""
        assert isinstance(user.message, UserMessage), "a turn answers the user"
        agent = find_agent(setup.agents, user.message.agent)
        mentions = [part.name for part in user.parts if isinstance(part, AgentPart)]
        return cls(place, setup, agent, user.message, mentions, PlanFile.of(session, place, environ))


def session_rules(setup: DirectorySetup, plan: PlanFile, agent: Agent, session: Session) -> Ruleset:
    """The rules of an agent in a session, for paths as tools write them."""
    given = rooted(merge(agent.permission, session.permission or ()), setup.top)
    own = plan.rules(given, agent, session)
    return protected(freed(own, (*setup.free(session.id), *plan.outside)), setup.own)


class Settlements(msgspec.Struct, frozen=True):
    """Makes the settlement of each turn."""

    store: Store
    group: TaskGroup
    calls: CallTasks
    world: Surroundings
    responders: Responders
    door: AnswerDoor
    environ: Mapping[str, str]
    children: Children
    jobs: Jobs | None = None

    def rules(self, turn: TurnSetting, view: SessionView, allowed: Ruleset = ()) -> Ruleset:
        """The rules of a turn. The agents that its prompt names, and what is ``allowed``, need no permission."""
        rules = session_rules(turn.setup, turn.plan, turn.agent, view.session)
        if self.responders.question is dismiss_all:  # A question that cannot be answered is better not asked.
            rules = (*rules, Rule(permission="question", pattern="*", action="deny"))
        return merge(rules, mentioned(turn.mentions), allowed)

    def settlement(
        self,
        writer: FencedWriter,
        view: SessionView,
        turn: TurnSetting,
        rules: Ruleset,
        toolbox: Toolbox,
        earlier: Sequence[Part],
    ) -> Settlement:
        """How the calls of a turn are settled. ``earlier`` are the newest calls since the user spoke."""
        session_id, world, place, setup = view.session.id, self.world, turn.place, turn.setup
        approved = self.door.approvals.place(view.session)

        async def hand_over(name: str, words: str) -> list[Event]:
            other, mint = find_agent(setup.agents, name), self.store.mint
            return handed_over(other, words, turn.user, await writer.view(), mint, mint.now())

        asking = Asking(writer, approved, self.store, world.mint, world.sleep, self.door, self.responders, setup.ask)
        caller = Caller(view.session, turn.agent, setup.agents, setup.delegating)
        return Settlement(
            writer=writer,
            tasks=self.calls,
            mint=self.store.mint,
            toolbox=toolbox,
            directory=place.directory,
            worktree=place.worktree,
            rules=rules,
            asking=asking,
            todos=lambda: self.store.queries.todos(session_id),
            discovery=Discovery(place, self.environ, view.instructions),
            snapshots=TurnSnapshots(
                session_id, setup.snapshots, self.group, world.sleep, partial(self.children.callers_above, session_id)
            ),
            earlier=earlier,
            bounds=setup.bounds(session_id),
            recall=SessionRecall(self.store.queries, session_id),
            environ=setup.environ,
            services=setup.services(session_id),
            confine=partial(setup.confine, session_id),
            jobs=self.jobs,
            plan=turn.plan.path,
            handed_over=hand_over,
            delegate=partial(CallDelegation, self.children, writer, caller),
            plugins=setup.plugins,
            goes_on_when_rejected=setup.goes_on_when_rejected,
            is_interrupted=lambda: world.is_interrupted(session_id),
        )

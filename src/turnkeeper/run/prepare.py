"""Prepare a turn: agent, model, epoch, history and tools become one request; then the turn is run."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import anyio
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.admission import handed_over
from turnkeeper.core.agents import find_agent
from turnkeeper.core.asks import waiting_calls
from turnkeeper.core.child_rules import mentioned
from turnkeeper.core.doom_loop import latest_calls
from turnkeeper.core.file_changes import TurnFiles, files_since
from turnkeeper.core.fitting import too_large
from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import SNAPSHOT_END_S
from turnkeeper.core.next_action import RunSubtask, RunTurn, last_user
from turnkeeper.core.permission import freed, merge, rooted
from turnkeeper.core.settling import failed
from turnkeeper.core.subtasks import follow_up, subtask_call
from turnkeeper.core.trust import protected
from turnkeeper.core.turn_ends import Ending, close_resumed_turn, close_turn, open_turn, refused, stopped_open
from turnkeeper.core.turn_request import TurnInputs
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.core.window import answer_max
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import Event, MessageRecorded, PartRecorded, TurnEnded, TurnStarted
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import AgentPart, Part, SnapshotPart, SubtaskPart, ToolPart
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.abandon import CallTasks
from turnkeeper.run.answers import AnswerDoor
from turnkeeper.run.asking import Asking, Responders
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.change_summaries import Changed, ChangeSummaries
from turnkeeper.run.children import Children
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.delegation import CallDelegation, Caller
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.discovery import Discovery
from turnkeeper.run.pen import Pen
from turnkeeper.run.permission import dismiss_all
from turnkeeper.run.plan_mode import PlanFile, remind
from turnkeeper.run.settle import Settlement
from turnkeeper.run.turn import Surroundings, Turn
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.recall import SessionRecall
from turnkeeper.store.store import Store
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.project import ProjectPlace, check_not_grown, stored_place


class Preparation(msgspec.Struct, frozen=True):
    """Prepares and runs turns."""

    store: Store
    group: TaskGroup
    calls: CallTasks
    world: Surroundings
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    responders: Responders
    door: AnswerDoor
    boundary: Boundary
    fitter: ContextFitter
    changes: ChangeSummaries
    children: Children
    jobs: Jobs | None = None
    begun: Callable[[SessionView, History, UserMessage, ProjectPlace], None] | None = None
    """Told when the first turn after a prompt begins, so that upkeep can start beside it."""

    async def run(self, pen: Pen, view: SessionView, history: History, action: RunTurn) -> None:
        """One turn, from its preparation to its end."""
        user = action.user.message
        assert isinstance(user, UserMessage), "a turn answers the user"
        mint = self.store.mint
        try:
            place = await stored_place(view.session.directory)
            check_not_grown(place, view.session.project_id, _last_root(history))
        except Refusal as refusal:
            directory = view.session.directory
            message = open_turn(user, directory, directory, id=mint.message_id(), now=mint.now())
            await self._failed(pen, message, refused(str(refusal)))
            return
        message = open_turn(user, str(place.directory), str(place.worktree), id=mint.message_id(), now=mint.now())
        if self.begun is not None and action.step == 1:
            self.begun(view, history, user, place)
        try:
            setup = await self.setup(place)
            model = setup.find(user.model)
            agent = find_agent(setup.agents, user.agent)
            provider = setup.provider(model)
        except Refusal as refusal:
            await self._failed(pen, message, refused(str(refusal)))
            return
        plan = PlanFile.of(view.session, place, self.boundary.environ)
        view, history = await remind(pen, view, history, user, agent, plan, mint)
        epoch, history = await self.boundary.cross(
            pen, view, history, model, agent, place, instructions=setup.instructions, timezone=setup.timezone
        )
        rules = merge(self._rules(setup, agent, view, plan), mentioned(_mentions(action.user)))
        toolbox = setup.toolbox.visible(rules, user.tools, model_id=model.id, agents=setup.agents.values())
        output_max = answer_max(model.limits, setup.window)
        inputs = TurnInputs(view, history, action, user, model, agent, epoch, toolbox.definitions(), output_max)
        ready = await self.fitter.fit(pen, inputs, setup.window, message.time.created)
        if ready is None:
            return
        if (failure := too_large(ready)) is not None:
            await self._failed(pen, message, Ending(failure=failure))
            return
        earlier = latest_calls(ready.inputs.history, action.user)
        settlement = self._settlement(pen, view, earlier, toolbox, place, rules, setup, agent, user, plan)
        settlement.is_last, settlement.schema = ready.inputs.is_last, ready.inputs.schema
        turn = Turn(
            pen,
            self.world,
            provider,
            ready,
            message,
            settlement,
            lambda failure: self.fitter.remedy(failure, ready, provider, setup.window),
        )
        await turn.run()
        self._summarise(view, history, user, turn.files, setup)

    def _summarise(
        self, view: SessionView, history: History, user: UserMessage, files: TurnFiles | None, setup: DirectorySetup
    ) -> None:
        if files is not None and files.files:
            first = view.first_patch.tree if view.first_patch is not None else files.before
            prompt = files_since(history, user.id, files)
            self.changes.begin(view.session.id, Changed(first, prompt, user, setup.snapshots))

    async def resume(self, pen: Pen, view: SessionView, history: History) -> None:
        """Run the waiting calls of the open turn again from their beginning, and end the turn."""
        assert view.turn is not None, "an open turn is resumed"
        turn = await self.store.queries.whole(view.turn)
        await self._run_calls(pen, view, history, turn, waiting_calls(view.but(turn=turn)), subtask=None)

    async def run_subtask(self, pen: Pen, view: SessionView, history: History, action: RunSubtask) -> None:
        """Hand a subtask to a Child Session: one call in an assistant message of its own, which no model made."""
        user, mint = action.user.message, self.store.mint
        assert isinstance(user, UserMessage), "a subtask is given by the user"
        asked = user.but(agent=action.part.agent, model=action.part.model or user.model)
        try:
            place = await stored_place(view.session.directory)
        except Refusal as refusal:
            directory = view.session.directory
            message = open_turn(asked, directory, directory, id=mint.message_id(), now=mint.now())
            await self._failed(pen, message, refused(str(refusal)))
            return
        if self.begun is not None:
            self.begun(view, history, user, place)
        message = open_turn(asked, str(place.directory), str(place.worktree), id=mint.message_id(), now=mint.now())
        call = subtask_call(action.part, message, mint.part_id(), mint.now())
        after = await pen.append(TurnStarted(message=message), PartRecorded(part=call), at="attempt")
        assert after.turn is not None, "the turn has begun"
        turn = await self.store.queries.whole(after.turn)
        calls = [part for part in turn.parts.values() if isinstance(part, ToolPart)]
        await self._run_calls(pen, after, history, turn, calls, subtask=action.part)

    async def _run_calls(
        self,
        pen: Pen,
        view: SessionView,
        history: History,
        turn: OpenTurn,
        waiting: Sequence[ToolPart],
        *,
        subtask: SubtaskPart | None,
    ) -> None:
        """Run calls of an open turn from their beginning, and end the turn.

        ``subtask`` is what the user has just given; None if an earlier process began the turn. Then one whose Child
        Session was cut off, and does not go on, is cut off itself.
        """
        mint = self.store.mint
        allowed = mentioned([subtask.agent]) if subtask is not None else ()
        snapshots: TurnSnapshots | None = None
        try:
            settlement, user, setup = await self._resumed(pen, view, history, turn, allowed)
            snapshots = settlement.snapshots
            snapshots.record = partial(self._record_snapshot, pen, turn.message, snapshots)
            snapshots.begin()
            await settlement.resume([part for part in turn.parts.values() if isinstance(part, ToolPart)], waiting)
        except Refusal as refusal:
            states = [part.but(state=failed(part, mint.now(), str(refusal), {})) for part in waiting]
            pen.hold(*(PartRecorded(part=part) for part in states), at="settle")
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._break_off(pen, error, snapshots)
            raise
        files = await snapshots.finish() if snapshots is not None else None
        ended = await pen.view()
        closing = close_resumed_turn(
            ended, mint.now(), files=files, part_id=mint.part_id, may_be_cut_off=subtask is None
        )
        pen.hold(*closing, at="end")
        if (said := self._follow_up(history, ended, closing)) is not None:
            pen.hold(MessageRecorded(message=said.info, parts=said.parts))
        if snapshots is not None:
            self._summarise(view, history, user, files, setup)

    def _follow_up(self, history: History, view: SessionView, closing: Sequence[Event]) -> MessageWithParts | None:
        assert view.turn is not None, "the turn was open until now"
        [message] = [one.message for one in closing if isinstance(one, TurnEnded)]
        mint, turn = self.store.mint, HistoryItem(message=message, parts=tuple(view.turn.parts.values()))
        return follow_up(history, turn, message_id=mint.message_id(), part_id=mint.part_id(), now=mint.now())

    async def _record_snapshot(self, pen: Pen, message: AssistantMessage, snapshots: TurnSnapshots) -> None:
        """Record the snapshot before calls that run again, which may be long after those of the same turn."""
        assert snapshots.before is not None, "only a snapshot that was taken is recorded"
        mark = SnapshotPart(
            id=self.store.mint.part_id(),
            session_id=message.session_id,
            message_id=message.id,
            snapshot=snapshots.before,
        )
        with suppress(StoreUnavailable):  # It stays held, and the call's result comes after it.
            await pen.append(PartRecorded(part=mark), at="record")

    async def _break_off(self, pen: Pen, error: BaseException, snapshots: TurnSnapshots | None) -> None:
        files: TurnFiles | None = None
        if snapshots is not None:
            with anyio.move_on_after(SNAPSHOT_END_S):
                files = await snapshots.finish()
        view = await pen.view()
        assert view.turn is not None, "the turn is open until its calls are settled"
        is_stopped = isinstance(error, anyio.get_cancelled_exc_class())
        if is_stopped and not self.world.is_interrupted(pen.session_id) and waiting_calls(view):
            pen.hold(*_patched(files, view.turn.message, self.store.mint.part_id))
            await pen.leave_turn(await pen.view())
        else:
            turn = await self.store.queries.whole(view.turn)
            mint = self.store.mint
            events = stopped_open(turn, error, mint.now(), files=files, part_id=mint.part_id)
            await pen.append(*events, at="end")

    async def _resumed(
        self, pen: Pen, view: SessionView, history: History, turn: OpenTurn, allowed: Ruleset
    ) -> tuple[Settlement, UserMessage, DirectorySetup]:
        user = last_user(history)
        assert user is not None, "a turn answers the user"
        assert isinstance(user.message, UserMessage), "who is a user"
        place = await stored_place(view.session.directory)
        check_not_grown(place, view.session.project_id, turn.message.path.root)
        setup = await self.setup(place)
        plan = PlanFile.of(view.session, place, self.boundary.environ)
        message, agent = user.message, find_agent(setup.agents, user.message.agent)
        rules = merge(self._rules(setup, agent, view, plan), mentioned(_mentions(user)), allowed)
        toolbox = setup.toolbox.visible(
            rules, message.tools, model_id=message.model.model_id, agents=setup.agents.values()
        )
        before = [entry for entry in history.entries if entry.message.id != turn.message.id]
        earlier = latest_calls(history.but(entries=before), user)
        return self._settlement(pen, view, earlier, toolbox, place, rules, setup, agent, message, plan), message, setup

    def _rules(self, setup: DirectorySetup, agent: Agent, view: SessionView, plan: PlanFile) -> Ruleset:
        given = rooted(merge(agent.permission, view.session.permission or ()), setup.top)
        own = plan.rules(given, agent, view.session)
        rules = protected(freed(own, (*setup.free(view.session.id), *plan.outside)), setup.own)
        if self.responders.question is dismiss_all:  # A question that nobody can answer is better not asked.
            return (*rules, Rule(permission="question", pattern="*", action="deny"))
        return rules

    def _settlement(
        self,
        pen: Pen,
        view: SessionView,
        earlier: Sequence[Part],
        toolbox: Toolbox,
        place: ProjectPlace,
        rules: Ruleset,
        setup: DirectorySetup,
        agent: Agent,
        user: UserMessage,
        plan: PlanFile,
    ) -> Settlement:
        """How the calls of a turn are settled."""
        session_id, world = view.session.id, self.world
        approved = self.door.approvals.place(view.session)

        async def hand_over(name: str, words: str) -> list[Event]:
            other, mint = find_agent(setup.agents, name), self.store.mint
            return handed_over(other, words, user, await pen.view(), mint, mint.now())

        asking = Asking(pen, approved, self.store, world.mint, world.sleep, self.door, self.responders, setup.ask)
        caller = Caller(view.session, agent, setup.agents, setup.delegating)
        return Settlement(
            pen=pen,
            tasks=self.calls,
            mint=self.store.mint,
            toolbox=toolbox,
            directory=place.directory,
            worktree=place.worktree,
            rules=rules,
            asking=asking,
            todos=lambda: self.store.queries.todos(session_id),
            discovery=Discovery(place, self.boundary.environ, view.instructions),
            snapshots=TurnSnapshots(session_id, setup.snapshots, self.group, world.sleep),
            earlier=earlier,
            bounds=setup.bounds(session_id),
            recall=SessionRecall(self.store.queries, session_id),
            environ=setup.environ,
            services=setup.services(session_id),
            confine=partial(setup.confine, session_id),
            jobs=self.jobs,
            plan=plan.path,
            handed_over=hand_over,
            delegate=partial(CallDelegation, self.children, pen, caller),
            goes_on_when_rejected=setup.goes_on_when_rejected,
            is_interrupted=lambda: world.is_interrupted(session_id),
        )

    async def _failed(self, pen: Pen, message: AssistantMessage, ending: Ending) -> None:
        """Record a turn that cannot even be asked for, like any other that failed."""
        await pen.append(TurnStarted(message=message), *close_turn(message, ending, self.store.mint.now()))


def _last_root(history: History) -> str | None:
    """The worktree of the last turn."""
    messages = (entry.message for entry in reversed(history.entries))
    return next((one.path.root for one in messages if isinstance(one, AssistantMessage)), None)


def _mentions(user: HistoryItem) -> list[str]:
    """The agents that the user has named in a prompt."""
    return [part.name for part in user.parts if isinstance(part, AgentPart)]


def _patched(files: TurnFiles | None, message: AssistantMessage, part_id: Callable[[], str]) -> list[PartRecorded]:
    return [PartRecorded(part=part) for part in files.patch(message, part_id)] if files is not None else []

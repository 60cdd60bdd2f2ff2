"""Prepare a turn: agent, model, epoch, history and tools become one request; then the turn is run."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core.agents import find_agent
from turnkeeper.core.doom_loop import latest_calls
from turnkeeper.core.fitting import too_large
from turnkeeper.core.history import History
from turnkeeper.core.next_action import RunTurn
from turnkeeper.core.permission import freed, merge
from turnkeeper.core.trust import protected
from turnkeeper.core.turn_ends import Ending, close_turn, open_turn, refused
from turnkeeper.core.turn_request import TurnInputs
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import answer_max
from turnkeeper.model.event import TurnStarted
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.discovery import Discovery
from turnkeeper.run.pen import Pen
from turnkeeper.run.permission import Approvals, Asker
from turnkeeper.run.settle import Settlement
from turnkeeper.run.turn import Surroundings, Turn
from turnkeeper.store.recall import SessionRecall
from turnkeeper.store.store import Store
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.project import ProjectPlace, identify


class Preparation(msgspec.Struct, frozen=True):
    """Prepares and runs turns."""

    store: Store
    group: TaskGroup
    world: Surroundings
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    ask: Asker
    approvals: Approvals
    boundary: Boundary
    fitter: ContextFitter
    jobs: Jobs | None = None
    begun: Callable[[SessionView, History, UserMessage, ProjectPlace], None] | None = None
    """Told when the first turn after a prompt begins, so that upkeep can start beside it."""

    async def run(self, pen: Pen, view: SessionView, history: History, action: RunTurn) -> None:
        """One turn, from its preparation to its end."""
        user = action.user.message
        assert isinstance(user, UserMessage), "a turn answers the user"
        place = await identify(Path(view.session.directory))
        mint = self.store.mint
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
        epoch, history = await self.boundary.cross(
            pen, view, history, model, agent, place, instructions=setup.instructions, timezone=setup.timezone
        )
        rules = protected(freed(merge(setup.rules, agent.permission, view.session.permission or ()), setup.outputs))
        toolbox = setup.toolbox.visible(rules, user.tools, model_id=model.id)
        output_max = answer_max(model.limits, setup.window)
        inputs = TurnInputs(view, history, action, user, model, agent, epoch, toolbox.definitions(), output_max)
        ready = await self.fitter.fit(pen, inputs, setup.window, message.time.created)
        if ready is None:
            return
        if (failure := too_large(ready)) is not None:
            await self._failed(pen, message, Ending(failure=failure))
            return
        turn = Turn(
            pen,
            self.world,
            provider,
            ready,
            message,
            self._settlement(ready.inputs, toolbox, pen, place, rules, setup),
            lambda failure: self.fitter.remedy(failure, ready, provider, setup.window),
        )
        await turn.run()

    def _settlement(
        self, inputs: TurnInputs, toolbox: Toolbox, pen: Pen, place: ProjectPlace, rules: Ruleset, setup: DirectorySetup
    ) -> Settlement:
        """How the calls of this turn are settled."""
        session_id = inputs.view.session.id
        return Settlement(
            pen=pen,
            group=self.group,
            mint=self.store.mint,
            toolbox=toolbox,
            directory=place.directory,
            worktree=place.worktree,
            rules=rules,
            approvals=self.approvals,
            ask=self.ask,
            todos=lambda: self.store.queries.todos(session_id),
            discovery=Discovery(place, self.boundary.environ, inputs.view.instructions),
            earlier=latest_calls(inputs.history, inputs.action.user),
            is_last=inputs.is_last,
            schema=inputs.schema,
            bounds=setup.bounds(session_id),
            recall=SessionRecall(self.store.queries, session_id),
            environ=setup.environ,
            services=setup.services(session_id),
            confine=partial(setup.confine, session_id),
            jobs=self.jobs,
        )

    async def _failed(self, pen: Pen, message: AssistantMessage, ending: Ending) -> None:
        """Record a turn that cannot even be asked for, like any other that failed."""
        await pen.append(TurnStarted(message=message), *close_turn(message, ending, self.store.mint.now()))

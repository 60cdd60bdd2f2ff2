"""Prepare a turn: agent, model, epoch, history and tools become one request; then the turn is run."""

from collections.abc import Awaitable, Callable

import msgspec

from turnkeeper.core.doom_loop import latest_calls
from turnkeeper.core.fitting import too_large
from turnkeeper.core.history import History, last_root
from turnkeeper.core.next_action import RunTurn
from turnkeeper.core.turn_ends import Ending, open_turn, refused
from turnkeeper.core.turn_request import PreparedRequest, TurnInputs
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import answer_max
from turnkeeper.model.message import TurnPath, UserMessage
from turnkeeper.model.refusal import Refusal
from turnkeeper.plugins.payloads import RequestInput
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.plugins.requests import brought_tools, changed_request, changed_tools
from turnkeeper.run.boundary import Boundary
from turnkeeper.run.change_summaries import ChangeSummaries
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.open_turns import record_failed_turn
from turnkeeper.run.plan_mode import remind
from turnkeeper.run.settlements import Settlements, TurnSetting
from turnkeeper.run.turn import Surroundings, Turn
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, check_not_grown, stored_place


class Preparation(msgspec.Struct, frozen=True):
    """Prepares and runs turns."""

    store: Store
    world: Surroundings
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    settlements: Settlements
    boundary: Boundary
    fitter: ContextFitter
    changes: ChangeSummaries
    begun: Callable[[SessionView, History, UserMessage, ProjectPlace], None] | None = None
    """Called when the first turn after a prompt begins, so that upkeep can start concurrently."""

    async def run(self, writer: FencedWriter, view: SessionView, history: History, action: RunTurn) -> None:
        """Prepare and run one turn."""
        user = action.user.message
        assert isinstance(user, UserMessage), "a turn answers the user"
        mint, directory = self.store.mint, view.session.directory
        message = open_turn(user, directory, directory, id=mint.message_id(), now=mint.now())
        try:
            place = await stored_place(directory)
            check_not_grown(place, view.session.project_id, last_root(history))
            message = message.but(path=TurnPath(cwd=str(place.directory), root=str(place.worktree)))
            if self.begun is not None and action.step == 1:
                self.begun(view, history, user, place)
            setup = await self.setup(place)
            model = setup.find(user.model)
            setting = TurnSetting.of(view.session, place, setup, action.user, self.boundary.environ)
            provider = setup.provider(model)
        except Refusal as refusal:
            await record_failed_turn(writer, message, refused(str(refusal)), mint.now())
            return
        agent = setting.agent
        view, history = await remind(writer, view, history, user, agent, setting.plan, mint)
        rules = self.settlements.rules(setting, view)
        toolbox = setup.toolbox.visible(rules, user.tools, model_id=model.id, agents=setup.agents.values())
        epoch, history = await self.boundary.cross(writer, view, history, model, setting, toolbox, rules)
        output_max = answer_max(model.limits, setup.window)
        tools, described = await changed_tools(setup.plugins, toolbox.definitions(), writer.session_id)
        servers = {one.name: one.tools_hash for one in setup.servers if one.is_on and one.tools}
        brought = brought_tools(setup.plugins, toolbox.definitions())
        inputs = TurnInputs(view, history, action, user, model, agent, epoch, tools, output_max, servers, brought)
        ready = await self.fitter.fit(writer, inputs, setup.window, message.time.created)
        if ready is None:
            return
        if (failure := too_large(ready)) is not None:
            await record_failed_turn(writer, message, Ending(failure=failure), mint.now())
            return
        ready = await _changed(ready, setup.plugins, described)
        earlier = latest_calls(ready.inputs.history, action.user)
        settlement = self.settlements.settlement(writer, view, setting, rules, toolbox, earlier)
        settlement.is_last, settlement.schema = ready.inputs.is_last, ready.inputs.schema
        turn = Turn(
            writer,
            self.world,
            provider,
            ready,
            message,
            settlement,
            setup.plugins,
            lambda failure: self.fitter.remedy(failure, ready, provider, setup.window),
        )
        await turn.run()
        self.changes.after_turn(view, history, user, turn.files, setup.snapshots)


async def _changed(ready: PreparedRequest, plugins: PluginSet, described: tuple[str, ...]) -> PreparedRequest:
    """The request as plugins change it."""
    inputs = ready.inputs
    asked = RequestInput(
        session_id=inputs.view.session.id, model=inputs.model, agent=inputs.agent.name, message=inputs.user
    )
    request, changes = await changed_request(plugins, ready.request, asked)
    return ready.changed(request, (*described, *changes)) if described or changes else ready

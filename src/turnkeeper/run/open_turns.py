"""Open turns: calls that no request of this process asked for. They waited for the user, or are subtasks."""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial

import anyio
import msgspec

from turnkeeper.core.asks import waiting_calls
from turnkeeper.core.child_rules import mentioned
from turnkeeper.core.doom_loop import latest_calls
from turnkeeper.core.file_changes import TurnFiles
from turnkeeper.core.history import History, HistoryItem
from turnkeeper.core.limits import SNAPSHOT_END_S
from turnkeeper.core.next_action import RunSubtask, last_user
from turnkeeper.core.settling import failed
from turnkeeper.core.subtasks import follow_up, subtask_call
from turnkeeper.core.turn_ends import Ending, close_resumed_turn, close_turn, open_turn, refused, stopped_open
from turnkeeper.core.view import OpenTurn, SessionView
from turnkeeper.model.event import Event, MessageRecorded, PartRecorded, TurnEnded, TurnStarted
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import SnapshotPart, SubtaskPart, ToolPart
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.change_summaries import ChangeSummaries
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.settle import Settlement
from turnkeeper.run.settlements import Settlements, TurnSetting
from turnkeeper.run.turn import Surroundings
from turnkeeper.run.turn_snapshots import TurnSnapshots
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, check_not_grown, stored_place


class OpenTurns(msgspec.Struct, frozen=True):
    """Runs the calls of open turns, and ends the turns."""

    store: Store
    world: Surroundings
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    settlements: Settlements
    changes: ChangeSummaries
    begun: Callable[[SessionView, History, UserMessage, ProjectPlace], None] | None = None
    """Called when the first turn after a prompt begins, so that upkeep can start concurrently."""

    async def resume(self, writer: FencedWriter, view: SessionView, history: History) -> bool:
        """Run the waiting calls of the open turn again from their beginning, and end the turn.

        Returns whether the turn was cut off because a Child Session was. The model is not asked again then until the
        user resumes the session.
        """
        assert view.turn is not None, "an open turn is resumed"
        turn = await self.store.queries.whole(view.turn)
        return await self._run_calls(writer, view, history, turn, waiting_calls(view.but(turn=turn)), subtask=None)

    async def run_subtask(self, writer: FencedWriter, view: SessionView, history: History, action: RunSubtask) -> None:
        """Hand a subtask to a Child Session: one call in an assistant message of its own, which no model made."""
        user, mint = action.user.message, self.store.mint
        assert isinstance(user, UserMessage), "a subtask is given by the user"
        asked = user.but(agent=action.part.agent, model=action.part.model or user.model)
        try:
            place = await stored_place(view.session.directory)
        except Refusal as refusal:
            directory = view.session.directory
            message = open_turn(asked, directory, directory, id=mint.message_id(), now=mint.now())
            await record_failed_turn(writer, message, refused(str(refusal)), mint.now())
            return
        if self.begun is not None:
            self.begun(view, history, user, place)
        message = open_turn(asked, str(place.directory), str(place.worktree), id=mint.message_id(), now=mint.now())
        call = subtask_call(action.part, message, mint.part_id(), mint.now())
        after = await writer.append(TurnStarted(message=message), PartRecorded(part=call), at="attempt")
        assert after.turn is not None, "the turn has begun"
        turn = await self.store.queries.whole(after.turn)
        calls = [part for part in turn.parts.values() if isinstance(part, ToolPart)]
        await self._run_calls(writer, after, history, turn, calls, subtask=action.part)

    async def _run_calls(
        self,
        writer: FencedWriter,
        view: SessionView,
        history: History,
        turn: OpenTurn,
        waiting: Sequence[ToolPart],
        *,
        subtask: SubtaskPart | None,
    ) -> bool:
        """Run calls of an open turn from their beginning, and end the turn; returns whether it was cut off.

        ``subtask`` is the one the user has just given; None if an earlier process began the turn. Such a turn is cut
        off if its Child Session was cut off and is not resumed.
        """
        mint = self.store.mint
        allowed = mentioned([subtask.agent]) if subtask is not None else ()
        snapshots: TurnSnapshots | None = None
        try:
            settlement, setting = await self._resumed(writer, view, history, turn, allowed)
            snapshots = settlement.snapshots
            snapshots.record = partial(self._record_snapshot, writer, turn.message, snapshots)
            snapshots.begin()
            await settlement.resume([part for part in turn.parts.values() if isinstance(part, ToolPart)], waiting)
        except Refusal as refusal:
            states = [part.but(state=failed(part, mint.now(), str(refusal), {})) for part in waiting]
            writer.hold(*(PartRecorded(part=part) for part in states), at="settle")
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._break_off(writer, error, snapshots)
            raise
        files = await snapshots.finish() if snapshots is not None else None
        ended = await writer.view()
        closing = close_resumed_turn(
            ended, mint.now(), files=files, part_id=mint.part_id, may_be_cut_off=subtask is None
        )
        writer.hold(*closing, at="end")
        if (said := self._follow_up(history, ended, closing)) is not None:
            writer.hold(MessageRecorded(message=said.info, parts=said.parts))
        if snapshots is not None:
            self.changes.after_turn(view, history, setting.user, files, setting.setup.snapshots)
        return any(isinstance(one, TurnEnded) and one.message.error is not None for one in closing)

    def _follow_up(self, history: History, view: SessionView, closing: Sequence[Event]) -> MessageWithParts | None:
        assert view.turn is not None, "the turn was open until now"
        [message] = [one.message for one in closing if isinstance(one, TurnEnded)]
        mint, turn = self.store.mint, HistoryItem(message=message, parts=tuple(view.turn.parts.values()))
        return follow_up(history, turn, message_id=mint.message_id(), part_id=mint.part_id(), now=mint.now())

    async def _record_snapshot(self, writer: FencedWriter, message: AssistantMessage, snapshots: TurnSnapshots) -> None:
        """Record the snapshot before calls that run again, which may be long after those of the same turn."""
        assert snapshots.before is not None, "only a snapshot that was taken is recorded"
        mark = SnapshotPart(
            id=self.store.mint.part_id(),
            session_id=message.session_id,
            message_id=message.id,
            snapshot=snapshots.before,
        )
        with suppress(StoreUnavailable):  # It stays held, and the call's result comes after it.
            await writer.append(PartRecorded(part=mark), at="record")

    async def _break_off(self, writer: FencedWriter, error: BaseException, snapshots: TurnSnapshots | None) -> None:
        files: TurnFiles | None = None
        if snapshots is not None:
            with anyio.move_on_after(SNAPSHOT_END_S):
                files = await snapshots.finish()
        view = await writer.view()
        assert view.turn is not None, "the turn is open until its calls are settled"
        is_stopped = isinstance(error, anyio.get_cancelled_exc_class())
        if is_stopped and not self.world.is_interrupted(writer.session_id) and waiting_calls(view):
            writer.hold(*_patched(files, view.turn.message, self.store.mint.part_id))
            await writer.leave_turn(await writer.view())
        else:
            turn = await self.store.queries.whole(view.turn)
            mint, is_cut_off = self.store.mint, self.world.is_cut_off(writer.session_id, error)
            events = stopped_open(turn, error, mint.now(), files=files, part_id=mint.part_id, is_cut_off=is_cut_off)
            await writer.append(*events, at="end")

    async def _resumed(
        self, writer: FencedWriter, view: SessionView, history: History, turn: OpenTurn, allowed: Ruleset
    ) -> tuple[Settlement, TurnSetting]:
        user = last_user(history)
        assert user is not None, "a turn answers the user"
        place = await stored_place(view.session.directory)
        check_not_grown(place, view.session.project_id, turn.message.path.root)
        setup = await self.setup(place)
        setting = TurnSetting.of(view.session, place, setup, user, self.settlements.environ)
        rules, message = self.settlements.rules(setting, view, allowed), setting.user
        toolbox = setup.toolbox.visible(
            rules, message.tools, model_id=message.model.model_id, agents=setup.agents.values()
        )
        before = [entry for entry in history.entries if entry.message.id != turn.message.id]
        earlier = latest_calls(history.but(entries=before), user)
        return self.settlements.settlement(writer, view, setting, rules, toolbox, earlier), setting


async def record_failed_turn(writer: FencedWriter, message: AssistantMessage, ending: Ending, now: int) -> None:
    """Record a turn that cannot even be asked for, like any other that failed."""
    await writer.append(TurnStarted(message=message), *close_turn(message, ending, now))


def _patched(files: TurnFiles | None, message: AssistantMessage, part_id: Callable[[], str]) -> list[PartRecorded]:
    return [PartRecorded(part=part) for part in files.patch(message, part_id)] if files is not None else []

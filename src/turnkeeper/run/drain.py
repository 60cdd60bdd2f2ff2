"""A drain: ask what is next, do that one thing, ask again; until the session rests."""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import assert_never

import msgspec

from turnkeeper.core.asks import waiting_calls
from turnkeeper.core.history import History
from turnkeeper.core.next_action import (
    Abandon,
    Action,
    Compact,
    Promote,
    Rest,
    ResumeTurn,
    RunSubtask,
    RunTurn,
    next_action,
    promotion,
)
from turnkeeper.core.restores import is_open, is_pending
from turnkeeper.core.view import SessionView
from turnkeeper.model.refusal import Busy
from turnkeeper.model.status import Idle
from turnkeeper.run.children import Children
from turnkeeper.run.compact import Compaction
from turnkeeper.run.context_window import ContextFitter
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.histories import Histories
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.open_turns import OpenTurns
from turnkeeper.run.prepare import Preparation
from turnkeeper.run.recover import TakeOver
from turnkeeper.run.release import Releases
from turnkeeper.run.reverts import Reverts
from turnkeeper.store.store import Store


class Drain(msgspec.Struct, frozen=True):
    """Runs a session until it rests."""

    store: Store
    histories: Histories
    lease_keeper: LeaseKeeper
    prepare: Preparation
    open_turns: OpenTurns
    compaction: Compaction
    fitter: ContextFitter
    releases: Releases
    reverts: Reverts
    children: Children
    taking_over: TakeOver
    is_cut_off: Callable[[str, BaseException], bool]
    """Whether a run of a session that ends with this error was stopped by the store."""
    is_attended: bool = True

    async def run(self, session_id: str, resume: bool = False) -> str:
        """Run until there is nothing to do; the reason. Raises Busy while another process runs the session."""
        await self.releases.flush(session_id)
        view = await self.store.journal.view(session_id)
        is_left = self._is_left(view)
        if view.owner not in (None, self.lease_keeper.owner):
            self.releases.forget(session_id)  # What was owed here is the other owner's now.
        first = await self._first(view, resume)
        match first:
            case Rest(reason=reason):
                self.releases.forget(session_id)
                return reason
            case Promote() if not is_pending(view):
                # In one append with the change of owner: what is done first after most wakes.
                writer = await self.lease_keeper.take(session_id, partial(promotion, first), at="promote")
            case _:
                writer = await self.lease_keeper.take(session_id)
        self.releases.forget(session_id)
        try:
            resume = (is_left and await self._recover(writer)) or resume
            return await self._loop(writer, resume)
        except BaseException as error:
            await self._release(writer, error)
            raise

    async def alone(
        self, session_id: str, work: Callable[[FencedWriter], Awaitable[None]], *, commits: bool = True
    ) -> bool:
        """Do other work as the owner of a session that rests; whether prompts came meanwhile. Raises Busy as well.

        Prompts that waited before go on waiting. A session whose calls wait for the user is busy with them. With
        ``commits`` a pending revert is committed first.
        """
        await self.releases.flush(session_id)
        if waiting_calls(await self.store.journal.view(session_id)):
            raise Busy(
                f"a call of session {session_id!r} waits for an answer of the user or for a Child Session; "
                "let it go on, or abort the turn"
            )
        writer = await self.lease_keeper.take(session_id)
        self.releases.forget(session_id)
        try:
            before = await self.store.journal.view(session_id)
            await writer.close_lost_turn(before)
            if commits:
                await self.reverts.commit(writer)
            await work(writer)
            while True:
                after = await self.store.journal.view(session_id)
                if await writer.release(after.seq):
                    return any(prompt.seq > before.seq for prompt in after.inbox)
        except BaseException as error:
            await self._release(writer, error)
            raise

    async def _release(self, writer: FencedWriter, error: BaseException) -> None:
        await self.releases.release(writer, goes_on=self.is_cut_off(writer.session_id, error))

    def _is_left(self, view: SessionView) -> bool:
        """Whether a session was left in the middle: by another process, or by a run of this one that the store stopped.

        One that this process has taken over, and now runs, was looked after when it was taken.
        """
        is_own = view.owner == self.lease_keeper.owner
        return view.owner is not None and (not is_own or self.releases.is_left(view.session.id))

    async def _recover(self, writer: FencedWriter) -> bool:
        """Close an open turn of a session by the rules of recovery; returns whether its cut-off turn is continued."""
        goes_on = await self.taking_over.goes_on(writer.session_id)
        await writer.leave_turn(await writer.view())
        self.histories.forget(writer.session_id)  # As after Abandon, below.
        # A call that waits for the user is left to the user.
        goes_on = goes_on and (await writer.view()).turn is None
        await self.children.recover(writer.session_id, resumes=goes_on)
        return goes_on

    async def _first(self, view: SessionView, resume: bool) -> Action | None:
        """The first action in a session without an owner. A wake without work leaves no trace in the log."""
        if view.owner is not None or not isinstance(view.status, Idle):
            return None
        return await self._next(view, await self.histories.get(view.session.id), resume)

    async def _next(self, view: SessionView, history: History, resume: bool) -> Action:
        held = await self.children.held(view)
        return next_action(view, history, resume=resume, is_attended=self.is_attended, held=held)

    async def _loop(self, writer: FencedWriter, resume: bool) -> str:
        while True:
            # The view first: the history read after it can only be newer, and resting checks that nothing came since.
            view = await writer.view()
            if is_open(view):
                await self.reverts.finish(writer)
                continue
            history = await self.histories.follow(writer)
            match await self._next(view, history, resume):
                case Promote() | Compact() | RunTurn() | RunSubtask() if is_pending(view):
                    await self.reverts.commit(writer)
                case Abandon():
                    await writer.leave_turn(view)
                    # A view has marks in the place of long texts, and so has what was just written of it.
                    self.histories.forget(writer.session_id)
                case ResumeTurn():
                    if resume:
                        await self.children.resume_open(view)
                    is_cut_off = await self.open_turns.resume(writer, view, history)
                    resume = resume and is_cut_off
                case Promote() as action:
                    await writer.append(*promotion(action, view), at="promote")
                case Compact(marker=marker):
                    resume = False
                    await writer.flush()
                    await self.compaction.run(writer, view, history, marker)
                case RunTurn() as action:
                    resume = False
                    await self.prepare.run(writer, view, history, action)
                case RunSubtask() as action:
                    resume = False
                    await self.open_turns.run_subtask(writer, view, history, action)
                case Rest(reason=reason):
                    if view.turn is None:
                        await self.fitter.tidy(writer, view, history)
                    if await writer.release(view.seq):
                        return reason
                case action:
                    assert_never(action)

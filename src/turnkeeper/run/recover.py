"""Recovery: turns that dead processes left open are closed at once; those that may continue are run later."""

import logging
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Literal, NamedTuple, TypeAlias, get_args

import anyio
import msgspec

from turnkeeper.core.asks import turn_state
from turnkeeper.core.child_tasks import background_tasks
from turnkeeper.core.next_action import Rest, next_action
from turnkeeper.core.restores import is_open
from turnkeeper.core.view import SessionView
from turnkeeper.model.config import Config
from turnkeeper.model.refusal import Busy, Invalid, NotFound, Refusal
from turnkeeper.model.session import Session
from turnkeeper.outside_code import contained
from turnkeeper.run.children import Children
from turnkeeper.run.histories import Histories
from turnkeeper.run.lease_keeper import LeaseKeeper
from turnkeeper.run.reverts import Reverts
from turnkeeper.store.engine import EngineError, LogConflict, StaleFence
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, stored_place

log = logging.getLogger(__name__)

Recovery: TypeAlias = Literal["rest", "continue", "ask"]
"""The policy for turns whose output was cut off by the death of their process."""

RECOVERIES: tuple[Recovery, ...] = get_args(Recovery)

AskToContinue: TypeAlias = Callable[[str], Awaitable[bool]]
"""Asks the user whether a session is continued."""

Failed: TypeAlias = MutableMapping[str, str]
"""The sessions that could not be recovered, with the reasons."""


class Left(NamedTuple):
    """A session of a dead process that was taken over. Its turn is closed, and if it ``rests`` it is idle.

    Otherwise this process owns it: it is busy until it is run, and can be taken over again if this process dies first.
    Or it is idle, and waits for Child Sessions in the background.
    """

    session_id: str
    resumes: bool
    rests: bool


class TakeOver(msgspec.Struct, frozen=True):
    """Takes over sessions whose process has ended, or whose lease has; others are never touched."""

    store: Store
    histories: Histories
    lease_keeper: LeaseKeeper
    config: Callable[[ProjectPlace], Config]
    """The configuration that holds in a place. May raise a Refusal."""
    reverts: Reverts
    children: Children
    is_attended: bool = True

    async def all(
        self,
        active: frozenset[str],
        policy: Recovery | None,
        ask: AskToContinue | None,
        failed: Failed | None = None,
        *,
        only_owned: bool = False,
    ) -> list[Left]:
        """Close every open turn that was left. ``active`` are the sessions that this process runs already.

        Those that stay open, or whose revert does, are added to ``failed``. With ``only_owned``, sessions without an
        owner are left alone: the runtime looks at them when it begins, and not again and again.
        """
        failed = {} if failed is None else failed
        if policy is not None and policy not in RECOVERIES:
            raise Invalid(f"there is no recovery {policy!r:.80}; choose one of {', '.join(RECOVERIES)}")
        left: dict[str, Left] = {}

        async def take(session_id: str) -> None:
            try:
                if await self._only_has_children(session_id):
                    left[session_id] = Left(session_id, resumes=False, rests=False)
                elif await self._is_orphan(session_id):
                    goes_on = await self.goes_on(session_id, policy, ask)
                    left[session_id] = await self._take(session_id, goes_on, failed)
            except Exception as error:
                # One that cannot be closed, or that another process took first, must not keep the others open.
                is_bug = not isinstance(error, Refusal | EngineError)
                log.warning("session %s was left open and stays so: %s", session_id, error, exc_info=is_bug)
                if not isinstance(error, Busy):
                    failed[session_id] = str(error) or type(error).__name__

        busy = [key[-1] for key, _ in await self.store.engine.scan(("busy",)) if key[-1] not in active]
        self.lease_keeper.leases.forget_all_but(busy)
        free = await self.lease_keeper.leases.listen(busy)
        busy = [session_id for session_id in busy if session_id in free] if only_owned else busy
        busy = [session_id for session_id in busy if await self.lease_keeper.host.admits(session_id)]
        async with anyio.create_task_group() as group:
            for session_id in busy:
                group.start_soon(take, session_id)
        return [left[session_id] for session_id in busy if session_id in left]

    async def _take(self, session_id: str, resumes: bool, failed: Failed) -> Left:
        # Shielded: one whose turn is still open must not become idle, or it would never be found again.
        with anyio.CancelScope(shield=True):
            # Noted first: as soon as the session is taken a wake may run it, or the store may fail before this is done.
            if resumes:
                self.children.resuming.add(session_id)
            try:
                writer = await self.lease_keeper.take(session_id, self._still_left)
            except (Refusal, LogConflict, StaleFence):  # It was not taken here.
                self.children.resuming.discard(session_id)
                raise
            view = await self.store.journal.view(session_id)
            await writer.leave_turn(view)
            try:
                await self.reverts.finish(writer)
            except Refusal as error:  # It stays open, and the next prompt is refused with the same words.
                log.warning("session %s: %s", session_id, error)
                failed[session_id] = str(error)
            view = await self.store.journal.view(session_id)
            # A call that waits for the user is left to the user under every policy.
            resumes = resumes and view.turn is None
            history = await self.histories.get(session_id)
            held = await self.children.held(view)
            action = next_action(view, history, resume=resumes, is_attended=self.is_attended, held=held)
            rests = isinstance(action, Rest) and await writer.release(view.seq)
            if rests or not resumes:
                self.children.resuming.discard(session_id)
        return Left(session_id, resumes, rests)

    def _still_left(self, view: SessionView) -> tuple[()]:
        """Raise Busy for a session that this runtime has begun to run meanwhile: its run would lose its fence."""
        if view.owner == self.lease_keeper.owner:
            raise Busy(f"session {view.session.id!r} is being run here by now")
        return ()

    async def _only_has_children(self, session_id: str) -> bool:
        """Whether nothing of a session is open but the tasks of Child Sessions in the background."""
        view = await self.store.journal.view(session_id)
        is_idle = view.owner is None and view.turn is None and not is_open(view)
        return is_idle and bool(background_tasks(view))

    async def _is_orphan(self, session_id: str) -> bool:
        view = await self.store.journal.view(session_id)
        if view.owner is not None:
            return view.owner != self.lease_keeper.owner and self.lease_keeper.leases.may_take(session_id, view)
        return view.turn is None or turn_state(view) != "waits"

    async def goes_on(self, session_id: str, policy: Recovery | None = None, ask: AskToContinue | None = None) -> bool:
        """Whether a session whose turn was cut off is continued automatically; see ``Failover.take_over``."""
        policy = policy or await self._policy(await self.store.queries.session(session_id))
        if policy == "ask":
            with contained():
                return ask is not None and await ask(session_id) is True
        return policy == "continue"

    async def _policy(self, session: Session) -> Recovery:
        """The policy of the session, or of its nearest ancestor that has one; else that of the configuration."""
        ancestor, seen = session, {session.id}
        while True:
            own = (ancestor.metadata or {}).get("recovery")
            for known in RECOVERIES:
                if own == known:
                    return known
            if ancestor.parent_id is None or ancestor.parent_id in seen:  # An imported one may be its own ancestor.
                break
            seen.add(ancestor.parent_id)
            try:
                ancestor = await self.store.queries.session(ancestor.parent_id)
            except NotFound:
                break
        try:
            config = self.config(await stored_place(ancestor.directory))
        except Refusal:
            return "rest"  # What it says cannot be read; the session is closed all the same.
        return config.recovery or "rest"

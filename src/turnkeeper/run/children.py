"""Child Sessions of calls: begun durably, run until they rest, and reported to the session that wants their results.

| A Child Session rests | Its parent |
|---|---|
| and a call of this process waits for it | the call takes the result |
| and a call waits that no process runs | is woken; the call is run again and takes the result |
| in the background | is given the result as a steering prompt, in one append with the end of the task |
| in the background, stopped with its parent | is told nothing |
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import aclosing, suppress
from functools import partial
from typing import Protocol

import msgspec

from turnkeeper.core.asks import is_held
from turnkeeper.core.child_results import ChildResult, child_result, delivery_events, prompt_of, report_of
from turnkeeper.core.child_tasks import background_tasks, is_at_rest
from turnkeeper.core.view import SessionView
from turnkeeper.model.child import ChildTask
from turnkeeper.model.event import ChildEnded, Event, StatusChanged, TurnEnded
from turnkeeper.model.message import AssistantMessage, ModelChoice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.outages import once_stored
from turnkeeper.store.crash import crash_point
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.store.store import Store


class NewChild(Value):
    """A Child Session that is to be made."""

    id: str
    parent: Session
    title: str
    agent: str
    permission: Ruleset


class ChildPrompt(Value):
    """The prompt of a task. It is admitted once, by its id."""

    id: str
    text: str
    agent: str
    model: ModelChoice


class ChildSessions(Protocol):
    """Makes Child Sessions and gives them prompts: use cases, which the loop is lent."""

    async def create(self, new: NewChild) -> None:
        """Create the session, unless it exists. Its rules are those of its caller, or narrower."""
        ...

    async def admit(self, session_id: str, prompt: ChildPrompt) -> None:
        """Admit the prompt, unless it was. Raises a Refusal if it cannot be answered."""
        ...


class Children(msgspec.Struct, frozen=True):
    """Runs Child Sessions for calls, and reports what came of them."""

    store: Store
    sessions: ChildSessions
    run: Callable[[str], Awaitable[Outcome]]
    wake: Callable[[str], None]
    stop: Callable[[str], object]
    """Interrupts a session without waiting for it."""
    is_active: Callable[[str], bool]
    """Whether this process runs a session."""
    sleep: Callable[[float], Awaitable[None]]
    is_attended: bool = True
    resuming: set[str] = msgspec.field(default_factory=set)
    """Sessions whose cut-off turn is continued at their next run."""

    async def settled(self, session_id: str, prompt_id: str) -> ChildResult:
        """Run a Child Session until it rests; returns the result of a prompt. Another process may be running it.

        Its run is retried after an outage of the store, so its caller waits for that as well.
        """
        run = partial(self._run_once, session_id, prompt_id)
        while (result := await once_stored(run, self.sleep)) is None:
            pass
        return result

    async def _run_once(self, session_id: str, prompt_id: str) -> ChildResult | None:
        """Run a Child Session; None if it does not rest after that. Raises StoreUnavailable if its run is retried."""
        outcome = await self.run(session_id)
        if outcome.store in ("full", "unavailable"):
            raise StoreUnavailable(outcome.reason)
        view = await self.store.journal.view(session_id)
        if outcome.kind in ("refused", "crashed") and not outcome.is_busy:
            return ChildResult(state="failed", text=outcome.reason)
        if is_at_rest(view):
            return await self.result(session_id, prompt_id)
        await self._news(session_id, view.seq)
        return None

    async def result(self, session_id: str, prompt_id: str | None = None) -> ChildResult:
        """The answer of a Child Session that rests; since a prompt, if one is named."""
        found: MessageWithParts | None = None
        async for message in self.store.queries.stream(session_id):
            if isinstance(message.info, AssistantMessage) and not message.info.summary and found is None:
                found = message
            if message.info.id == prompt_id or (found is not None and prompt_id is None):
                return child_result(found)
        return child_result(found if prompt_id is None else None)

    async def held(self, view: SessionView) -> frozenset[str]:
        """The Child Sessions of an open turn that wait for the user and that no process runs."""
        if view.turn is None:
            return frozenset()
        return frozenset([one.session_id for one in view.children if await self._is_held(one.session_id)])

    async def resume_open(self, view: SessionView) -> None:
        """See to it that the Child Sessions that the calls of an open turn wait for go on with turns that were cut off.

        Those that wait for the user go on waiting.
        """
        held = await self.held(view)
        for task in view.children:
            if task.background or task.session_id in held:
                continue
            with suppress(NotFound):  # The call that makes it runs again.
                if (await self.store.journal.view(task.session_id)).turn is not None:
                    self.resuming.add(task.session_id)

    async def resumes(self, session_id: str, resume: bool) -> bool:
        """Whether a run of a session continues a turn that was cut off. If so, its background tasks go on, too."""
        resume = resume or session_id in self.resuming
        self.resuming.discard(session_id)
        if resume:
            await self.recover(session_id, resumes=True)
        return resume

    async def running_below(self, session_id: str) -> list[str]:
        """The Child Sessions that work for a session, with theirs, parents first."""
        found: list[str] = []
        waiting = [session_id]
        for one in waiting:  # The list grows during the iteration.
            try:
                view = await self.store.journal.view(one)
            except NotFound:
                continue
            below = [task.session_id for task in view.children if task.session_id not in found]
            found += below
            waiting += below
        return found

    async def unreported_below(self, session_id: str) -> list[SessionView]:
        """The Child Sessions below a session that owe it a result in the background, and do not wait for the user."""
        tasks: list[ChildTask] = []
        for one in (session_id, *await self.running_below(session_id)):
            with suppress(NotFound):
                tasks += background_tasks(await self.store.journal.view(one))
        found: list[SessionView] = []
        for task in tasks:
            with suppress(NotFound):
                if not await self._is_held(task.session_id):
                    found.append(await self.store.journal.view(task.session_id))
        return found

    async def root_of(self, session_id: str) -> str:
        """The session that a Child Session works for in the end; itself, if it works for none."""
        while (parent := await self.waiting_parent(session_id)) is not None:
            session_id = parent
        return session_id

    async def waiting_parent(self, session_id: str) -> str | None:
        """The session that waits for a Child Session: its parent, or one above that has it go on."""
        callers = await self._callers(await self.store.queries.session(session_id))
        return callers[0].session.id if callers else None

    async def callers_above(self, session_id: str) -> list[str]:
        """The sessions with a call that waits for a session, the nearest first. A background task does not wait."""
        found: list[str] = []
        waiting = [session_id]
        for one in waiting:  # The list grows during the iteration.
            for caller in await self._callers(await self.store.queries.session(one)):
                id, tasks = caller.session.id, caller.children
                if id not in found and any(task.session_id == one and not task.background for task in tasks):
                    found.append(id)
                    waiting.append(id)
        return found

    async def run_ended(self, session_id: str, interrupted: Collection[str]) -> None:
        """Report a session whose run has ended, if it is a Child Session; not to callers that are ``interrupted``."""
        journal = self.store.journal
        # A session never gets another parent, so an old view is good enough.
        parent_id = (journal.cache.view(session_id) or await journal.view(session_id)).session.parent_id
        if parent_id is not None:
            await self.rested(session_id, lambda caller_id: caller_id not in interrupted)

    async def rested(self, session_id: str, is_wanted: Callable[[str], bool] = lambda _: True) -> None:
        """Report a Child Session that rests to those who want its result.

        ``is_wanted`` says of a session that it was not stopped itself.
        """
        view = await self.store.journal.view(session_id)
        if not is_at_rest(view):
            return
        for caller in await self._callers(view.session):
            id, wanted = caller.session.id, is_wanted(caller.session.id)
            report = report_of(caller, session_id, is_active=self.is_active(id), is_wanted=wanted)
            if report.is_delivered:
                await self._deliver(id, view.session, is_wanted=wanted)
            if report.wakes:
                self.wake(id)

    async def _callers(self, session: Session) -> list[SessionView]:
        """The sessions above a Child Session that have handed it a task which is not done, the nearest first."""
        found: list[SessionView] = []
        seen, session_id = set[str](), session.id
        while (parent_id := session.parent_id) is not None and parent_id not in seen:
            seen.add(parent_id)
            try:
                parent = await self.store.journal.view(parent_id)
            except NotFound:
                break
            if any(task.session_id == session_id for task in parent.children):
                found.append(parent)
            session = parent.session
        return found

    async def recover(self, session_id: str, *, resumes: bool = False) -> None:
        """See to the background tasks of a session: report those that are done, and run those that no process runs.

        With ``resumes``, those whose turn was cut off go on.
        """
        for task in background_tasks(await self.store.journal.view(session_id)):
            try:
                child = await self.store.journal.view(task.session_id)
            except NotFound:  # The call that makes it runs again.
                continue
            is_open = child.turn is not None and not await self._is_held(task.session_id)
            if resumes and is_open and not self.is_active(task.session_id):
                self.resuming.add(task.session_id)
                self.wake(task.session_id)
            elif child.owner is None and child.turn is None and child.inbox:
                self.wake(task.session_id)
            else:
                await self.rested(task.session_id)

    async def give_up(self, session_id: str, child_ids: Collection[str]) -> None:
        """Record that a session waits no longer for the results of these Child Sessions in the background."""

        def decide(view: SessionView) -> list[Event]:
            own = {task.session_id for task in background_tasks(view)}
            return [ChildEnded(session_id=one) for one in child_ids if one in own]

        with suppress(NotFound):  # The session was to be made, and nothing works for it.
            await self.store.journal.change(session_id, decide)

    async def _deliver(self, parent_id: str, child: Session, *, is_wanted: bool) -> None:
        """Give the result of a background task to its parent, once."""
        result = await self.result(child.id)
        message_id, part_id, now = self.store.mint.message_id(), self.store.mint.part_id(), self.store.mint.now()

        def decide(view: SessionView) -> list[Event]:
            message = prompt_of(view.session, message_id, now) if is_wanted else None
            return delivery_events(view, child, result, message, part_id)

        crash_point("run.before-deliver")
        await self.store.journal.change(parent_id, decide)
        crash_point("run.after-deliver")

    async def _is_held(self, session_id: str) -> bool:
        try:
            view = await self.store.journal.view(session_id)
        except NotFound:
            return False
        return is_held(view, await self.held(view), is_attended=self.is_attended)

    async def _news(self, session_id: str, seq: int) -> None:
        """Wait until a session that another process runs, or that waits for the user, may rest."""
        async with aclosing(self.store.journal.tail(session_id, seq)) as news:
            async for recorded in news:
                if isinstance(recorded.event, StatusChanged | TurnEnded):
                    return

"""Compact a session: a Summary takes the place of its older history, and nothing of it is lost from the store.

marker ──▶ summary under way ──▶ summary, tail and what follows: one append
                  └── stopped or broken: the earlier boundary stays in force
"""

from collections.abc import Sequence

import anyio
import msgspec

from turnkeeper.context.texts import text
from turnkeeper.core.agents import COMPACTION
from turnkeeper.core.compaction import Split, split, tail_budget, without_media
from turnkeeper.core.history import Entry, History, compaction_of, visible
from turnkeeper.core.turn_ends import Ending, broken_off, close_turn, open_turn
from turnkeeper.core.window import Window, usable
from turnkeeper.mint import Mint
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import CompactingSet, Event, MessageRecorded, TurnStarted
from turnkeeper.model.message import AssistantMessage, MessageTime, ModelChoice, UserMessage
from turnkeeper.model.parts import CompactionPart, Part, TextPart
from turnkeeper.model.parts.base import Span
from turnkeeper.model.refusal import Refusal
from turnkeeper.run.hooks import Hooks
from turnkeeper.run.means import Means
from turnkeeper.run.pen import Pen
from turnkeeper.run.summarise import Summariser, Written
from turnkeeper.run.turn import Surroundings
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace


def a_marker(mint: Mint, user: UserMessage, *, auto: bool, overflow: bool = False) -> MessageRecorded:
    """The user message that asks for a compaction; it speaks for the user whose turn made it necessary."""
    message = UserMessage(
        id=mint.message_id(),
        session_id=user.session_id,
        time=MessageTime(created=mint.now()),
        agent=user.agent,
        model=user.model,
        format=user.format,
        system=None,
        tools=user.tools,
    )
    part = CompactionPart(
        id=mint.part_id(),
        session_id=user.session_id,
        message_id=message.id,
        auto=auto,
        overflow=True if overflow else None,
    )
    return MessageRecorded(message=message, parts=(part,))


class Compaction(msgspec.Struct, frozen=True):
    """Runs compactions."""

    store: Store
    world: Surroundings
    hooks: Hooks

    async def run(self, pen: Pen, history: History, marker: Entry, means: Means, place: ProjectPlace) -> None:
        """Carry out the compaction that a marker asks for."""
        user = marker.message
        assert isinstance(user, UserMessage), "a marker speaks for the user"
        mark = compaction_of(marker)
        assert mark is not None, "a marker has its part"
        agent = means.agents.get(COMPACTION) or Agent(name=COMPACTION)
        chosen = _writer(agent, user, means)
        directory, worktree, id = str(place.directory), str(place.worktree), self.store.mint.message_id()
        message = _summary_of(open_turn(user, directory, worktree, id=id, now=self._now()), chosen)
        await pen.append(CompactingSet(at=self._now()), TurnStarted(message=message), at="compact")
        try:
            cut = _cut(history, user, means, overflow=bool(mark.overflow))
            todos = await self.store.queries.todos(pen.session_id)
            model = means.find(chosen)
            summariser = Summariser(self.world, means.provider(model), model, agent, message.id, self.hooks)
            room = usable(means.find(user.model).limits, means.window)
            written = await summariser.write(pen.session_id, cut, todos, room=room, window=means.window)
            stored = await self.store.queries.message(pen.session_id, user.id)
            tail = [part.but(tail_start_id=cut.tail_start_id) for part in stored.parts if part.id == mark.id]
            await self._end(pen, message, written, tail, self._following(user, mark, cut))
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._broken(pen, message, error)
            raise

    async def _end(
        self, pen: Pen, message: AssistantMessage, written: Written, mark: Sequence[Part], following: Sequence[Event]
    ) -> None:
        """Summary, boundary and what goes on behind it: one fact."""
        now = self._now()
        part = TextPart(
            id=self.store.mint.part_id(),
            session_id=message.session_id,
            message_id=message.id,
            text=written.text,
            time=Span(start=message.time.created, end=now),
            metadata={"digest": True, "problem": written.problem} if written.problem is not None else None,
        )
        ending = Ending(finish="stop", parts=(part, *mark), after=(CompactingSet(at=None), *following))
        await pen.append(*close_turn(message, ending, now, bills=written.bills), at="compacted")

    async def _broken(self, pen: Pen, message: AssistantMessage, error: BaseException) -> None:
        view = await self.store.journal.view(pen.session_id)
        if view.turn is not None:  # It may be done already: then only what came after it was stopped.
            ending = broken_off(error, "compaction").but(after=(CompactingSet(at=None),))
            await pen.append(*close_turn(message, ending, self._now()))

    def _following(self, user: UserMessage, mark: CompactionPart, cut: Split) -> list[Event]:
        """What goes on behind the Summary: prompts that still wait for an answer, or a word to go on."""
        if cut.pending:
            return [self._again(entry, strip=bool(mark.overflow)) for entry in cut.pending]
        if not mark.auto or not self.hooks.autocontinue(user.session_id, bool(mark.overflow)):
            return []
        message = self._from(user)
        part = TextPart(
            id=self.store.mint.part_id(),
            session_id=user.session_id,
            message_id=message.id,
            text=text("continue_overflow" if mark.overflow else "continue"),
            synthetic=True,
            metadata={"compaction_continue": True},
        )
        return [MessageRecorded(message=message, parts=(part,))]

    def _again(self, entry: Entry, *, strip: bool) -> Event:
        """A prompt asked again behind the Summary: the same words under new ids."""
        assert isinstance(entry.message, UserMessage), "prompts are the user's"
        message = self._from(entry.message).but(system=entry.message.system)
        parts = [without_media(part) if strip else part for part in entry.parts]
        mint = self.store.mint
        copies = [part.but(id=mint.part_id(), message_id=message.id, seq=0, nth=0) for part in parts]
        return MessageRecorded(message=message, parts=tuple(copies))

    def _from(self, user: UserMessage) -> UserMessage:
        mint = self.store.mint
        return user.but(id=mint.message_id(), time=MessageTime(created=mint.now()), seq=0, summary=None, extra=None)

    def _now(self) -> int:
        return self.store.mint.now()


def _writer(agent: Agent, user: UserMessage, means: Means) -> ModelChoice:
    """Who writes the Summary. A model that is not there must not keep a full session from going on."""
    if agent.model is None:
        return user.model
    try:
        means.find(agent.model)
    except Refusal:
        return user.model
    return agent.model


def _cut(history: History, user: UserMessage, means: Means, *, overflow: bool) -> Split:
    shown = visible(entry for entry in history.entries if entry.message.seq < user.seq)
    settings: Window = means.window
    model = means.find(user.model)
    budget = tail_budget(usable(model.limits, settings), settings.preserve_recent_tokens)
    return split(shown, model, budget, turns_max=settings.tail_turns, overflowed=overflow)


def _summary_of(message: AssistantMessage, chosen: ModelChoice) -> AssistantMessage:
    return message.but(
        agent=COMPACTION,
        mode=COMPACTION,
        summary=True,
        provider_id=chosen.provider_id,
        model_id=chosen.model_id,
        variant=chosen.variant,
    )

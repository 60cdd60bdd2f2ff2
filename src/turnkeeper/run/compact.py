"""Compact a session: a Summary takes the place of its older history, and nothing of it is lost from the store.

marker ──▶ summary under way ──▶ summary, tail and what follows: one append
                  └── stopped or broken: the earlier boundary stays in force
"""

from collections.abc import Awaitable, Callable, Collection

import anyio
import msgspec

from turnkeeper.context.texts import text
from turnkeeper.core.agents import COMPACTION
from turnkeeper.core.compaction import Split, split, tail_budget
from turnkeeper.core.compaction_events import compacted, following, summary_by
from turnkeeper.core.history import History, HistoryItem, compaction_of, visible
from turnkeeper.core.oversized import all_oversized, has_overflowed
from turnkeeper.core.quarantine import without
from turnkeeper.core.turn_ends import broken_off, close_turn, open_turn, refused
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import usable
from turnkeeper.model.agent import Agent
from turnkeeper.model.event import CompactingSet, TurnStarted
from turnkeeper.model.message import AssistantMessage, ModelChoice, TurnPath, UserMessage
from turnkeeper.model.parts import CompactionPart
from turnkeeper.model.refusal import Refusal
from turnkeeper.plugins.hooks import AUTOCONTINUE
from turnkeeper.plugins.payloads import AutocontinueInput, AutocontinueOutput
from turnkeeper.plugins.requests import AroundProvider
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.summarise import Hooks, Summariser
from turnkeeper.run.turn import Surroundings
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, stored_place


class Compaction(msgspec.Struct, frozen=True):
    """Runs compactions."""

    store: Store
    world: Surroundings
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    hooks: Hooks

    async def run(self, writer: FencedWriter, view: SessionView, history: History, marker: HistoryItem) -> None:
        """Carry out the compaction that a marker asks for."""
        user, mint = marker.message, self.store.mint
        assert isinstance(user, UserMessage), "a marker speaks for the user"
        directory = view.session.directory
        message = open_turn(user, directory, directory, id=mint.message_id(), now=mint.now())
        try:
            place = await stored_place(directory)
            message = message.but(path=TurnPath(cwd=directory, root=str(place.worktree)))
            setup = await self.setup(place)
            setup.find(user.model)
        except Refusal as refusal:
            message = message.but(summary=True)
            await writer.append(TurnStarted(message=message), *close_turn(message, refused(str(refusal)), mint.now()))
            return
        await self._run(writer, history, marker, user, message, setup)

    async def _run(
        self,
        writer: FencedWriter,
        history: History,
        marker: HistoryItem,
        user: UserMessage,
        message: AssistantMessage,
        setup: DirectorySetup,
    ) -> None:
        mark, mint = compaction_of(marker), self.store.mint
        assert mark is not None, "a marker has its part"
        agent = setup.agents.get(COMPACTION) or Agent(name=COMPACTION)
        chosen = _writer(agent, user, setup)
        message = summary_by(message, chosen)
        await writer.append(CompactingSet(at=mint.now()), TurnStarted(message=message), at="compact")
        try:
            cut = _cut(history, user, setup, overflow=bool(mark.overflow))
            todos = await self.store.queries.todos(writer.session_id)
            model = setup.find(chosen)
            provider = AroundProvider(setup.provider(model), setup.plugins, "compaction", writer.session_id, user)
            world, hooks, window = self.world, self.hooks, setup.window
            summariser = Summariser(world, provider, model, agent, message.id, window, hooks, setup.plugins)
            room = usable(setup.find(user.model).limits, window)
            written = await summariser.write(writer.session_id, cut, todos, room=room)
            stored = await self.store.queries.message(writer.session_id, user.id)
            tail = [part.but(tail_start_id=cut.tail_start_id) for part in stored.parts if part.id == mark.id]
            after = following(user, mark, cut, await self._words(user, mark, cut, setup), mint, mint.now())
            now = mint.now()
            ending = compacted(message, written.text, written.problem, tail, after, part_id=mint.part_id(), now=now)
            await writer.append(*close_turn(message, ending, now, bills=written.bills), at="compacted")
        except BaseException as error:
            with anyio.CancelScope(shield=True):
                await self._broken(writer, message, error)
            raise

    async def _broken(self, writer: FencedWriter, message: AssistantMessage, error: BaseException) -> None:
        view = await self.store.journal.view(writer.session_id)
        if view.turn is not None:  # It may be done already: then only what came after it was stopped.
            is_cut_off = self.world.is_cut_off(writer.session_id, error)
            ending = broken_off(error, "compaction", is_cut_off=is_cut_off).but(after=(CompactingSet(at=None),))
            writer.hold(*close_turn(message, ending, self.store.mint.now()))
            await writer.flush()

    async def _words(self, user: UserMessage, mark: CompactionPart, cut: Split, setup: DirectorySetup) -> str | None:
        """The words that let the model go on by itself; None if it is not to, or has prompts to answer."""
        if cut.pending or not mark.auto or not self.hooks.autocontinue(user.session_id, bool(mark.overflow)):
            return None
        asked = AutocontinueInput(
            session_id=user.session_id, agent=user.agent, model=user.model, overflow=bool(mark.overflow)
        )
        given = AutocontinueOutput()
        going_on, _ = await setup.plugins.trigger(AUTOCONTINUE, asked, given, session_id=user.session_id)
        return text("continue_overflow" if mark.overflow else "continue") if going_on.enabled else None


def _writer(agent: Agent, user: UserMessage, setup: DirectorySetup) -> ModelChoice:
    """The model that writes the Summary. If the configured model is missing, the session's own model is used."""
    if agent.choice is None:
        return user.model
    try:
        setup.find(agent.choice)
    except Refusal:
        return user.model
    return agent.choice


def _cut(history: History, user: UserMessage, setup: DirectorySetup, *, overflow: bool) -> Split:
    shown = visible(entry for entry in history.entries if entry.message.seq < user.seq)
    model, settings = setup.find(user.model), setup.window
    room = usable(model.limits, settings)
    left_out: Collection[str] = history.view.quarantined
    if not overflow and has_overflowed(shown, model):
        left_out = all_oversized(shown, model, left_out, room)
    shown = tuple(without(entry, left_out) for entry in shown)
    budget = tail_budget(room, settings.preserve_recent_tokens)
    return split(shown, model, budget, turns_max=settings.tail_turns, overflowed=overflow)

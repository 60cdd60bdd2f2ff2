"""Fit a request into its context window, as ``core/fitting`` decides: prune old outputs, or ask for a compaction."""

from collections.abc import Sequence

import msgspec
from msgspec.structs import replace

from turnkeeper.context.texts import text
from turnkeeper.core.compaction_events import a_marker
from turnkeeper.core.entry import Recorded
from turnkeeper.core.fitting import PRUNABLE_CHARS_MIN, CompactFirst, Send, fit, prune_after_run, remedy
from turnkeeper.core.history import History, extend
from turnkeeper.core.pruning import Pruning
from turnkeeper.core.turn_request import PreparedRequest, TurnInputs, build_request
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import Window
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, OutputsPruned, PartRecorded, PartsQuarantined
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import UserMessage
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.providers.provider import Measuring, Provider
from turnkeeper.run.conversations import Conversations
from turnkeeper.run.pen import Pen
from turnkeeper.store.store import Store


class ContextFitter(msgspec.Struct, frozen=True):
    """Makes requests fit."""

    store: Store
    conversations: Conversations = msgspec.field(default_factory=Conversations)

    async def fit(self, pen: Pen, inputs: TurnInputs, settings: Window, now: int) -> PreparedRequest | None:
        """The request, made to fit; None if a compaction has to come first, which is then on record."""
        ready = self._built(inputs, now)
        pruned: Pruning | None = None
        while True:
            match fit(ready, settings, pruned, now):
                case Send():
                    return ready
                case Pruning() as pruned:
                    view, history = await self._prune(pen, ready.inputs.history, pruned)
                    ready = self._built(replace(ready.inputs, view=view, history=history), now)
                case PartsQuarantined() as left_out:
                    view = await pen.append(left_out)
                    history = extend(ready.inputs.history, Recorded(view.seq, now, left_out))
                    ready = self._built(replace(ready.inputs, view=view, history=history), now)
                case CompactFirst():
                    await pen.append(self._marker(inputs.user, overflow=False), at="marker")
                    return None

    async def tidy(self, pen: Pen, view: SessionView, history: History, model: ModelInfo, settings: Window) -> None:
        """Prune after a run."""
        pruning = prune_after_run(view, history, model.price, settings)
        if pruning is not None:
            await self._prune(pen, history, pruning)

    def may_prune(self, session_id: str) -> bool:
        """Whether there can be anything to prune; known without looking."""
        return self.conversations.outputs(session_id) >= PRUNABLE_CHARS_MIN

    def remedy(self, failure: Failure, sent: PreparedRequest, provider: Provider, settings: Window) -> Sequence[Event]:
        """The events that are recorded with a failure so that the next try does better."""
        wire_length = provider.wire_length if isinstance(provider, Measuring) else None
        found = remedy(failure, sent, settings, wire_length)
        if isinstance(found, CompactFirst):
            return (self._marker(sent.inputs.user, overflow=found.overflow),)
        return (found,) if found is not None else ()

    def _built(self, inputs: TurnInputs, now: int) -> PreparedRequest:
        session_id, left_out = inputs.view.session.id, inputs.view.quarantined
        lowered = self.conversations.of(session_id, inputs.history, inputs.model, inputs.epoch.seq, left_out)
        return build_request(inputs, lowered, text, now=now)

    def _marker(self, user: UserMessage, *, overflow: bool) -> Event:
        return a_marker(user, self.store.mint, self.store.mint.now(), auto=True, overflow=overflow)

    async def _prune(self, pen: Pen, history: History, pruning: Pruning) -> tuple[SessionView, History]:
        """Record a pruning; the session after it."""
        await pen.flush()  # What is stored is read.
        now = self.store.mint.now()
        events: list[Event] = [PartRecorded(part=part) for part in await self._marked(pen.session_id, pruning, now)]
        ids = tuple(part.id for part in pruning.parts)
        events.append(OutputsPruned(part_ids=ids, tokens=pruning.tokens, reason=pruning.reason))
        view = await pen.append(*events, at="prune")
        news = [Recorded(seq, now, event) for seq, event in enumerate(events, view.seq - len(events) + 1)]
        return view, extend(history, *news)

    async def _marked(self, session_id: str, pruning: Pruning, now: int) -> list[ToolPart]:
        """The parts as they are stored, with their place, and now marked."""
        marked: list[ToolPart] = []
        ids = {part.id for part in pruning.parts}
        for message_id in dict.fromkeys(part.message_id for part in pruning.parts):
            stored = await self.store.queries.message(session_id, message_id)
            for part in stored.parts:
                if part.id in ids and isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
                    time = part.state.time.but(compacted=now)
                    marked.append(part.but(state=part.state.but(time=time)))
        return marked

"""Fit a request into its context window, as ``core/fitting`` decides: prune old outputs, or ask for a compaction."""

from collections.abc import Awaitable, Callable, Sequence

import msgspec
from msgspec.structs import replace

from turnkeeper.context.texts import text
from turnkeeper.core.compaction_events import a_marker
from turnkeeper.core.entry import Recorded
from turnkeeper.core.fitting import PRUNABLE_CHARS_MIN, CompactFirst, SendRequest, fit, prune_after_run, remedy
from turnkeeper.core.history import History, extend
from turnkeeper.core.next_action import last_user
from turnkeeper.core.pruning import Pruning, pruning_events
from turnkeeper.core.turn_request import PreparedRequest, TurnInputs, build_request
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import Window
from turnkeeper.model.event import Event, PartsQuarantined
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import UserMessage
from turnkeeper.model.refusal import Refusal
from turnkeeper.providers.provider import Measuring, Provider
from turnkeeper.run.conversations import Conversations
from turnkeeper.run.directories import DirectorySetup
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace, stored_place


class ContextFitter(msgspec.Struct, frozen=True):
    """Makes requests fit."""

    store: Store
    setup: Callable[[ProjectPlace], Awaitable[DirectorySetup]]
    conversations: Conversations = msgspec.field(default_factory=Conversations)

    async def fit(self, writer: FencedWriter, inputs: TurnInputs, settings: Window, now: int) -> PreparedRequest | None:
        """The request, made to fit; None if a compaction has to come first, which is then on record."""
        ready = self._built(inputs, now)
        pruned: Pruning | None = None
        while True:
            match fit(ready, settings, pruned, now):
                case SendRequest():
                    return ready
                case Pruning() as pruned:
                    view, history = await self._prune(writer, ready.inputs.history, pruned)
                    ready = self._built(replace(ready.inputs, view=view, history=history), now)
                case PartsQuarantined() as left_out:
                    view = await writer.append(left_out)
                    history = extend(ready.inputs.history, Recorded(view.seq, now, left_out))
                    ready = self._built(replace(ready.inputs, view=view, history=history), now)
                case CompactFirst():
                    await writer.append(self._marker(inputs.user, overflow=False), at="marker")
                    return None

    async def tidy(self, writer: FencedWriter, view: SessionView, history: History) -> None:
        """Prune old outputs of a session that comes to rest, where that is wanted or pays."""
        user = last_user(history)
        outputs = self.conversations.outputs(writer.session_id)
        if user is None or not isinstance(user.message, UserMessage) or outputs < PRUNABLE_CHARS_MIN:
            return
        try:
            setup = await self.setup(await stored_place(view.session.directory))
            model = setup.find(user.message.model)
        except Refusal:
            return  # The next turn will say what is wrong.
        pruning = prune_after_run(view, history, model.price, setup.window)
        if pruning is not None:
            await self._prune(writer, history, pruning)

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

    async def _prune(self, writer: FencedWriter, history: History, pruning: Pruning) -> tuple[SessionView, History]:
        """Record a pruning; the session after it."""
        await writer.flush()  # What is stored is read.
        message_ids = dict.fromkeys(part.message_id for part in pruning.parts)
        messages = [await self.store.queries.message(writer.session_id, message_id) for message_id in message_ids]
        now = self.store.mint.now()
        events = pruning_events(pruning, [part for message in messages for part in message.parts], now)
        view = await writer.append(*events, at="prune")
        news = [Recorded(seq, now, event) for seq, event in enumerate(events, view.seq - len(events) + 1)]
        return view, extend(history, *news)

"""Fit a request into its window: prune where it pays, ask for a compaction where it must, quarantine what is rejected.

What to do is decided in ``core``; here it is looked up, recorded, and nothing more.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from turnkeeper.core.compaction import has_media, may_recover, progressed
from turnkeeper.core.conversations import Conversations
from turnkeeper.core.entry import Recorded
from turnkeeper.core.history import Entry, History, extend, visible
from turnkeeper.core.prefix import is_cold
from turnkeeper.core.pruning import MINIMUM, PROTECT, Occasion, Pruning, choose
from turnkeeper.core.quarantine import Pointer, pointer, sources, suspects, telling
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import CHARS_PER_TOKEN, Window, overflows, usable
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.event import Event, OutputsPruned, PartRecorded, PartsQuarantined
from turnkeeper.model.failure import Failure, OverflowFailure
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.providers.provider import Measuring, Provider
from turnkeeper.run.asking import Asking, Sending, sending
from turnkeeper.run.compact import a_marker
from turnkeeper.run.pen import Pen
from turnkeeper.store.store import Store

PRUNABLE_CHARS_MIN: Final = (PROTECT + MINIMUM) * CHARS_PER_TOKEN
"""Below so much tool output nothing can be pruned: most sessions never pay for a look."""


class Fitting(msgspec.Struct, frozen=True):
    """Makes requests fit."""

    store: Store
    conversations: Conversations = msgspec.field(default_factory=Conversations)

    async def fit(self, pen: Pen, asking: Asking, settings: Window, now: int) -> Sending | None:
        """The request, made to fit; None if a compaction has to come first, which is then on record."""
        ready = sending(asking, self.conversations, now=now)
        occasion = _occasion(ready, now)
        if ready.lowered.outputs >= PRUNABLE_CHARS_MIN and (occasion.begins or occasion.is_cold):
            ready = await self._pruned(pen, ready, settings, occasion, now) or ready
        count = size(ready)
        limits = asking.model.limits
        if not overflows(count, len(ready.lowered.sources), limits, settings) or not progressed(asking.history.entries):
            return ready
        known = [one for one in (usable(limits, settings), settings.max_tokens) if one is not None]
        if known and count >= min(known):
            full = Occasion(count=count, room=min(known))
            if (pruned := await self._pruned(pen, ready, settings, full, now)) is not None:
                return pruned
        await pen.append(a_marker(self.store.mint, asking.user, auto=True), at="marker")
        return None

    def may_prune(self, session_id: str) -> bool:
        """Whether there can be anything to prune; known without looking."""
        return self.conversations.outputs(session_id) >= PRUNABLE_CHARS_MIN

    async def tidy(self, pen: Pen, view: SessionView, history: History, model: ModelInfo, settings: Window) -> None:
        """Prune after a run."""
        count = view.prefix.bytes // CHARS_PER_TOKEN if view.prefix is not None else 0
        await self._prune(pen, history, settings, Occasion(count=count, price=model.price, is_after_run=True))

    def remedy(self, failure: Failure, sent: Sending, provider: Provider, settings: Window) -> Sequence[Event]:
        """What is recorded beside a failure so that the loop can do better: once for each prompt, then never."""
        asking = sent.asking
        if isinstance(failure, OverflowFailure):
            if not settings.auto or not may_recover(asking.history.entries):
                return ()
            return (a_marker(self.store.mint, asking.user, auto=True, overflow=True),)
        pointed, change = pointer(failure), asking.view.rewritten
        is_spent = change is not None and change.is_remedy and change.seq > asking.user.seq
        return _quarantine(pointed, sent, provider) if pointed is not None and not is_spent else ()

    async def _pruned(self, pen: Pen, ready: Sending, settings: Window, occasion: Occasion, now: int) -> Sending | None:
        after = await self._prune(pen, ready.asking.history, settings, occasion)
        if after is None:
            return None
        asking = replace(ready.asking, view=after[0], history=after[1])
        return sending(asking, self.conversations, now=now)

    async def _prune(
        self, pen: Pen, history: History, settings: Window, occasion: Occasion
    ) -> tuple[SessionView, History] | None:
        """Prune what should go now; the session after it, or None if nothing does."""
        chosen = choose(visible(history.entries), settings.prune, occasion)
        if chosen is None:
            return None
        await pen.flush()  # What is stored is read.
        now = self.store.mint.now()
        events: list[Event] = [PartRecorded(part=part) for part in await self._marked(pen.session_id, chosen, now)]
        ids = tuple(part.id for part in chosen.parts)
        events.append(OutputsPruned(part_ids=ids, tokens=chosen.tokens, reason=chosen.reason))
        view = await pen.append(*events, at="prune")
        news = [Recorded(seq, now, event) for seq, event in enumerate(events, view.seq - len(events) + 1)]
        return view, extend(history, *news)

    async def _marked(self, session_id: str, chosen: Pruning, now: int) -> list[ToolPart]:
        """The parts as they are stored, with their place, and now marked."""
        marked: list[ToolPart] = []
        ids = {part.id for part in chosen.parts}
        for message_id in dict.fromkeys(part.message_id for part in chosen.parts):
            stored = await self.store.queries.message(session_id, message_id)
            for part in stored.parts:
                if part.id in ids and isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
                    time = part.state.time.but(compacted=now)
                    marked.append(part.but(state=part.state.but(time=time)))
        return marked


def _occasion(ready: Sending, now: int) -> Occasion:
    asking, before = ready.asking, ready.asking.view.prefix
    return Occasion(
        count=size(ready),
        price=asking.model.price,
        # An epoch may begin with the very words of the one before: then the provider still has them.
        begins=before is not None and before.epoch != asking.epoch.number and ready.prefix.cause is not None,
        is_cold=is_cold(before, {**asking.model.options, **asking.agent.options}, now),
    )


def size(ready: Sending) -> int:
    """How many tokens the request has, as far as one can know."""
    change, around = ready.asking.view.rewritten, ready.prefix.system
    since = max(ready.asking.epoch.seq, change.seq if change is not None else 0)
    return ready.lowered.gauge.tokens(around.bytes if around is not None else 0, since)


def _quarantine(pointed: Pointer, sent: Sending, provider: Provider) -> Sequence[Event]:
    """Leave out what the provider points at, if that can be found."""
    if not isinstance(provider, Measuring):
        return ()
    view, history = sent.asking.view, sent.asking.history
    found = _pointed_at(provider, pointed, sent)
    for entry in sorted(found, key=lambda one: pointed.is_media and not has_media(one)):
        ids = suspects(entry, pointed, view.quarantined)
        if ids:
            reason = telling(history.entries, entry.message.id, len(ids), pointed.words)
            return (PartsQuarantined(message_id=entry.message.id, part_ids=ids, reason=reason),)
    return ()


def _pointed_at(provider: Measuring, pointed: Pointer, sent: Sending) -> list[Entry]:
    """The messages of ours that became the one the provider speaks of."""
    request, ours = sent.request, sent.lowered.sources
    opening = len(sent.lowered.messages) - len(ours)
    places = sources(
        pointed.message,
        opening + len(ours),
        lambda n: provider.wire_length(request.but(messages=request.messages[:n])),
    )
    ids = {ours[place - opening] for place in places if place >= opening}
    return [entry for entry in sent.asking.history.entries if entry.message.id in ids]

"""Fitting a request into its context window: when to prune, when to compact, and what to do after a rejection.

| The request | What to do |
|---|---|
| nothing of it is in the provider's cache, and old outputs are many | prune them |
| it fits, or no turn succeeded since the last Summary | send it |
| it is too large, and would fit without old outputs | prune them, then send it |
| it is too large otherwise | compact first |

First of all, an unanswered prompt that made the newest request too large is left out, once there is a newer prompt.
"""

from collections.abc import Callable
from typing import Final

from turnkeeper.core.compaction import has_media, may_recover, progressed
from turnkeeper.core.history import History, HistoryItem, visible
from turnkeeper.core.oversized import has_overflowed, oversized
from turnkeeper.core.prefix import is_cold
from turnkeeper.core.pruning import FULL, MINIMUM, PROTECT, Occasion, Pruning, choose
from turnkeeper.core.quarantine import Pointer, media_of, pointer, rejected_media, sources, suspects, telling
from turnkeeper.core.turn_request import PreparedRequest, TurnInputs
from turnkeeper.core.view import SessionView
from turnkeeper.core.window import CHARS_PER_TOKEN, Window, exceeds, overflows, usable
from turnkeeper.model.catalog import Price
from turnkeeper.model.event import PartsQuarantined
from turnkeeper.model.failure import Failure, OverflowData, OverflowFailure
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.value import Value

PRUNABLE_CHARS_MIN: Final = (PROTECT + MINIMUM) * CHARS_PER_TOKEN
"""With less tool output nothing can be pruned, so candidates are not computed."""


class SendRequest(Value):
    """The request may be sent."""


class CompactFirst(Value):
    """A compaction must come first. ``overflow``: the provider rejected the request as too large."""

    overflow: bool = False


def fit(
    ready: PreparedRequest, settings: Window, pruned: Pruning | None, now: int
) -> SendRequest | Pruning | CompactFirst | PartsQuarantined:
    """The decision about a request. ``pruned`` is the pruning that was made for it, if any."""
    history, limits = ready.inputs.history, ready.inputs.model.limits
    if (too_large := _leave_out(ready, settings)) is not None:
        return too_large
    if pruned is None and ready.lowered.outputs >= PRUNABLE_CHARS_MIN:
        occasion = _occasion(ready, now)
        if (occasion.begins or occasion.is_cold) and (chosen := _choose(history, settings, occasion)) is not None:
            return chosen
    if pruned is not None and pruned.reason == FULL:
        return SendRequest()
    count = ready.size
    if not overflows(count, len(ready.lowered.sources), limits, settings) or not progressed(history.entries):
        return SendRequest()
    known = [one for one in (usable(limits, settings), settings.max_tokens) if one is not None]
    if known and count >= min(known):
        chosen = _choose(history, settings, Occasion(count=count, room=min(known)))
        if chosen is not None:
            return chosen
    return CompactFirst()


def too_large(ready: PreparedRequest) -> OverflowFailure | None:
    """The failure of a request that is not sent because it is certainly too large for the model."""
    model, count = ready.inputs.model, ready.size
    if not exceeds(count, model.limits):
        return None
    most = model.limits.input or model.limits.context
    words = f"The request is about {count:,} tokens, and {model.provider_id}/{model.id} takes {most:,}"
    return OverflowFailure(data=OverflowData(message=f"{words}; shorten the prompt or choose another model"))


def _leave_out(ready: PreparedRequest, settings: Window) -> PartsQuarantined | None:
    """Leave out an oversized, unanswered prompt that a newer prompt follows; one prompt for each call.

    The size of a request is an estimate. A rejection outweighs it until a prompt is left out.
    """
    inputs, room = ready.inputs, usable(ready.inputs.model.limits, settings)
    entries, model, left_out = inputs.history.entries, inputs.model, inputs.view.quarantined
    is_open = not _is_helped(inputs) or (room is not None and ready.size >= room)
    is_rejected = is_open and has_overflowed(entries, model)
    if not is_rejected and not exceeds(ready.size, model.limits):
        return None
    found = oversized(visible(entries), model, left_out, has_newer=True)
    if found is None:
        return None
    entry, ids = found
    reason = telling(entries, entry.message.id, len(ids), f"the request is too large for {model.id}")
    return PartsQuarantined(message_id=entry.message.id, part_ids=ids, reason=reason)


def prune_after_run(view: SessionView, history: History, price: Price, settings: Window) -> Pruning | None:
    """The pruning when a session comes to rest; None if nothing is pruned."""
    count = view.prefix.bytes // CHARS_PER_TOKEN if view.prefix is not None else 0
    return _choose(history, settings, Occasion(count=count, price=price, is_after_run=True))


def remedy(
    failure: Failure, sent: PreparedRequest, settings: Window, wire_length: Callable[[ModelRequest], int] | None
) -> CompactFirst | PartsQuarantined | None:
    """The change that may let a failed request succeed, once for each prompt; None if there is none.

    ``wire_length`` gives the number of messages that a request has on the wire; None if the provider cannot tell.
    """
    inputs = sent.inputs
    if isinstance(failure, OverflowFailure):
        return CompactFirst(overflow=True) if settings.auto and may_recover(inputs.history.entries) else None
    if _is_helped(inputs):
        return None
    if (words := rejected_media(failure)) is not None:
        return _newest_media(words, sent)
    pointed = pointer(failure)
    return _quarantine(pointed, sent, wire_length) if pointed is not None and wire_length is not None else None


def _is_helped(inputs: TurnInputs) -> bool:
    """Whether parts were quarantined since the newest prompt."""
    change = inputs.view.rewritten
    return change is not None and change.is_remedy and change.seq > inputs.user.seq


def _choose(history: History, settings: Window, occasion: Occasion) -> Pruning | None:
    return choose(visible(history.entries), settings.prune, occasion)


def _occasion(ready: PreparedRequest, now: int) -> Occasion:
    inputs, before = ready.inputs, ready.inputs.view.prefix
    return Occasion(
        count=ready.size,
        price=inputs.model.price,
        # A new epoch may have the same text as the previous one: then it is still in the provider's cache.
        begins=before is not None and before.epoch != inputs.epoch.number and ready.prefix.cause is not None,
        is_cold=is_cold(before, {**inputs.model.options, **inputs.agent.options}, now),
    )


def _quarantine(
    pointed: Pointer, sent: PreparedRequest, wire_length: Callable[[ModelRequest], int]
) -> PartsQuarantined | None:
    """Quarantine the parts that the provider points at, if they are found."""
    history = sent.inputs.history
    found = _pointed_at(pointed, sent, wire_length)
    for entry in sorted(found, key=lambda one: pointed.is_media and not has_media(one)):
        if ids := suspects(entry, pointed, sent.inputs.view.quarantined):
            reason = telling(history.entries, entry.message.id, len(ids), pointed.words)
            return PartsQuarantined(message_id=entry.message.id, part_ids=ids, reason=reason)
    return None


def _newest_media(words: str, sent: PreparedRequest) -> PartsQuarantined | None:
    """Quarantine the files of the newest message that sends some."""
    history = sent.inputs.history
    for entry in reversed(visible(history.entries)):
        if ids := media_of(entry, sent.inputs.view.quarantined):
            reason = telling(history.entries, entry.message.id, len(ids), words)
            return PartsQuarantined(message_id=entry.message.id, part_ids=ids, reason=reason)
    return None


def _pointed_at(
    pointed: Pointer, sent: PreparedRequest, wire_length: Callable[[ModelRequest], int]
) -> list[HistoryItem]:
    """Our messages that became the message the provider points at."""
    request, ours = sent.request, sent.lowered.sources
    opening = len(sent.lowered.messages) - len(ours)
    places = sources(
        pointed.message, opening + len(ours), lambda n: wire_length(request.but(messages=request.messages[:n]))
    )
    ids = {ours[place - opening] for place in places if place >= opening}
    return [entry for entry in sent.inputs.history.entries if entry.message.id in ids]

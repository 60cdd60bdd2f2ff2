"""Pruning: which old tool outputs requests leave out, and whether that saves money. The store keeps the outputs."""

from collections.abc import Sequence
from typing import Final

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.window import PruneMode, estimate
from turnkeeper.model.catalog import Price
from turnkeeper.model.event import Event, OutputsPruned, PartRecorded
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import Value

PROTECT: Final = 40_000
"""The newest outputs stay, up to this many tokens."""
MINIMUM: Final = 20_000
"""Tokens that a pruning must save at least."""
STAND_IN: Final = 26
"""Tokens of the text that replaces a pruned output."""
PROTECTED_TURNS: Final = 2
PROTECTED_TOOLS: Final = frozenset({"skill", "recall"})
"""Tools whose outputs are never pruned: the model asked for them in order to see them."""

ALWAYS: Final = "old outputs are pruned after each run, as the configuration says"
BEGINS: Final = "an epoch begins, so the provider reads everything anew in any case"
COLD: Final = "the provider's cache is cold, so it reads everything anew in any case"
FULL: Final = "the request would not fit into the window otherwise"
CHEAPER: Final = "carrying the outputs along would cost more than reading the rest anew"


class Occasion(Value):
    """The circumstances of a decision to prune. ``count`` is the size of the next request in tokens."""

    count: int
    price: Price = Price()
    is_after_run: bool = False
    begins: bool = False
    """The next request is the first of an epoch."""
    is_cold: bool = False
    """The provider has dropped the last request from its cache."""
    room: int | None = None
    """The limit of the request in tokens, if the request is too large."""


class Pruning(Value):
    """Outputs that requests leave out from now on, the tokens saved, and the reason."""

    parts: tuple[ToolPart, ...]
    tokens: int
    reason: str


def choose(entries: Sequence[HistoryItem], mode: PruneMode, occasion: Occasion) -> Pruning | None:
    """The outputs to prune now, if any. Except in mode ``always``, pruning never costs more than not pruning."""
    if mode == "never":
        return None
    found = candidates(entries)
    if mode != "always" or not occasion.is_after_run:
        found = [part for part in found if _saves(part) > 0 or _has_media(part)]
    saved = sum(map(_saves, found))
    reason = _reason(mode, occasion, saved) if found else None
    return Pruning(parts=tuple(found), tokens=saved, reason=reason) if reason is not None else None


def pruning_events(pruning: Pruning, stored: Sequence[Part], now: int) -> list[Event]:
    """The events of a pruning: its parts, as they are ``stored``, marked as pruned; then the reason."""
    ids = tuple(part.id for part in pruning.parts)
    events: list[Event] = []
    for part in stored:
        if part.id in ids and isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted):
            state = part.state.but(time=part.state.time.but(compacted=now))
            events.append(PartRecorded(part=part.but(state=state)))
    return [*events, OutputsPruned(part_ids=ids, tokens=pruning.tokens, reason=pruning.reason)]


def candidates(entries: Sequence[HistoryItem]) -> list[ToolPart]:
    """Outputs that may be pruned: before the two newest user messages and beyond the newest PROTECT tokens.

    Empty if they have fewer than MINIMUM tokens. The search ends at a Summary or at a pruned output.
    """
    total, users = 0, 0
    found: list[ToolPart] = []
    for entry in reversed(entries):
        if isinstance(entry.message, UserMessage):
            users += 1
        if users < PROTECTED_TURNS:
            continue
        if isinstance(entry.message, AssistantMessage) and entry.message.summary:
            break
        for part in reversed(entry.parts):
            if not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
                continue
            if part.tool in PROTECTED_TOOLS or part.is_hosted:
                continue
            if part.state.time.compacted is not None:
                return _worth(found)
            total += estimate(part.state.output)
            if total > PROTECT:
                found.append(part)
    return _worth(found)


def pays(saved: int, count: int, price: Price) -> bool:
    """Whether pruning pays for itself with the next request, although the provider's cache is warm.

    Without pruning, all of ``count`` is read from the cache. With it, the rest is read at the price of input or of
    cache writes: the whole rest, as if the first pruned output were at the beginning.
    """
    fresh = max(price.input, price.cache_write)
    return count * price.cache_read > max(0, count - saved) * fresh


def _reason(mode: PruneMode, occasion: Occasion, saved: int) -> str | None:
    if mode == "always" and occasion.is_after_run:
        return ALWAYS
    if occasion.begins:
        return BEGINS
    if occasion.is_cold:
        return COLD
    if occasion.room is not None:
        return FULL if occasion.count - saved < occasion.room else None
    return CHEAPER if pays(saved, occasion.count, occasion.price) else None


def _worth(found: list[ToolPart]) -> list[ToolPart]:
    return found if sum(_size(part) for part in found) > MINIMUM else []


def _size(part: ToolPart) -> int:
    return estimate(part.state.output) if isinstance(part.state, ToolCompleted) else 0


def _saves(part: ToolPart) -> int:
    """Tokens saved by pruning an output; negative if it is shorter than the text in its place."""
    return _size(part) - STAND_IN


def _has_media(part: ToolPart) -> bool:
    return isinstance(part.state, ToolCompleted) and bool(part.state.attachments)

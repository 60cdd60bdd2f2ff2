"""Oversized prompts: an unanswered prompt that was too large is left out of later requests.

Otherwise every later request would be too large as well. The text in its place names its recall handle.
"""

from collections.abc import Collection, Sequence

from turnkeeper.core.compaction import entry_tokens, unanswered
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.quarantine import shown_parts, without
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import OverflowFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, Part, TextPart

PART_SHARE = 4
PART_CHARS_MIN = 1_000
"""A part is left out if it has at least a quarter of its message and PART_CHARS_MIN characters."""


def has_overflowed(entries: Sequence[HistoryItem], model: ModelInfo) -> bool:
    """Whether the newest turn failed because its request was too large for this model."""
    turns = (entry.message for entry in reversed(entries) if isinstance(entry.message, AssistantMessage))
    last = next(turns, None)
    if last is None or not isinstance(last.error, OverflowFailure):
        return False
    return (last.provider_id, last.model_id) == (model.provider_id, model.id)


def oversized(
    shown: Sequence[HistoryItem], model: ModelInfo, left_out: Collection[str], *, has_newer: bool
) -> tuple[HistoryItem, tuple[str, ...]] | None:
    """The largest unanswered prompt and its large parts; None if unanswered prompts are less than half of the history.

    ``left_out`` are the quarantined parts. ``has_newer``: the newest prompt stays, to be answered now.
    """
    seen = [without(entry, left_out) for entry in shown]
    prompts = unanswered(seen)
    waiting = [(entry_tokens(entry, model), entry) for entry in (prompts[:-1] if has_newer else prompts)]
    if not waiting or 2 * sum(size for size, _ in waiting) < sum(entry_tokens(entry, model) for entry in seen):
        return None
    _, largest = max(waiting, key=lambda one: one[0])
    parts = [part for part in shown_parts(largest) if part.id not in left_out]
    whole = sum(map(_size, parts))
    ids = tuple(part.id for part in parts if _size(part) >= max(PART_CHARS_MIN, whole // PART_SHARE))
    return (largest, ids) if ids else None


def all_oversized(
    shown: Sequence[HistoryItem], model: ModelInfo, left_out: Collection[str], room: int | None
) -> frozenset[str]:
    """The parts to leave out until the unanswered prompts fit into ``room`` tokens. None: those of one prompt."""
    found = frozenset(left_out)
    while (one := oversized(shown, model, found, has_newer=False)) is not None:
        found |= frozenset(one[1])
        rest = unanswered([without(entry, found) for entry in shown])
        if room is None or sum(entry_tokens(entry, model) for entry in rest) < room:
            break
    return found


def _size(part: Part) -> int:
    match part:
        case TextPart(text=text):
            return len(text)
        case FilePart(url=url):
            return len(url)
        case _:
            return 0

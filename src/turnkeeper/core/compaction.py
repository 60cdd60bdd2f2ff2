"""Compaction: splits a history into the head that a Summary replaces, the tail that stays, and unanswered prompts."""

from collections.abc import Sequence
from typing import Final

from turnkeeper.core.history import HistoryItem, compaction_of, is_completed_summary, summarised
from turnkeeper.core.lowering import conversation
from turnkeeper.core.window import chars_of, tokens_of, usable, window
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.config import CompactionConfig
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import FilePart, Part, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import Value

TAIL_SHARE: Final = 4
TAIL_MIN: Final = 2_000
TAIL_MAX: Final = 15_000
"""The tail may take a quarter of the usable window, between TAIL_MIN and TAIL_MAX tokens."""
WORTH_TOKENS: Final = 50_000
WORTH_MESSAGES: Final = 100
WORTH_SHARE: Final = 0.75
"""A session is worth a manual compaction above one of these: tokens, messages, share of the usable window."""


class Split(Value):
    """A history cut for a compaction: ``head`` is summarised, ``tail`` stays word for word.

    ``pending`` are unanswered prompts. They are not summarised but repeated after the Summary.
    """

    head: tuple[HistoryItem, ...]
    tail: tuple[HistoryItem, ...] = ()
    pending: tuple[HistoryItem, ...] = ()
    previous: str | None = None
    """The text of the previous Summary, to be merged into the new one."""

    @property
    def tail_start_id(self) -> str | None:
        """The id of the first message of the tail; None if the tail is empty."""
        return self.tail[0].message.id if self.tail else None


def tail_budget(room: int | None, configured: int | None) -> int:
    """The number of tokens of the newest history that stay word for word."""
    if configured is not None:
        return configured
    return min(TAIL_MAX, max(TAIL_MIN, room // TAIL_SHARE)) if room is not None else TAIL_MAX


def split(
    shown: Sequence[HistoryItem],
    model: ModelInfo,
    budget: int,
    *,
    turns_max: int | None = None,
    overflowed: bool = False,
) -> Split:
    """Cut the visible history. ``overflowed``: the provider rejected it as too large, so no media stay in the tail."""
    plain, previous = _without_summaries(shown)
    begin = _pending_from(plain)
    settled, pending = plain[:begin], [entry for entry in plain[begin:] if not _is_failed(entry)]
    start = _tail_start(settled, model, budget, turns_max, overflowed)
    return Split(head=tuple(settled[:start]), tail=tuple(settled[start:]), pending=tuple(pending), previous=previous)


def progressed(entries: Sequence[HistoryItem]) -> bool:
    """Whether a turn succeeded since the newest Summary: only then can another Summary make the request smaller.

    ``entries`` are in the order of the log, not in that of ``visible``, which moves the tail behind the Summary.
    """
    for entry in reversed(entries):
        message = entry.message
        if not isinstance(message, AssistantMessage) or message.error is not None or message.finish is None:
            continue
        return not message.summary
    return False


def may_recover(entries: Sequence[HistoryItem]) -> bool:
    """Whether a compaction may help after the provider rejected a request as too large; at most once for each turn."""
    if progressed(entries):
        return True
    begin = _pending_from(entries)
    has_head = any(isinstance(one.message, UserMessage) for one in entries[:begin])
    return (has_head or any(map(has_media, entries[begin:]))) and not summarised(entries)


def unanswered(shown: Sequence[HistoryItem]) -> list[HistoryItem]:
    """The prompts without an answer, at the end of a history."""
    plain, _ = _without_summaries(shown)
    return [entry for entry in plain[_pending_from(plain) :] if isinstance(entry.message, UserMessage)]


def too_small(tokens: int, messages: int, limits: Limits, config: CompactionConfig) -> str | None:
    """Why a session is not worth a manual compaction; None if it is."""
    room = usable(limits, window(config, {}))
    if tokens > (config.max_tokens or WORTH_TOKENS) or messages > (config.max_messages or WORTH_MESSAGES):
        return None
    if room is not None and tokens > room * WORTH_SHARE:
        return None
    return f"{messages} messages of about {tokens:,} tokens are little; with force they are compacted all the same"


def without_media(part: Part) -> Part:
    """The part of a repeated prompt; a text names an image or PDF that made the request too large."""
    if isinstance(part, FilePart) and _is_media(part):
        words = f"[Attached {part.mime}: {part.filename or 'file'}]"
        return TextPart(id=part.id, session_id=part.session_id, message_id=part.message_id, text=words)
    return part


def _tail_start(
    settled: Sequence[HistoryItem], model: ModelInfo, budget: int, turns_max: int | None, overflowed: bool
) -> int:
    """The index at which the tail begins. Only whole messages are cut off: a message holds its calls and results."""
    start, left, turns = len(settled), budget, 0
    for index in range(len(settled) - 1, -1, -1):
        if turns_max is not None and turns >= turns_max:
            break
        left -= entry_tokens(settled[index], model)
        if left < 0 or (overflowed and has_media(settled[index])):
            break
        start = index
        turns += isinstance(settled[index].message, UserMessage)
    # A tail that is the whole history would make nothing smaller.
    return start if start > 0 else len(settled)


def entry_tokens(entry: HistoryItem, model: ModelInfo) -> int:
    """An estimate of the tokens that a message takes in a request."""
    return tokens_of(sum(chars_of(message) for message in conversation([entry], model)))


def _without_summaries(shown: Sequence[HistoryItem]) -> tuple[list[HistoryItem], str | None]:
    """The history without compactions and system messages, and the text of the newest Summary."""
    previous: str | None = None
    plain: list[HistoryItem] = []
    for entry in shown:
        message = entry.message
        if isinstance(message, AssistantMessage) and message.summary:
            if is_completed_summary(message):
                previous = summary_text(entry)
        elif compaction_of(entry) is None and not isinstance(message, SystemMessage):
            plain.append(entry)
    return plain, previous


def summary_text(entry: HistoryItem) -> str:
    """The text of a Summary."""
    texts = (part.text.strip() for part in entry.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)


def _pending_from(plain: Sequence[HistoryItem]) -> int:
    """The index of the first unanswered prompt at the end of a history."""
    begin = len(plain)
    for index in range(len(plain) - 1, -1, -1):
        if isinstance(plain[index].message, UserMessage):
            begin = index
        elif not _is_failed(plain[index]):
            break
    return begin


def _is_failed(entry: HistoryItem) -> bool:
    """Whether a message is a failed turn without output."""
    message = entry.message
    if not isinstance(message, AssistantMessage) or message.error is None:
        return False
    return all(isinstance(part, StepStartPart) for part in entry.parts)


def has_media(entry: HistoryItem) -> bool:
    """Whether a message or its tool results hold images or PDFs."""
    for part in entry.parts:
        if isinstance(part, FilePart) and _is_media(part):
            return True
        state = part.state if isinstance(part, ToolPart) else None
        if isinstance(state, ToolCompleted) and any(_is_media(file) for file in state.attachments or ()):
            return True
    return False


def _is_media(part: FilePart) -> bool:
    return part.mime.startswith("image/") or part.mime == "application/pdf"

"""Compaction: what of a history a Summary replaces, what stays word for word, and what must still be answered."""

from collections.abc import Sequence
from typing import Final

from turnkeeper.core.history import HistoryItem, compaction_of, is_completed_summary
from turnkeeper.core.lowering import conversation
from turnkeeper.core.window import chars_of, tokens_of, usable, window
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.config import CompactionConfig
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import FilePart, Part, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import Value

TAIL_SHARE: Final = 4
"""The tail may take a quarter of the usable window ..."""
TAIL_MIN: Final = 2_000
TAIL_MAX: Final = 15_000
"""... within these bounds."""
WORTH_TOKENS: Final = 50_000
WORTH_MESSAGES: Final = 100
"""From this size on a session is worth compacting by hand, unless the configuration says otherwise ..."""
WORTH_SHARE: Final = 0.75
"""... or from this share of the usable window."""


class Split(Value):
    """A history cut for a compaction: ``head`` is summarised, ``tail`` stays word for word.

    ``pending`` are prompts that nobody answered yet. They are never summarised: they are asked again behind it all.
    """

    head: tuple[HistoryItem, ...]
    tail: tuple[HistoryItem, ...] = ()
    pending: tuple[HistoryItem, ...] = ()
    previous: str | None = None
    """The Summary before, to be merged into the new one."""

    @property
    def tail_start_id(self) -> str | None:
        """Where the tail begins; None if nothing is kept."""
        return self.tail[0].message.id if self.tail else None


def tail_budget(room: int | None, configured: int | None) -> int:
    """How many tokens of the newest history are kept word for word."""
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
    """Cut what the model was shown. ``overflowed``: the provider refused it, so no media stay that may be the cause."""
    plain, previous = _without_summaries(shown)
    begin = _pending_from(plain)
    settled, pending = plain[:begin], [entry for entry in plain[begin:] if not _is_failed(entry)]
    start = _tail_start(settled, model, budget, turns_max, overflowed)
    return Split(head=tuple(settled[:start]), tail=tuple(settled[start:]), pending=tuple(pending), previous=previous)


def progressed(entries: Sequence[HistoryItem]) -> bool:
    """Whether a turn ended well since the newest Summary: only then can another one make the request smaller.

    Told from the order of events; the model is shown the tail behind the Summary, though it came before.
    """
    for entry in reversed(entries):
        message = entry.message
        if not isinstance(message, AssistantMessage) or message.error is not None or message.finish is None:
            continue
        return not message.summary
    return False


def may_recover(entries: Sequence[HistoryItem]) -> bool:
    """Whether a compaction may still help after the provider refused a request: once for each turn, and no loop."""
    if progressed(entries):
        return True
    if not _can_shrink(entries):
        return False
    return not any(isinstance(one.message, AssistantMessage) and is_completed_summary(one.message) for one in entries)


def _can_shrink(entries: Sequence[HistoryItem]) -> bool:
    """Whether a compaction has anything to work on: messages before the unanswered prompts, or media in these."""
    begin = _pending_from(entries)
    return any(isinstance(one.message, UserMessage) for one in entries[:begin]) or any(map(has_media, entries[begin:]))


def unanswered(shown: Sequence[HistoryItem]) -> list[HistoryItem]:
    """The prompts that no turn has said or done anything about."""
    plain, _ = _without_summaries(shown)
    return [entry for entry in plain[_pending_from(plain) :] if isinstance(entry.message, UserMessage)]


def too_small(tokens: int, messages: int, limits: Limits, config: CompactionConfig) -> str | None:
    """Why a session is not worth compacting by hand; None if it is."""
    room = usable(limits, window(config, {}))
    if tokens > (config.max_tokens or WORTH_TOKENS) or messages > (config.max_messages or WORTH_MESSAGES):
        return None
    if room is not None and tokens > room * WORTH_SHARE:
        return None
    return f"{messages} messages of about {tokens:,} tokens are little; with force they are compacted all the same"


def without_media(part: Part) -> Part:
    """A part as it is asked again after media were too much: a word in their place."""
    if isinstance(part, FilePart) and _is_media(part):
        words = f"[Attached {part.mime}: {part.filename or 'file'}]"
        return TextPart(id=part.id, session_id=part.session_id, message_id=part.message_id, text=words)
    return part


def _tail_start(
    settled: Sequence[HistoryItem], model: ModelInfo, budget: int, turns_max: int | None, overflowed: bool
) -> int:
    """Where the tail begins. Cut between messages only: a message holds its calls and their results."""
    start, left, turns = len(settled), budget, 0
    for index in range(len(settled) - 1, -1, -1):
        if turns_max is not None and turns >= turns_max:
            break
        left -= entry_tokens(settled[index], model)
        if left < 0 or (overflowed and has_media(settled[index])):
            break
        start = index
        turns += isinstance(settled[index].message, UserMessage)
    # If all of it were kept, nothing would become smaller.
    return start if start > 0 else len(settled)


def entry_tokens(entry: HistoryItem, model: ModelInfo) -> int:
    """Roughly how many tokens of a request a message is."""
    return tokens_of(sum(chars_of(message) for message in conversation([entry], model)))


def _without_summaries(shown: Sequence[HistoryItem]) -> tuple[list[HistoryItem], str | None]:
    """The history without earlier compactions and without news of the context, and the newest Summary's text."""
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
    """What a Summary says."""
    texts = (part.text.strip() for part in entry.parts if isinstance(part, TextPart))
    return "\n\n".join(text for text in texts if text)


def _pending_from(plain: Sequence[HistoryItem]) -> int:
    """Where the prompts begin that no turn has said or done anything about."""
    begin = len(plain)
    for index in range(len(plain) - 1, -1, -1):
        if isinstance(plain[index].message, UserMessage):
            begin = index
        elif not _is_failed(plain[index]):
            break
    return begin


def _is_failed(entry: HistoryItem) -> bool:
    """Whether a turn came to nothing."""
    message = entry.message
    if not isinstance(message, AssistantMessage) or message.error is None:
        return False
    return all(isinstance(part, StepStartPart) for part in entry.parts)


def has_media(entry: HistoryItem) -> bool:
    """Whether a message shows images or PDFs, its own or those of a tool."""
    for part in entry.parts:
        if isinstance(part, FilePart) and _is_media(part):
            return True
        state = part.state if isinstance(part, ToolPart) else None
        if isinstance(state, ToolCompleted) and any(_is_media(file) for file in state.attachments or ()):
            return True
    return False


def _is_media(part: FilePart) -> bool:
    return part.mime.startswith("image/") or part.mime == "application/pdf"

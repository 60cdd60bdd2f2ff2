"""The context of a session as the model gets it: each text of the next request, compared with the log."""

from collections.abc import Iterable, Iterator
from typing import Final, Literal, TypeAlias

from turnkeeper.core.handles import RecallText, pieces, whole_output
from turnkeeper.core.history import HistoryItem, since_epoch, visible
from turnkeeper.core.lowering import cleared, is_sent
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import Part, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.value import Value
from turnkeeper.store.queries import Queries

PieceState: TypeAlias = Literal["whole", "bounded", "pruned", "left out"]

EXCERPT_CHARS: Final = 200
"""Characters of a text of the history that are quoted. Its handle recalls the rest."""


class BaselinePiece(Value):
    """A component of the Baseline System Context, or an update of one: its whole text."""

    key: str
    text: str


class ShownPiece(Value):
    """A text of the history. ``shown`` and ``total`` are its characters in requests and in the log.

    ``excerpt`` is the beginning of what requests have in its place; empty if they have nothing.
    """

    message_id: str
    seq: int
    part_id: str | None = None
    label: str
    handle: str
    shown: int
    total: int
    state: PieceState
    excerpt: str


class Shown(Value):
    """The context of a model. ``left_out`` counts the messages that a Summary replaces."""

    session_id: str
    seq: int
    model: str
    baseline: tuple[BaselinePiece, ...]
    pieces: tuple[ShownPiece, ...]
    left_out: int = 0
    left_out_chars: int = 0


async def shown(queries: Queries, view: SessionView) -> Shown:
    """The context of the next request of a session, from its view and the queries of the same moment."""
    epoch = await queries.whole(view.epoch) if view.epoch is not None else None
    history: list[HistoryItem] = []
    async for some in queries.walk(view.session.id, damaged=[]):
        history += [HistoryItem(message=one.info, parts=one.parts) for one in some]
    kept = since_epoch(visible(history), epoch.seq if epoch is not None else 0)
    names = {entry.message.id for entry in kept}
    hidden = [entry for entry in history if entry.message.id not in names]
    found = [one for entry in kept for one in _pieces(entry, frozenset(view.quarantined))]
    return Shown(
        session_id=view.session.id,
        seq=view.seq,
        model=f"{epoch.provider_id}/{epoch.model_id}" if epoch is not None else "",
        baseline=tuple(BaselinePiece(key=one.key, text=one.text) for one in epoch.baseline) if epoch else (),
        pieces=tuple(found),
        left_out=len(hidden),
        left_out_chars=sum(len(text.text) for entry in hidden for text in _texts(entry)),
    )


def _texts(entry: HistoryItem) -> Iterable[RecallText]:
    return (one for one in pieces(entry) if not one.is_whole)


def _pieces(entry: HistoryItem, quarantined: frozenset[str]) -> Iterator[ShownPiece]:
    parts = {part.id: part for part in entry.parts}
    is_turn_sent = not isinstance(entry.message, AssistantMessage) or is_sent(entry.message, entry.parts)
    for text in _texts(entry):
        part = parts.get(text.part_id or "")
        state, excerpt, chars = _state(part, text, is_sent=is_turn_sent and not _is_left_out(part, quarantined))
        yield ShownPiece(
            message_id=entry.message.id,
            seq=entry.message.seq,
            part_id=text.part_id,
            label=text.label,
            handle=text.handle,
            shown=chars,
            total=len(text.text),
            state=state,
            excerpt=excerpt[:EXCERPT_CHARS],
        )


def _is_left_out(part: Part | None, quarantined: frozenset[str]) -> bool:
    return part is not None and (part.id in quarantined or (isinstance(part, TextPart) and part.ignored is True))


def _state(part: Part | None, text: RecallText, *, is_sent: bool) -> tuple[PieceState, str, int]:
    """The state of a text, what requests have in its place, and how many of its characters they have."""
    if not is_sent:
        return "left out", "", 0
    if isinstance(part, ToolPart) and isinstance(part.state, ToolCompleted) and text.text == whole_output(part.state):
        if part.state.time.compacted is not None:
            return "pruned", cleared(part.state), 0
        if part.state.full is not None:
            return "bounded", part.state.output, len(part.state.output)
    return "whole", text.text, len(text.text)

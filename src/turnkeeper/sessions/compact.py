"""Compact a session on request: the model gets a Summary instead of older history, which recall still reads."""

from typing import Final

from turnkeeper.core.compaction import summary_text, too_small
from turnkeeper.core.compaction_events import a_marker
from turnkeeper.core.history import History, HistoryItem, compaction_of, is_completed_summary, visible
from turnkeeper.core.lowering import conversation
from turnkeeper.core.next_action import last_turn, last_user
from turnkeeper.core.quarantine import without
from turnkeeper.core.window import chars_of, tokens_of
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import words_of
from turnkeeper.model.message import AssistantMessage, ModelChoice, UserMessage
from turnkeeper.model.parts import TextPart
from turnkeeper.model.refusal import Refusal
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.run.runtime import Runtime
from turnkeeper.store.store import Store
from turnkeeper.workspace.project import ProjectPlace

NOTHING: Final = "there is nothing to compact: nobody has answered since the session began or was last compacted"


class Compacted(Value):
    """The result of a compaction. Without a ``summary`` nothing was done, for ``reason``. Sizes are in tokens."""

    reason: str
    summary: str | None = None
    is_digest: bool = False
    problem: str | None = None
    """Why a digest is used instead of the summary of a model."""
    tail_start_id: str | None = None
    before: int = 0
    after: int = 0


async def compact(
    store: Store,
    runtime: Runtime,
    place: ProjectPlace,
    session: Session,
    *,
    force: bool = False,
    auto: bool = False,
    model: ModelChoice | None = None,
) -> Compacted:
    """Compact an idle session; without ``force`` only one that is large enough.

    ``auto`` marks the compaction as one that continues the work. Raises Busy while the session runs, and Refusal if the
    compaction failed.
    """
    await runtime.commit_revert(session.id)
    history = await runtime.history(session.id)
    user, turn = last_user(history), last_turn(history)
    if user is None or turn is None or not isinstance(user.message, UserMessage) or _is_summary(turn):
        return Compacted(reason=NOTHING)
    speaker = user.message if model is None else user.message.but(model=model)
    info = runtime.model(speaker.model, place)
    shown = visible(history.entries)
    before = _size(history, info)
    config, _ = runtime.directories.catalog(place)
    if not force and (reason := too_small(before, len(shown), info.limits, config.compaction)) is not None:
        return Compacted(reason=reason, before=before, after=before)

    async def work(writer: FencedWriter) -> None:
        await writer.append(a_marker(speaker, store.mint, store.mint.now(), auto=auto), at="marker")
        await runtime.compact(writer)

    await runtime.alone(session.id, work)
    return _result(await runtime.history(session.id), info, before)


def _result(history: History, model: ModelInfo, before: int) -> Compacted:
    last = last_turn(history)
    assert last is not None, "a compaction is a turn"
    if not _is_summary(last):
        error = last.message.error if isinstance(last.message, AssistantMessage) else None
        reason = words_of(error) if error is not None else "it was stopped"
        raise Refusal(f"the compaction came to nothing, and nothing has changed: {reason}")
    shown = visible(history.entries)
    mark = compaction_of(shown[0])
    marks = [part.metadata or {} for part in last.parts if isinstance(part, TextPart)]
    problem = next((str(one["problem"]) for one in marks if one.get("problem")), None)
    after = _size(history, model)
    return Compacted(
        reason="compacted" if after < before else "a Summary was written, and nothing became smaller by it",
        summary=summary_text(last),
        is_digest=any(bool(one.get("digest")) for one in marks),
        problem=problem,
        tail_start_id=mark.tail_start_id if mark is not None else None,
        before=before,
        after=after,
    )


def _is_summary(turn: HistoryItem) -> bool:
    return isinstance(turn.message, AssistantMessage) and is_completed_summary(turn.message)


def _size(history: History, model: ModelInfo) -> int:
    shown = [without(entry, history.view.quarantined) for entry in visible(history.entries)]
    return tokens_of(sum(chars_of(message) for message in conversation(shown, model)))

"""Live events of the second generation: derived from each append of the journal, for the subscribers of streams."""

from collections.abc import Iterable, Sequence
from typing import Final

from turnkeeper.core.changes import Change
from turnkeeper.model import event as e
from turnkeeper.server.v2 import shape
from turnkeeper.server.v2.event import NextEvent, Reason, compaction_parent, next_events
from turnkeeper.store.batch import Step
from turnkeeper.store.publisher import ReadLog

LOOK_BACK: Final = 64
LOOK_BACK_MAX: Final = 1024
"""How many entries before a summary are searched for its compaction marker: in steps of LOOK_BACK, up to this many."""


async def derive(read: ReadLog, step: Step) -> Sequence[NextEvent]:
    """The events of one step. A pure function of the step and the log, so several servers may share its result."""
    session, recorded = step.after.session, step.recorded
    reason = await reason_of(read, session.id, recorded.seq, step.changes)
    return next_events(recorded, step.changes, (session.id, session.directory, session.project_id), reason)


async def reason_of(read: ReadLog, session_id: str, seq: int, changes: Iterable[Change]) -> Reason:
    """The reason of the compaction that these changes complete, from the nearest marker before ``seq``."""
    if (parent_id := compaction_parent(changes)) is None:
        return "auto"
    end, first = seq - 1, max(seq - 1 - LOOK_BACK_MAX, 0)
    while end > first:
        begin = max(end - LOOK_BACK, first)
        for one in reversed(await read(session_id, after=begin, limit=end - begin)):
            if isinstance(one.event, e.MessageRecorded) and one.event.message.id == parent_id:
                mark = shape.compaction_of(one.event.parts)
                return "auto" if mark is None or mark.auto else "manual"
        end = begin
    return "auto"

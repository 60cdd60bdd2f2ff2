"""Merge an imported session into the store: new data is recorded, equal data skipped; on conflict ours is kept."""

from turnkeeper.core.view import SessionView
from turnkeeper.interop.compare import Comparison
from turnkeeper.interop.normalise import Incoming, IncomingMessage
from turnkeeper.interop.report import TAKEN, Finding, Tally
from turnkeeper.interop.separate import separate_session
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.sessions.doctor_sweep import owner_of
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store


async def merge_into_store(store: Store, incoming: Incoming, tally: Tally, *, dry: bool = False) -> None:
    """Add the new data of an incoming session to the store, in one transaction, and count the result.

    With ``dry`` nothing is written.
    """
    try:
        await store.queries.state(incoming.session.id)
    except NotFound:
        try:
            await _create(store, incoming, tally, dry=dry)
        except Conflict:  # Another process has created it.
            await _merge(store, incoming, tally, dry=dry)
    else:
        await _merge(store, incoming, tally, dry=dry)


async def _create(store: Store, incoming: Incoming, tally: Tally, *, dry: bool) -> None:
    messages = await _free(store, incoming.messages)
    events: list[Event] = [e.MessageRecorded(message=one.info, parts=one.parts) for one in messages]
    if incoming.todos:
        events.append(e.TodosSet(todos=incoming.todos))
    if incoming.diffs:
        events.append(e.SummaryRecorded(summary=incoming.session.summary, diffs=incoming.diffs))
    if not dry:
        await store.journal.create(incoming.session, *events)
    tally.imported = tally.imported.plus(1, len(messages), sum(len(one.parts) for one in messages))
    tally.conflicts.extend(_taken(incoming, messages))


async def _merge(store: Store, incoming: Incoming, tally: Tally, *, dry: bool) -> None:
    for _ in range(ATTEMPTS_MAX):
        comparison = await _compared(store, incoming)
        if incoming.follows and comparison.is_continued and comparison.missing():
            other = separate_session(incoming)
            reason = f"it was continued here; what is new in the source is in session {other.session.id}"
            tally.skipped.append(Finding(reason=reason, session_id=incoming.session.id))
            await merge_into_store(store, other, tally, dry=dry)
            return
        messages = await _free(store, comparison.missing())
        seq, events = comparison.view.seq, comparison.events(messages)

        def decide(view: SessionView, seq: int = seq, events: list[Event] = events) -> list[Event]:
            return events if view.seq == seq else []

        if not dry:
            changed = await store.journal.change(incoming.session.id, decide)
        if not dry and not changed.events and (events or changed.view.seq != seq):
            continue  # Another process wrote to the session: compare again.
        new_parts = comparison.new_parts + sum(len(one.parts) for one in messages)
        tally.imported = tally.imported.plus(0, len(messages), new_parts)
        is_equal = not events and not comparison.conflicts
        tally.unchanged = tally.unchanged.plus(is_equal, comparison.equal_messages, comparison.equal_parts)
        tally.grown += bool(events)
        tally.conflicts.extend([*comparison.conflicts, *_taken(incoming, messages, comparison.known)])
        return
    raise Conflict(f"session {incoming.session.id!r} is being written without pause; try again")


async def _compared(store: Store, incoming: Incoming) -> Comparison:
    session_id = incoming.session.id
    view = await store.journal.view(session_id)
    session = await store.queries.session(session_id)
    comparison = Comparison(incoming, view.but(session=session), await store.queries.diffs(session_id))
    async for ours in store.queries.stream(session_id, reverse=False):
        comparison.message(ours.info, ours.parts)
    return comparison


async def _free(store: Store, messages: list[IncomingMessage]) -> list[IncomingMessage]:
    """The messages whose ids no message of another session has."""
    groups = await store.engine.gather([("part", one.info.id) for one in messages])
    return [
        one
        for one, group in zip(messages, groups, strict=True)
        if all(owner_of(body) == one.info.session_id for _, body in group)
    ]


def _taken(incoming: Incoming, free: list[IncomingMessage], known: frozenset[str] = frozenset()) -> list[Finding]:
    there = {one.info.id for one in free} | known
    lost = [one.info for one in incoming.messages if one.info.id not in there]
    return [Finding(reason=TAKEN, session_id=info.session_id, message_id=info.id) for info in lost]

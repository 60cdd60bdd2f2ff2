"""Compare a session with itself: what differs between two of its events, files included."""

from turnkeeper.core.session_diff import SessionDiff, SessionMoment, compare
from turnkeeper.model.refusal import Refusal
from turnkeeper.sessions.changes import SnapshotReader, between
from turnkeeper.sessions.past import PastSession, past
from turnkeeper.store.store import Store


async def compared(store: Store, reader: SnapshotReader, session_id: str, before: int, after: int) -> SessionDiff:
    """The differences of a session between two events. Raises Invalid if it does not have both."""
    moments = [await _moment(await past(store, session_id, seq)) for seq in (before, after)]
    found = compare(*moments)
    try:
        return found.but(files=await between(store, reader, session_id, before, after))
    except Refusal as refusal:
        return found.but(files_unknown=str(refusal))


async def _moment(then: PastSession) -> SessionMoment:
    view = then.view.but(session=await then.session())
    return SessionMoment(view=view, messages=tuple([one async for one in then.stream(reverse=False)]))

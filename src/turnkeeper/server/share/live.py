"""The live view of a link: frames with changes, until the link is withdrawn or has expired."""

from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from turnkeeper.interop.shared_session import SharedSession, SharedView
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.share import HostedShare
from turnkeeper.model.value import encode
from turnkeeper.server.service import Service
from turnkeeper.sessions.share import is_expired
from turnkeeper.store.store import Store

POLL_S: Final = 0.5
"""Interval of polling for changes of this and other processes."""
BEAT_S: Final = 15.0
SESSIONS_MAX: Final = 32
"""Shared sessions that a server keeps in memory."""
GONE: Final = b'data: {"gone":true}\n\n'
BEAT: Final = b": heartbeat\n\n"


class Shares:
    """Cache of recently shown shared sessions. Readers of one link share one redaction."""

    def __init__(self, service: Service) -> None:
        self._turnkeeper = service.turnkeeper
        self._open: OrderedDict[str, SharedSession] = OrderedDict()

    async def open(self, share_id: str, secret: str) -> SharedSession:
        """The session of a link. The secret is checked each time. Raises NotFound."""
        made = await self._turnkeeper.open_share(share_id, secret)
        found = self._open.setdefault(made.hosted.secret_hash, made)
        self._open.move_to_end(made.hosted.secret_hash)
        if len(self._open) > SESSIONS_MAX:
            self._open.popitem(last=False)
        return found


async def frames(
    store: Store, shared: SharedSession, sleep: Callable[[float], Awaitable[None]]
) -> AsyncIterator[bytes]:
    """The frames of server-sent events of a link: first the whole session, then its changes."""
    view = await _view(store, shared)
    silent_s, last = 0.0, view
    if view is not None:
        yield _frame(shared.hosted, None, view)
    while view is not None:
        await sleep(POLL_S)
        silent_s += POLL_S
        view = await _view(store, shared)
        if view is not None and last is not None and view.seq != last.seq:
            yield _frame(shared.hosted, last, view)
            last, silent_s = view, 0.0
        elif silent_s >= BEAT_S:
            yield BEAT
            silent_s = 0.0
    yield GONE


async def _view(store: Store, shared: SharedSession) -> SharedView | None:
    """The current view of a link; None if it was withdrawn, replaced or has expired, or if the session was removed."""
    hosted = await store.queries.hosted(shared.hosted.id)
    if hosted is None or hosted.secret_hash != shared.hosted.secret_hash or is_expired(hosted, store.mint.now()):
        return None
    try:
        return await shared.view()
    except NotFound:
        return None


def _frame(hosted: HostedShare, before: SharedView | None, after: SharedView) -> bytes:
    known = {one.key: one.html for one in before.articles} if before is not None else {}
    frame = {
        "title": after.title,
        "expires": hosted.expires,
        "order": [one.key for one in after.articles],
        "changed": {one.key: one.html for one in after.articles if known.get(one.key) != one.html},
        "prompts": [(one.key, one.prompt) for one in after.articles if one.prompt],
    }
    return b"data: " + encode(frame) + b"\n\n"

"""Moments: sessions as they are, or as they were after an event. Folded pasts are cached, because readers step."""

from collections import OrderedDict
from typing import Final, NamedTuple

from turnkeeper.core.view import SessionView
from turnkeeper.server.request import AnyRequest
from turnkeeper.server.service import Service
from turnkeeper.store.queries import Queries

KEPT_MAX: Final = 6
"""Maximum number of cached pasts. Each holds a copy of the session's documents."""


class Moment(NamedTuple):
    """A session at one moment: its view, and the queries of the documents of that moment."""

    view: SessionView
    queries: Queries


async def moment(call: AnyRequest, seq: int | None) -> Moment:
    """The session of a request after event ``seq``, or now."""
    return await call.service.part(Moments).at(call.session_id, seq)


class Moments:
    """Cache of past states of sessions: ``service.part(Moments)``."""

    def __init__(self, service: Service) -> None:
        self._turnkeeper = service.turnkeeper
        self._kept: OrderedDict[tuple[str, int, str], Moment] = OrderedDict()

    async def at(self, session_id: str, seq: int | None) -> Moment:
        """A session after event ``seq``, or now. Raises NotFound, and Invalid if there is no such event."""
        store = self._turnkeeper.store
        if seq is None:
            return Moment(await store.journal.view(session_id), store.queries)
        # With the head in the key, a session that was removed and imported again is not mistaken for its former self.
        key = (session_id, seq, (await store.queries.state(session_id)).head)
        if (found := self._kept.get(key)) is not None:
            self._kept.move_to_end(key)
            return found
        past = await self._turnkeeper.at(session_id, seq)
        self._kept[key] = Moment(past.view, past.queries)
        if len(self._kept) > KEPT_MAX:
            self._kept.popitem(last=False)
        return self._kept[key]

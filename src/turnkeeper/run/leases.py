"""Leases: the signs of life of the owners of sessions, and by these, which sessions this runtime may take.

``core/lease.py`` decides; this module reads the signs of life, and reads the clock.
"""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from hashlib import sha256

import anyio
import msgspec

from turnkeeper.core.lease import Sign, Silence, Terms, listen, may_take
from turnkeeper.core.view import ViewState
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.status import Owner
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine
from turnkeeper.workspace.owner import process


class Pace(msgspec.Struct, frozen=True):
    """A clock that never steps, and how to wait on it. It is the runtime's own, so that tests can pause a host."""

    now: Callable[[], float] = anyio.current_time
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep


class _Owned(Value):
    """The fields of a state document that tell who runs the session."""

    seq: int
    owner: Owner | None = None


_read_owned = msgspec.json.Decoder(_Owned).decode
read_heartbeat = msgspec.json.Decoder(Heartbeat).decode
"""A heartbeat from its document."""


class Leases:
    """The silences of other owners, as long as this runtime has listened to them."""

    def __init__(self, engine: Engine, owner: Owner, terms: Terms, pace: Pace) -> None:
        self._engine, self.owner, self.terms, self.pace = engine, owner, terms, pace
        self._silences: dict[str, Silence] = {}

    async def listen(self, session_ids: Collection[str]) -> frozenset[str]:
        """Read the newest signs of life of the owners of sessions; returns the sessions that may be taken now.

        A session without an owner, or one that this runtime owns, is not among them.
        """
        begun = self.pace.now()
        found = await self._engine.get([keys.state(session_id) for session_id in session_ids])
        owned: dict[str, _Owned] = {}
        for session_id, stored in zip(session_ids, found, strict=True):
            with suppress(*UNREADABLE):  # ``doctor`` reports it.
                state = _read_owned(stored) if stored is not None else None
                if state is not None and state.owner not in (None, self.owner):
                    owned[session_id] = state
        beats = await self._beats({one.owner for one in owned.values() if one.owner is not None})
        now = self.pace.now()
        for session_id in session_ids:
            if (state := owned.get(session_id)) is None:
                self._silences.pop(session_id, None)
            elif state.owner is not None:
                sign = Sign(state.owner, beats[state.owner], state.seq)
                self._silences[session_id] = listen(self._silences.get(session_id), sign, begun, now)
        return frozenset(session_id for session_id, state in owned.items() if self.may_take(session_id, state))

    def may_take(self, session_id: str, state: ViewState | _Owned) -> bool:
        """Whether this runtime may become the owner of a session, by the signs of life read so far."""
        return may_take(
            state.owner,
            self.owner,
            process=process(state.owner) if state.owner is not None else "ended",
            silence=self._silences.get(session_id),
            seq=state.seq,
        )

    def forget_all_but(self, session_ids: Collection[str]) -> None:
        """Forget the signs of life of the owners of other sessions."""
        self._silences = {one: silence for one, silence in self._silences.items() if one in session_ids}

    async def _beats(self, owners: Collection[Owner]) -> dict[Owner, int]:
        """The numbers of the newest heartbeats; 0 before the first one."""
        listed = list(owners)
        stored = await self._engine.get([keys.heartbeat(runtime_name(owner)) for owner in listed]) if listed else []
        numbers = dict.fromkeys(listed, 0)
        for owner, body in zip(listed, stored, strict=True):
            with suppress(*UNREADABLE):
                numbers[owner] = read_heartbeat(body).beat if body is not None else 0
        return numbers


def runtime_name(owner: Owner) -> str:
    """The name of a runtime in keys: short, and no other runtime's."""
    return sha256(encode(owner.but(lease_s=0))).hexdigest()[:20]  # A number may be written in two ways.

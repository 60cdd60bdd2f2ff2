"""Wakes: a process that runs no sessions asks in the store for one to be run, and a worker finds the request.

A wake says that a session is to be looked at; what there is to do is in its log. Each wake is a key of its own, and is
removed once a run that began after it has ended or found another owner at work. So none is lost, and many wakes of one
session make one run.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

import msgspec

from turnkeeper.mint import Mint
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key


class Wake(Value):
    """A request to run a session. ``resume``: with one more turn, although the last one failed or was stopped."""

    at: int
    resume: bool = False


class Waiting(NamedTuple):
    """The wakes of one session. ``at`` is the time of the oldest."""

    keys: tuple[Key, ...]
    at: int
    resume: bool


class Wakes(Protocol):
    """Where wakes wait for a worker."""

    async def post(self, session_id: str, *, resume: bool = False) -> None:
        """Ask for a session to be run. Durable once it returns."""
        ...

    async def waiting(self, session_id: str | None = None) -> Mapping[str, Waiting]:
        """The wakes by session, of one session or of all."""
        ...

    async def done(self, wakes: Sequence[Key]) -> None:
        """Remove wakes."""
        ...


_read = msgspec.json.Decoder(Wake).decode


class StoredWakes:
    """Wakes as documents of the store."""

    def __init__(self, engine: Engine, mint: Mint) -> None:
        self._engine, self._mint = engine, mint

    async def post(self, session_id: str, *, resume: bool = False) -> None:
        """See Wakes.post."""
        wake = Wake(at=self._mint.now(), resume=resume)
        await self._engine.put({keys.wake(session_id, self._mint.ascending("wake")): encode(wake)})

    async def waiting(self, session_id: str | None = None) -> Mapping[str, Waiting]:
        """See Wakes.waiting."""
        prefix = ("wake",) if session_id is None else ("wake", session_id)
        found: dict[str, Waiting] = {}
        for key, body in await self._engine.scan(prefix):
            try:
                wake = _read(body)
            except UNREADABLE:
                wake = Wake(at=self._mint.now())
            known = found.get(key[1], Waiting((), wake.at, resume=False))
            found[key[1]] = Waiting((*known.keys, key), min(known.at, wake.at), known.resume or wake.resume)
        return found

    async def done(self, wakes: Sequence[Key]) -> None:
        """See Wakes.done."""
        await self._engine.put(dict.fromkeys(wakes))

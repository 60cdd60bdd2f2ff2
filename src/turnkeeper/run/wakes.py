"""Wakes: requests in the store to run a session, made by processes that do not run it and read by workers.

A wake names a session; the work is in its log. It is removed once a run that began after it has ended or found another
owner at work. So none is lost, and many wakes of one session make few runs.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import NamedTuple, Protocol

import anyio
import msgspec

from turnkeeper.core.labels import HostLabels
from turnkeeper.core.limits import WAKE_POLL_S
from turnkeeper.mint import Mint
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key


class Waiting(NamedTuple):
    """The wakes of one session. ``at`` is the time of the oldest, in milliseconds."""

    at: int
    resume: bool
    wakes: int


class Taken(NamedTuple):
    """The wakes of a session that a worker has taken. ``resume``: one more turn, although the last failed."""

    session_id: str
    resume: bool
    marks: tuple[object, ...]
    """The receiver's own names of the wakes."""


Admits = Callable[[str], Awaitable[bool]]
"""Whether a session may be run here."""


class Receiver(Protocol):
    """The source of wakes of one worker."""

    async def take(self, limit: int, working: Collection[str], admits: Admits) -> Sequence[Taken]:
        """The wakes of at most ``limit`` sessions that may be run here, and are not among those being worked on."""
        ...

    async def done(self, taken: Taken) -> None:
        """Remove wakes whose session was run."""
        ...

    async def put_back(self, taken: Taken) -> None:
        """Leave wakes to other hosts: the session turned out not to be for this one."""
        ...

    async def changed(self) -> None:
        """Wait until there may be other wakes."""
        ...

    async def keep_up(self) -> None:
        """Do the receiver's upkeep, which a worker calls at intervals. Raises EngineError."""
        ...


class Wakes(Protocol):
    """The queue of wakes."""

    async def post(self, session_id: str, *, resume: bool = False) -> None:
        """Ask for a session to be run. Durable once it returns."""
        ...

    async def waiting(self, session_id: str | None = None) -> Mapping[str, Waiting]:
        """The wakes by session, of one session or of all; also those whose session is being run."""
        ...

    async def withdraw(self, session_id: str) -> None:
        """Remove the wakes of a session that no worker has taken."""
        ...

    async def owner_died(self, session_ids: Sequence[str]) -> None:
        """Let other workers take the wakes of sessions whose owner was found to be dead."""
        ...

    def receiver(self, labels: HostLabels, silence_s: float) -> AbstractAsyncContextManager[Receiver]:
        """The source of wakes of one worker. A worker that is silent for ``silence_s`` loses the wakes it has taken."""
        ...


class StoredWake(Value):
    """A wake as a document."""

    at: int
    resume: bool = False


_read = msgspec.json.Decoder(StoredWake).decode


class StoredWakes:
    """Wakes as documents of the store, each under a key of its own."""

    def __init__(self, engine: Engine, mint: Mint) -> None:
        self._engine, self._mint = engine, mint

    async def post(self, session_id: str, *, resume: bool = False) -> None:
        """See Wakes.post."""
        wake = StoredWake(at=self._mint.now(), resume=resume)
        await self._engine.put({keys.wake(session_id, self._mint.ascending("wake")): encode(wake)})

    async def waiting(self, session_id: str | None = None) -> Mapping[str, Waiting]:
        """See Wakes.waiting."""
        return {
            one: Waiting(min(wake.at for _, wake in wakes), any(wake.resume for _, wake in wakes), len(wakes))
            for one, wakes in (await self._scan(session_id)).items()
        }

    async def withdraw(self, session_id: str) -> None:
        """See Wakes.withdraw."""
        found = (await self._scan(session_id)).get(session_id, [])
        if found:
            await self._engine.put(dict.fromkeys(key for key, _ in found))

    async def owner_died(self, session_ids: Sequence[str]) -> None:
        """See Wakes.owner_died. These wakes have no owner."""

    @asynccontextmanager
    async def receiver(self, labels: HostLabels, silence_s: float) -> AsyncIterator["_StoredReceiver"]:
        """See Wakes.receiver."""
        yield _StoredReceiver(self._engine, self._scan)

    async def _scan(self, session_id: str | None = None) -> dict[str, list[tuple[Key, StoredWake]]]:
        found: dict[str, list[tuple[Key, StoredWake]]] = {}
        for key, body in await self._engine.scan(("wake",) if session_id is None else ("wake", session_id)):
            try:
                wake = _read(body)
            except UNREADABLE:
                wake = StoredWake(at=self._mint.now())
            found.setdefault(key[1], []).append((key, wake))
        return found


class _StoredReceiver:
    """Looks for wakes ten times a second, and only if the store has changed."""

    def __init__(self, engine: Engine, scan: Callable[[], Awaitable[dict[str, list[tuple[Key, StoredWake]]]]]) -> None:
        self._engine, self._scan = engine, scan
        self._seen: int | None = None

    async def take(self, limit: int, working: Collection[str], admits: Admits) -> Sequence[Taken]:
        """See Receiver.take. Nothing is written: which of several workers runs the session is decided by its log."""
        self._seen = await self._engine.version()
        taken: list[Taken] = []
        for session_id, wakes in (await self._scan()).items():
            if len(taken) >= limit:
                break
            if session_id not in working and await admits(session_id):
                resume = any(wake.resume for _, wake in wakes)
                taken.append(Taken(session_id, resume, tuple(key for key, _ in wakes)))
        return taken

    async def done(self, taken: Taken) -> None:
        """See Receiver.done."""
        await self._engine.put({key: None for key in taken.marks if isinstance(key, tuple)})

    async def put_back(self, taken: Taken) -> None:
        """See Receiver.put_back. The wakes were not removed."""

    async def changed(self) -> None:
        """See Receiver.changed. It sleeps first: the store may change all the time, as sessions run."""
        await anyio.sleep(WAKE_POLL_S)
        while await self._engine.version() == self._seen:  # noqa: ASYNC110 # Another process writes.
            await anyio.sleep(WAKE_POLL_S)

    async def keep_up(self) -> None:
        """See Receiver.keep_up."""

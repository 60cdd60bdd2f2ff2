"""Following other processes: what they write is published here, and a log that cannot be read stops nothing else."""

import json
from collections.abc import Callable

import pytest

from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.notification import Notification
from turnkeeper.model.status import BUSY
from turnkeeper.store import keys
from turnkeeper.store.engine import StoreDamaged
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.follower import catch_up
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.testing.builders import a_session

UNREADABLE, SOUND = "ses_a", "ses_b"
"""In the order in which they are looked at."""


class DamagedEngine(MemoryEngine):
    """A store whose disk can no longer read one log."""

    is_damaged = False

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        """See Engine.read."""
        if log == UNREADABLE and self.is_damaged:
            raise StoreDamaged(f"log {log!r} is damaged")
        return await super().read(log, after=after, limit=limit)


def a_store(engine: MemoryEngine, publish: Callable[[Notification], None]) -> Store:
    mint = Mint.fixed(step_ms=1)
    return Store(engine, Journal(engine, mint, publish), Queries(engine), mint)


async def write_of_a_newer_version(engine: MemoryEngine) -> None:
    """Append an event of a kind that this version does not know, with its state document."""
    [stored] = await engine.get([keys.state(UNREADABLE)])
    assert stored is not None
    length = await engine.length(UNREADABLE)
    state = json.loads(stored)
    unknown = {"seq": length + 1, "prev": state["head"], "time": 1, "type": "session.invented.1", "data": {}}
    state["seq"] = length + 1
    documents = {keys.state(UNREADABLE): json.dumps(state).encode()}
    await engine.append(UNREADABLE, length, [json.dumps(unknown).encode()], documents)


@pytest.mark.parametrize("engine", [MemoryEngine, DamagedEngine], ids=["unknown event", "damaged log"])
async def test_a_log_that_cannot_be_read_does_not_keep_others_from_being_followed(engine: type[MemoryEngine]) -> None:
    opened = engine()
    heard: list[Notification] = []
    other, ours = a_store(opened, lambda _: None), a_store(opened, heard.append)
    for name in (UNREADABLE, SOUND):
        await other.journal.create(a_session(name), e.StatusChanged(status=BUSY))
        await ours.journal.view(name)
    await write_of_a_newer_version(opened)
    if isinstance(opened, DamagedEngine):
        opened.is_damaged = True
    await other.journal.append(SOUND, e.SessionTitled(title="Followed"))
    await catch_up(ours, ())
    assert {one.session_id for one in heard} == {SOUND}

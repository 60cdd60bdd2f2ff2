"""Follow the writes of other processes to busy sessions, so that this process publishes them too."""

from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress

import anyio
import msgspec

from turnkeeper.core.entry import Damaged
from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.core.notify import open_turn
from turnkeeper.core.view import SessionView
from turnkeeper.model.message import UserMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.value import UNREADABLE, Value
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, EngineError, StoreDamaged, Watched
from turnkeeper.store.fanout import is_growing
from turnkeeper.store.store import Store

FOLLOWED_MAX = 128
"""How many sessions are polled although no process runs them."""

TURN_MESSAGES_MAX = 50
"""How many messages of a turn in another process are published at the first poll."""


class _Head(Value):
    """The field of a state document that has the length of the log."""

    seq: int


_read = msgspec.json.Decoder(_Head).decode


async def follow(
    store: Store,
    is_heard: Callable[[], bool],
    own: Callable[[], Collection[str]],
    sleep: Callable[[float], Awaitable[None]] = anyio.sleep,
) -> None:
    """Fold and publish the new events of sessions that other processes run, and their live deltas. Never ends.

    Nothing is read while there are no subscribers. ``own`` are the sessions of this process, whose events are published
    as they are written. A session that is not in memory is published from the first look on, with its open turn so far.
    """
    seen: int | None = None
    news = News(store.engine)
    while True:
        await news.wait(TAIL_POLL_S, sleep)
        store.journal.fanout.hear(wanted=is_heard())
        if not is_heard():
            continue
        try:
            version = await store.engine.version()
            if version != seen:
                await catch_up(store, own())
            seen = version
        except EngineError:
            seen = None


async def catch_up(store: Store, own: Collection[str], *, is_heard: bool = True) -> None:
    """Fold what other processes wrote, and publish it if ``is_heard``.

    Before the first subscriber it is not published: that one gets no events of turns that had ended before.
    """
    at_work = {key[-1] for key, _ in await store.engine.scan(("busy",))}
    # One may have begun and come to rest between two looks; then it is among those that were used last.
    looked_at = sorted(at_work.union(store.journal.cache.newest(FOLLOWED_MAX)).difference(own))
    states = await store.engine.get([keys.state(session_id) for session_id in looked_at]) if looked_at else []
    for session_id, stored in zip(looked_at, states, strict=True):
        known = store.journal.cache.view(session_id)
        # One that cannot be read must not keep the others from being followed; ``doctor`` reports it.
        with suppress(NotFound, Damaged, StoreDamaged, *UNREADABLE):
            if known is None or (stored is not None and _read(stored).seq > known.seq):
                view = await store.journal.view(session_id)
                if is_heard and known is None and session_id in at_work:
                    store.journal.publisher.publish(await _turn_so_far(store, view))
                    store.journal.fanout.announce(view)


async def _turn_so_far(store: Store, view: SessionView) -> list[Notification]:
    """The notifications of a run that began before the first poll: its prompt, steps and calls.

    Texts that still grow are left out: the fanout publishes them, with their lengths so far.
    """
    found = (await store.queries.messages(view.session.id, limit=TURN_MESSAGES_MAX)).items
    last, open_parts = (view.turn.message.id, view.turn.parts) if view.turn is not None else (None, {})
    first = max((place for place, one in enumerate(found) if isinstance(one.info, UserMessage)), default=0)
    known = {id for id, part in open_parts.items() if not is_growing(part)}
    told = [
        one if one.info.id != last else one.but(parts=tuple(part for part in one.parts if part.id in known))
        for one in found[first:]
    ]
    return open_turn(view.session, view.status, [*told, *await store.queries.waiting(view.session.id)])


class News:
    """Wakes waiters as soon as the engine reports a write of another process; some engines cannot."""

    def __init__(self, engine: Engine) -> None:
        self._heard = anyio.Event()
        if isinstance(engine, Watched):
            engine.watch(lambda _: self._heard.set())

    async def wait(self, seconds: float, sleep: Callable[[float], Awaitable[None]] = anyio.sleep) -> None:
        """Wait for a report of the engine, at most for ``seconds``."""

        async def time_out() -> None:
            await sleep(seconds)
            self._heard.set()

        async with anyio.create_task_group() as group:
            group.start_soon(time_out)
            await self._heard.wait()
            group.cancel_scope.cancel()
        self._heard = anyio.Event()

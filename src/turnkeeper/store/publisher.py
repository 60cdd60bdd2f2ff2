"""Publisher: derives the notifications of a journal's events, with blobs in place of their marks."""

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeAlias

from turnkeeper.core import blobs
from turnkeeper.core.entry import Recorded
from turnkeeper.core.notify import grown, notify, spelt_out
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.value import encode
from turnkeeper.store.batch import Step
from turnkeeper.store.blob_lookup import find_blobs
from turnkeeper.store.engine import Engine

log = logging.getLogger(__name__)


class ReadLog(Protocol):
    """A function that reads events of a session's log."""

    async def __call__(self, session_id: str, *, after: int = 0, limit: int | None = None) -> list[Recorded]:
        """Events from ``after + 1`` on."""


Deriver: TypeAlias = Callable[[ReadLog, Step], Awaitable[Sequence[Notification]]]
"""A function that makes further notifications of an event. It may read the log."""


class Publisher:
    """Derives notifications and publishes them."""

    def __init__(
        self,
        engine: Engine,
        read: ReadLog,
        publish: Callable[[Notification | Delta], None],
        is_heard: Callable[[], bool],
    ) -> None:
        self._engine, self._read, self._publish, self._is_heard = engine, read, publish, is_heard
        self._derivers: Counter[Deriver] = Counter()

    def add(self, derive: Deriver) -> None:
        """Publish the notifications that ``derive`` makes of each event, before the event's own notifications.

        A deriver that is added twice runs once for each event, until it is removed twice.
        """
        self._derivers[derive] += 1

    def remove(self, derive: Deriver) -> None:
        """Undo one ``add``."""
        self._derivers -= Counter([derive])

    async def derived(
        self, steps: Sequence[Step], lifted: dict[str, bytes] | None = None, *, with_deltas: bool = False
    ) -> list[Notification | Delta]:
        """The notifications of these events; empty without a subscriber, because a fork has thousands of events.

        ``lifted`` are blobs that the same append wrote. ``with_deltas``: also the text that open parts got, which this
        process may not have streamed.
        """
        if not self._is_heard():
            return []
        found: list[Notification | Delta] = []
        for step in steps:
            for derive in tuple(self._derivers):
                found.extend(await self._derived_by(derive, step))
            if with_deltas:
                found.extend(grown(step.after.session, step.after.turn, step.changes))
            found.extend(notify(step.after.session, step.recorded, step.changes, step.link))
        return await self._with_blobs(found, lifted or {})

    def publish(self, notifications: Sequence[Notification | Delta]) -> None:
        """Pass notifications to the bus."""
        for notification in notifications:
            self._publish(notification)

    async def _derived_by(self, derive: Deriver, step: Step) -> Sequence[Notification]:
        try:
            return await derive(self._read, step)
        except Exception:
            # The event is durable, so a failing deriver must not raise to the writer.
            log.exception("nothing was derived from event %s of %s", step.recorded.seq, step.after.session.id)
            return ()

    async def _with_blobs(
        self, notifications: list[Notification | Delta], lifted: dict[str, bytes]
    ) -> list[Notification | Delta]:
        # A delta has its text itself.
        marked = [one for one in notifications if isinstance(one, Notification)]
        wanted = {name for one in marked for name in blobs.references(encode(one))}
        if not wanted:
            return notifications
        try:
            found = await find_blobs(self._engine, wanted, lifted)
        except Exception:
            # The events are durable: an error here would make the writer append them again.
            log.exception("notifications are published without %d long texts, which could not be read", len(wanted))
            found = lifted
        texts = {name: body.decode("utf-8", "surrogatepass") for name, body in found.items()}
        return [spelt_out(one, texts) if isinstance(one, Notification) else one for one in notifications]

"""View cache: the session views that a journal keeps in memory, bounded by least recent use."""

from collections import OrderedDict
from collections.abc import Collection

import anyio

from turnkeeper.core.limits import VIEWS_CACHED_MAX
from turnkeeper.core.view import SessionView


class Slot:
    """One session in memory: its lock, and its view once loaded."""

    def __init__(self) -> None:
        self.lock = anyio.Lock(fast_acquire=True)
        self.view: SessionView | None = None
        self.head = ""
        self.last: bytes | None = None
        """The newest entry, if this process read or wrote it: the engine compares it to detect an outdated view."""
        self._grown: anyio.Event | None = None  # Made by a tail that waits; most sessions have none.

    def set(self, view: SessionView | None, head: str, last: bytes | None) -> None:
        """Replace the view."""
        self.view, self.head, self.last = view, head, last

    def drop(self) -> None:
        """Forget the view and its hash: a session created again under the same id has another chain."""
        self.set(None, "", None)

    def next_growth(self) -> anyio.Event:
        """An event that is set at the next append."""
        self._grown = self._grown or anyio.Event()
        return self._grown

    def is_in_use(self) -> bool:
        """Whether a task holds the lock, or waits for it or for the next append."""
        holders = self.lock.statistics()
        is_awaited = self._grown is not None and self._grown.statistics().tasks_waiting > 0
        return holders.locked or holders.tasks_waiting > 0 or is_awaited

    def wake(self) -> None:
        """Wake the waiting tails."""
        if self._grown is not None:
            self._grown.set()
            self._grown = None


class ViewCache:
    """Slots by session, bounded."""

    def __init__(self) -> None:
        self._slots: OrderedDict[str, Slot] = OrderedDict()

    def __len__(self) -> int:
        return len(self._slots)

    def slot(self, session_id: str) -> Slot:
        """The slot of a session; created if there is none."""
        slot = self._slots.get(session_id)
        if slot is None:
            slot = self._slots[session_id] = Slot()
            self._evict()
        else:
            self._slots.move_to_end(session_id)
        return slot

    def view(self, session_id: str) -> SessionView | None:
        """The view in memory, if there is one."""
        slot = self._slots.get(session_id)
        return slot.view if slot is not None else None

    def wake(self, session_ids: Collection[str] | None) -> None:
        """Wake the tails of sessions that another process has written; None is all of them."""
        for session_id in self._slots if session_ids is None else session_ids:
            if (slot := self._slots.get(session_id)) is not None:
                slot.wake()

    def newest(self, limit: int) -> list[str]:
        """The sessions in memory that were used last."""
        return [session_id for session_id, slot in list(self._slots.items())[-limit:] if slot.view is not None]

    def forget(self, session_id: str) -> None:
        """Drop a session that was removed."""
        slot = self._slots.pop(session_id, None)
        if slot is not None:
            slot.drop()
            slot.wake()

    def _evict(self) -> None:
        """Drop the least recently used slots that are not in use."""
        if len(self._slots) <= VIEWS_CACHED_MAX:
            return
        *older, _ = self._slots  # The newest is about to be used.
        for session_id in older:
            if len(self._slots) <= VIEWS_CACHED_MAX:
                return
            if not self._slots[session_id].is_in_use():
                del self._slots[session_id]

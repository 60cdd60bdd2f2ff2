"""Batch: folds the events of one append into entries, documents, blobs and steps."""

from typing import NamedTuple

from turnkeeper.core import blobs, entry
from turnkeeper.core.changes import Change
from turnkeeper.core.entry import Recorded
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.core.projector import apply
from turnkeeper.core.view import SessionView
from turnkeeper.model.event import Event, PartExtended
from turnkeeper.model.value import encode
from turnkeeper.store import keys
from turnkeeper.store.document_writes import DocumentWrites


class Step(NamedTuple):
    """One event, its changes, and the view after it: the input of notifications."""

    recorded: Recorded
    changes: tuple[Change, ...]
    after: SessionView
    link: str
    """The hash of the event's entry."""


class Batch:
    """The events of one append, folded one by one."""

    def __init__(self, session_id: str, view: SessionView | None, head: str, time: int, known: set[str] | None) -> None:
        self._session_id, self._time = session_id, time
        self._known = known
        """The blobs that the events may refer to; None if they contain no mark."""
        self.view, self.head = view, head
        self.entries: list[bytes] = []
        self.steps: list[Step] = []
        self.writes = DocumentWrites()
        self.blobs: dict[str, bytes] = {}

    def add(self, event: Event, body: bytes) -> None:
        """Fold one event. ``body`` is its JSON."""
        if self._known is not None or len(body) >= BLOB_CHARS_MIN:
            event, body = self._lifted(event, body)
        recorded = Recorded(self.view.seq + 1 if self.view else 1, self._time, event)
        written = entry.write(recorded, self.head, body)
        after, changes = apply(self.view, recorded)
        for change in changes:
            self.writes.of_change(self._session_id, recorded.seq, change)
        link = entry.digest(written)
        self.steps.append(Step(recorded, changes, after, link))
        self.entries.append(written)
        self.view, self.head = after, link

    def _lifted(self, event: Event, body: bytes) -> tuple[Event, bytes]:
        """The event with marks in place of its long strings, and its JSON."""
        # The text of a PartExtended is appended to other text, where a mark would not be recognised.
        if not isinstance(event, PartExtended):
            event, found = blobs.lift(event, body, self._known or frozenset())
            if found:
                body = encode(event)
                self.blobs.update(found)
                self.writes.documents.update({keys.blob(name): content for name, content in found.items()})
        self.writes.of_blobs(self._session_id, body)
        return event, body

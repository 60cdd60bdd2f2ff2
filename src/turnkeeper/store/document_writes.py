"""Which documents and search texts an append writes.

Documents are derived: folding the whole log writes equal documents, and ``doctor`` checks that.
"""

from typing import assert_never

from turnkeeper.core import blobs
from turnkeeper.core import changes as c
from turnkeeper.core.changes import Change
from turnkeeper.core.limits import TEXT_INDEXED_MAX
from turnkeeper.core.restores import is_open
from turnkeeper.core.search_text import named_title, searchable
from turnkeeper.core.view import Admitted, OpenTurn, SessionView
from turnkeeper.model.message import Message
from turnkeeper.model.parts import Part
from turnkeeper.model.session import Session
from turnkeeper.model.status import Idle
from turnkeeper.model.value import encode
from turnkeeper.store import keys
from turnkeeper.store.documents import SHAPE, Listing, SessionAsks, State, StoredReceipt, small_fields
from turnkeeper.store.engine import Key


class DocumentWrites:
    """The documents and search texts that one append writes; None removes."""

    def __init__(self) -> None:
        self.documents: dict[Key, bytes | None] = {}
        self.texts: dict[Key, str | None] = {}

    def of_change(self, session_id: str, seq: int, change: Change) -> None:
        """Add the documents of one change, without those of the view. ``seq`` is the seq of the event."""
        match change:
            case c.MessagePut(message=message, parts=parts):
                self._message(message)
                for part in parts:
                    self._part(part)
            case c.ContextPut(message=message) | c.TurnOpened(message=message):
                self._message(message)
            case c.TurnClosed(message=message, turn=turn):
                self._message(message)
                # The view forgets the pieces when the turn ends, so their parts are written whole.
                for part_id in turn.extended:
                    self._pieces_gone(turn, part_id)
                    self._part(turn.parts[part_id], was_indexed=True)
            case c.PartPut(part=part, turn=turn):
                self._pieces_gone(turn, part.id)
                self._part(part, was_indexed=turn is None)
            case c.PartGrown(message_id=message_id, part_id=part_id, offset=offset, text=text):
                self.documents[keys.extension(message_id, part_id, offset)] = encode(text)
            case c.PartGone(message_id=message_id, part_id=part_id, turn=turn):
                self._part_gone(session_id, message_id, part_id, turn)
            case c.MessageGone(message_id=message_id, seq=place, part_ids=part_ids, turn=turn):
                self.documents[keys.message(session_id, message_id)] = None
                self.documents[keys.order(session_id, place)] = None
                for part_id in part_ids:
                    self._part_gone(session_id, message_id, part_id, turn)
            case c.PromptPut(prompt=prompt, digest=digest):
                admission = StoredReceipt(
                    session_id=session_id, seq=prompt.seq, delivery=prompt.delivery, digest=digest
                )
                self.documents[keys.receipt(prompt.message.id)] = encode(admission)
            case c.Spent(row=row):
                self.documents[keys.ledger(session_id, seq)] = encode(row)
            case c.DiffsPut(diffs=diffs):
                self.documents[keys.diff(session_id)] = None if diffs is None else encode(diffs)
            case (
                c.SessionPut()
                | c.DirectoryPut()
                | c.AgentPut()
                | c.ModelPut()
                | c.RevertPut()
                | c.RevertGone()
                | c.TodosPut()
                | c.StatusPut()
                | c.PromptGone()
                | c.PartsRejected()
                | c.AskPut()
                | c.AskAnswered()
                | c.AskGone()
            ):
                pass  # Part of the view, whose documents ``of_view`` writes once for the whole append.
            case _:
                assert_never(change)

    def of_blobs(self, session_id: str, body: bytes) -> None:
        """Add index keys for the blobs that the JSON of an event refers to."""
        for name in blobs.references(body):
            self.documents[keys.blob_user(name, session_id)] = b"{}"
            self.documents[keys.blob_used(session_id, name)] = b"{}"

    def of_view(self, before: SessionView | None, after: SessionView, head: str) -> None:
        """Add the documents of the view that the append changes. ``head`` is the hash of the log's last entry."""
        session = after.session
        if before is None or before.session is not session:
            self._session(before.session if before is not None else None, session)
        if before is None or before.inbox is not after.inbox:
            self._inbox(before.inbox if before is not None else (), after.inbox, session.id)
        if (before.todos if before else ()) is not after.todos:
            self.documents[keys.todo(session.id)] = encode(after.todos) if after.todos else None
        if (before.epoch if before else None) is not after.epoch:
            self.documents[keys.epoch(session.id)] = None if after.epoch is None else encode(after.epoch)
        if _asks_of(before) != (asks := _asks_of(after)):
            self.documents[keys.asks(session.id)] = None if asks is None else encode(asks)
        if (before.restore if before else None) is not after.restore:
            self.documents[keys.restore(session.id)] = None if after.restore is None else encode(after.restore)
        if (before.hosted if before else None) is not after.hosted:
            self.documents[keys.hosted(session.id)] = None if after.hosted is None else encode(after.hosted)
        if _at_work(before) != _at_work(after):
            self.documents[keys.busy(session.id)] = b"{}" if _at_work(after) else None
        turn = after.turn.message.id if after.turn else None
        state = State(head=head, project_id=session.project_id, turn=turn, shape=SHAPE, **small_fields(after))
        self.documents[keys.state(session.id)] = encode(state)

    def _session(self, before: Session | None, after: Session) -> None:
        if before is not None:  # Keys that do not change are written again below.
            self.documents[keys.session(before.project_id, before.id)] = None
            self.documents.update(dict.fromkeys(keys.places(before)))
        listing = encode(
            Listing(
                title=after.title,
                created=after.time.created,
                parent=after.parent_id is not None,
                archived=after.time.archived is not None,
            )
        )
        self.documents[keys.session(after.project_id, after.id)] = encode(after)
        self.documents.update(dict.fromkeys(keys.places(after), listing))
        title = named_title(after)
        if title != (named_title(before) if before is not None else None):
            self.texts[keys.text(after.id, "title")] = title
        if (before.share if before else None) != after.share:
            self.documents[keys.share(after.id)] = encode(after.share) if after.share else None

    def _inbox(self, before: tuple[Admitted, ...], after: tuple[Admitted, ...], session_id: str) -> None:
        for prompt in before:
            if prompt not in after:
                self.documents[keys.inbox(session_id, prompt.message.id)] = None
        for prompt in after:
            if prompt not in before:
                self.documents[keys.inbox(session_id, prompt.message.id)] = encode(prompt)

    def _message(self, message: Message) -> None:
        self.documents[keys.message(message.session_id, message.id)] = encode(message)
        self.documents[keys.order(message.session_id, message.seq)] = encode(message.id)

    def _part(self, part: Part, *, was_indexed: bool = False) -> None:
        self.documents[keys.part(part.message_id, part.id)] = encode(part)
        text = searchable(part)
        if text or was_indexed:
            key = keys.text(part.session_id, part.message_id, part.id)
            self.texts[key] = text[:TEXT_INDEXED_MAX] if text else None

    def _part_gone(self, session_id: str, message_id: str, part_id: str, turn: OpenTurn | None) -> None:
        self._pieces_gone(turn, part_id)
        self.documents[keys.part(message_id, part_id)] = None
        self.texts[keys.text(session_id, message_id, part_id)] = None

    def _pieces_gone(self, turn: OpenTurn | None, part_id: str) -> None:
        """Remove the pieces of text that were added to an open part."""
        if turn is not None:
            for offset in turn.extended.get(part_id, ()):
                self.documents[keys.extension(turn.message.id, part_id, offset)] = None


def _asks_of(view: SessionView | None) -> SessionAsks | None:
    if view is None or not view.asks:
        return None
    return SessionAsks(directory=view.session.directory, asks=view.asks)


def _at_work(view: SessionView | None) -> bool:
    """Whether a process runs the session, or died while it ran it, or Child Sessions work for it."""
    if view is None:
        return False
    return view.turn is not None or not isinstance(view.status, Idle) or is_open(view) or bool(view.children)

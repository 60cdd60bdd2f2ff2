"""Fold the log of a session: its expected documents, and the first damaged event."""

from typing import NamedTuple

from turnkeeper.core import blobs, entry
from turnkeeper.core.entry import Damaged
from turnkeeper.core.projector import apply
from turnkeeper.core.search_text import named_title
from turnkeeper.core.view import SessionView
from turnkeeper.sessions.diagnosis import ProblemKind
from turnkeeper.store import documents, keys
from turnkeeper.store.document_writes import DocumentWrites
from turnkeeper.store.engine import Engine, Key

PAGE = 1000
"""How many entries are read at once."""


class Damage(NamedTuple):
    """The first damaged event of a log, and the reason."""

    kind: ProblemKind
    seq: int
    reason: str


class Fold:
    """The fold of a log up to ``seq``. ``read_on`` continues from there, so new entries are read once."""

    def __init__(self, engine: Engine, session_id: str) -> None:
        self._engine, self._session_id = engine, session_id
        self._writes = DocumentWrites()
        self.view: SessionView | None = None
        self.head = entry.genesis(session_id)
        self.seq = 0
        self.damage: Damage | None = None
        self.blobs: dict[str, int] = {}
        """The blobs that the log refers to, with the number of the first event that does."""

    async def read_on(self, *, until: int | None = None) -> None:
        """Fold to the end of the log, to the event ``until``, or to the first damaged event."""
        while self.damage is None:
            most = PAGE if until is None else min(PAGE, until - self.seq)
            entries = await self._engine.read(self._session_id, after=self.seq, limit=most) if most else []
            for number, one in enumerate(entries):
                if (damage := self._take(one)) is not None:
                    following = entries[number + 1] if number + 1 < len(entries) else None
                    self.damage = await self._located(damage, one, following)
                    return
            if len(entries) < most or not entries:
                return

    def documents(self) -> dict[Key, bytes]:
        """All documents that follow from the log."""
        whole = DocumentWrites()
        whole.documents.update(self._writes.documents)
        if self.view is not None:
            whole.of_view(None, self.view, self.head)
        for name in self.blobs:
            whole.documents[keys.blob_user(name, self._session_id)] = b"{}"
            whole.documents[keys.blob_used(self._session_id, name)] = b"{}"
        return {key: body for key, body in whole.documents.items() if body is not None}

    def texts(self) -> dict[Key, str]:
        """All texts that the search index should have, with references for blobs."""
        title = named_title(self.view.session) if self.view else None
        titled = {keys.text(self._session_id, "title"): title} if title is not None else {}
        return {**titled, **{key: text for key, text in self._writes.texts.items() if text}}

    def _take(self, one: bytes) -> Damage | None:
        """Fold an entry; its damage if it cannot be folded."""
        seq = self.seq + 1
        try:
            recorded, claimed = entry.read(one, seq)
        except Damaged as error:
            return Damage("unreadable entry", seq, error.reason)
        if claimed != self.head:
            return Damage("altered entry", seq, "it does not follow from the event before it")
        try:
            after, changes = apply(self.view, recorded)
        except Damaged as error:
            return Damage("impossible event", seq, error.reason)
        for change in changes:
            self._writes.of_change(self._session_id, seq, change)
        self.view, self.head, self.seq = after, entry.digest(one), seq
        for name in blobs.references(one):
            self.blobs.setdefault(name, seq)
        return None

    async def _located(self, damage: Damage, bad: bytes, following: bytes | None) -> Damage:
        """The damage at the altered entry: the one whose hash differs from the hash in the next entry."""
        if damage.kind == "unreadable entry":
            return damage
        is_vouched_for = await self._vouched(damage.seq, bad, following)
        if damage.kind == "impossible event":
            return damage if is_vouched_for else damage._replace(kind="altered entry")
        if is_vouched_for and damage.seq > 1:
            return Damage("altered entry", damage.seq - 1, "the event after it carries another hash")
        return damage

    async def _vouched(self, seq: int, one: bytes, following: bytes | None) -> bool:
        """Whether the next entry, or the state document for the last entry, has the hash of this entry."""
        if following is None:
            found = await self._engine.read(self._session_id, after=seq, limit=1)
            following = found[0] if found else None
        if following is not None:
            try:
                return entry.read(following, seq + 1)[1] == entry.digest(one)
            except Damaged:
                return False
        [stored] = await self._engine.get([keys.state(self._session_id)])
        state = documents.state_or_none(stored)
        return state is not None and state.seq == seq and state.head == entry.digest(one)

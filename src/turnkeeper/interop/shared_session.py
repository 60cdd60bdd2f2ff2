"""SharedSession: what a link shows at this moment, redacted. Messages that have not changed are not redacted again."""

from collections.abc import Mapping, Sequence
from functools import partial
from hashlib import sha256
from typing import Final, NamedTuple

import anyio
from anyio import to_thread

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import export, redacted, redacting
from turnkeeper.interop.page.articles import Article, article
from turnkeeper.interop.raw import plain
from turnkeeper.interop.share_items import bounded, message_item, part_item, session_item
from turnkeeper.interop.shown import shown
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.session import Session
from turnkeeper.model.share import HostedShare
from turnkeeper.model.value import encode
from turnkeeper.store.store import Store

AT_ONCE: Final = 200
"""Messages that a thread redacts before others may have it."""


class Item(NamedTuple):
    """A piece of what a link shows. ``key`` stays the same when it changes."""

    key: str
    type: str
    data: object

    @property
    def digest(self) -> str:
        """What differs if the piece does."""
        return sha256(encode(self.data)).hexdigest()[:16]


class SharedMessage(NamedTuple):
    """A message as it is shown, and the hash of what it was made from."""

    source: bytes
    items: tuple[Item, ...]
    article: Article | None


class SharedView(NamedTuple):
    """The content of a link after event ``seq`` of the session."""

    seq: int
    title: str
    items: tuple[Item, ...]
    articles: tuple[Article, ...]


class SharedSession:
    """The session behind one link."""

    def __init__(self, store: Store, environ: Mapping[str, str], hosted: HostedShare) -> None:
        self._store, self._environ, self.hosted = store, environ, hosted
        self._redactor: Redactor | None = None
        self._messages: dict[str, SharedMessage] = {}
        self._view: SharedView | None = None
        self._lock = anyio.Lock()

    async def view(self) -> SharedView:
        """The current content of the link. Raises NotFound if the session was removed."""
        async with self._lock:
            seq = (await self._store.queries.state(self.hosted.id)).seq
            if self._view is None or self._view.seq != seq:
                self._view = await self._made(seq)
            return self._view

    async def _made(self, seq: int) -> SharedView:
        session = await self._store.queries.session(self.hosted.id)
        if self._redactor is None:
            self._redactor = await redacting.redactor(self._store, session.id, self._environ, known=self.hosted.masks)
        view = await self._shown(session, self._redactor, seq)
        if self._redactor.has_news:  # A secret that was found only now may also stand in earlier messages.
            self._redactor.learn()
            view = await self._shown(session, self._redactor, seq, has_learnt=True)
        return view

    async def _shown(self, session: Session, mask: Redactor, seq: int, *, has_learnt: bool = False) -> SharedView:
        include = self.hosted.include
        info = redacted.session(mask, session_item(export.session_json(session), include))
        history = [one async for one in shown(self._store, session, [])]
        kept: dict[str, SharedMessage] = {}
        for begin in range(0, len(history), AT_ONCE):
            some = history[begin : begin + AT_ONCE]
            kept |= await to_thread.run_sync(partial(self._redacted, mask, some, has_learnt=has_learnt))
        self._messages = kept
        items = [Item("session", "session", info), *(item for one in kept.values() for item in one.items)]
        if "diffs" in include:
            diffs = mask.json(plain(await self._store.queries.diffs(session.id)), "diffs")
            items.append(Item("session_diff", "session_diff", diffs))
        if "todos" in include:
            todos = mask.json(plain(await self._store.queries.todos(session.id)), "todos")
            items.append(Item("todo", "todo", todos))
        articles = tuple(one.article for one in kept.values() if one.article is not None)
        return SharedView(seq, str(info.get("title", "")), tuple(items), articles)

    def _redacted(
        self, mask: Redactor, some: Sequence[tuple[int, MessageWithParts]], *, has_learnt: bool
    ) -> dict[str, SharedMessage]:
        """Messages as they are shown. Those that have not changed are kept, unless the redactor has learnt more."""
        made: dict[str, SharedMessage] = {}
        for number, message in some:
            source, known = sha256(encode(message)).digest(), self._messages.get(message.info.id)
            if known is None or known.source != source or has_learnt:
                known = self._message(mask, message, source, known, f"message {number}")
            made[message.info.id] = known
        return made

    def _message(
        self, mask: Redactor, message: MessageWithParts, source: bytes, before: SharedMessage | None, place: str
    ) -> SharedMessage:
        include, json = self.hosted.include, export.message_json(message)
        chosen = [part for one in json["parts"] if (part := part_item(one, include)) is not None]
        made = redacted.message(mask, {"info": message_item(json["info"], include), "parts": chosen}, place)
        made["parts"] = [bounded(part, include) for part in made["parts"]]
        info = made["info"]
        items = (
            Item(f"message/{info['id']}", "message", info),
            *(Item(f"part/{info['id']}/{part['id']}", "part", part) for part in made["parts"]),
        )
        if before is not None and before.items == items:
            return SharedMessage(source, items, before.article)
        return SharedMessage(source, items, article(made, str(info["id"])))

"""SharedSession: what a link shows at this moment, redacted. Messages that have not changed are not redacted again."""

from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import NamedTuple

import anyio
from anyio import to_thread

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import export, redacted, redacting
from turnkeeper.interop.page.articles import Article, article
from turnkeeper.interop.raw import RawObject, plain
from turnkeeper.interop.share_items import bounded, message_item, part_item, session_item
from turnkeeper.interop.shown import shown
from turnkeeper.model.session import Session
from turnkeeper.model.share import HostedShare
from turnkeeper.model.value import encode
from turnkeeper.store.store import Store


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
    """A message as it is shown, and what it was made from."""

    source: bytes
    items: tuple[Item, ...]
    article: Article | None


class SharedView(NamedTuple):
    """What a link shows after event ``seq`` of the session."""

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
        """What the link shows now. Raises NotFound if the session was removed."""
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
            self._messages.clear()
            view = await self._shown(session, self._redactor, seq)
        return view

    async def _shown(self, session: Session, mask: Redactor, seq: int) -> SharedView:
        include = self.hosted.include
        info = redacted.session(mask, session_item(export.session_json(session), include))
        items = [Item("session", "session", info)]
        articles: list[Article] = []
        kept: dict[str, SharedMessage] = {}
        async for number, message in shown(self._store, session, []):
            json = export.message_json(message)
            source, before = encode(json), self._messages.get(message.info.id)
            if before is None or before.source != source:
                before = await to_thread.run_sync(partial(self._message, mask, json, source, f"message {number}"))
            kept[message.info.id] = before
            items += before.items
            articles += [before.article] if before.article is not None else []
        self._messages = kept
        if "diffs" in include:
            diffs = mask.json(plain(await self._store.queries.diffs(session.id)), "diffs")
            items.append(Item("session_diff", "session_diff", diffs))
        if "todos" in include:
            todos = mask.json(plain(await self._store.queries.todos(session.id)), "todos")
            items.append(Item("todo", "todo", todos))
        return SharedView(seq, str(info.get("title", "")), tuple(items), tuple(articles))

    def _message(self, mask: Redactor, json: RawObject, source: bytes, place: str) -> SharedMessage:
        include = self.hosted.include
        chosen = [part for one in json["parts"] if (part := part_item(one, include)) is not None]
        made = redacted.message(mask, {"info": message_item(json["info"], include), "parts": chosen}, place)
        made["parts"] = [bounded(part, include) for part in made["parts"]]
        info = made["info"]
        items = [Item(f"message/{info['id']}", "message", info)]
        items += [Item(f"part/{info['id']}/{part['id']}", "part", part) for part in made["parts"]]
        return SharedMessage(source, tuple(items), article(made, str(info["id"])))

"""Reads a session in the shapes of the second generation: pages of messages, the context, a message."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Literal, TypeAlias, TypeVar

from turnkeeper.core import entry
from turnkeeper.core.entry import Recorded
from turnkeeper.core.projector import SELECTIONS_MAX, is_for_prompt
from turnkeeper.core.view import Admitted
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import Value
from turnkeeper.server.errors import InvalidCursor, Missing
from turnkeeper.server.v2.message import CompactionSaid, ShownMessage, said_by, switch
from turnkeeper.store.cursor import cursor, place_of
from turnkeeper.store.message_reader import place_cursor
from turnkeeper.store.store import Store

P = TypeVar("P", bound=Value)

Order: TypeAlias = Literal["asc", "desc"]

TAIL_LENGTH = 14

_ABOUT_SWITCHES = (e.AgentSelected.KIND, e.ModelSelected.KIND, "prompt.")
"""Kinds of entries that are switches, or that show that a switch belongs to an admitted prompt."""


class MessageCursor(Value):
    """The position between two pages of messages."""

    seq: int
    order: Order
    direction: Literal["next", "previous"]


class Cursors(Value):
    """Cursors to the neighbouring pages."""

    previous: str | None = None
    next: str | None = None


class MessagesPage(Value, omit_defaults=False):
    """A page of messages in the requested order."""

    data: tuple[ShownMessage, ...]
    cursor: Cursors


def decode_cursor(text: str, kind: type[P]) -> P:
    """The position that a cursor holds. Raises InvalidCursor for any other text."""
    try:
        return place_of(text, kind)
    except Invalid as error:
        raise InvalidCursor("Invalid cursor") from error


async def messages(
    store: Store, session_id: str, *, limit: int, order: Order, place: MessageCursor | None
) -> MessagesPage:
    """A page of messages. A cursor holds its order; to page backwards, the history is read in the other direction."""
    await store.queries.state(session_id)
    if place is not None:
        order = place.order
    is_back = place is not None and place.direction == "previous"
    is_newest_first = (order == "desc") != is_back
    found: list[tuple[int, ShownMessage]] = []
    async for one in _items(store, session_id, place.seq if place else None, newest_first=is_newest_first):
        found.append(one)
        if len(found) > limit:
            break
    has_more, found = len(found) > limit, found[:limit]
    if is_back:
        found.reverse()
    if not found:
        return MessagesPage(data=(), cursor=Cursors())
    previous = cursor(MessageCursor(seq=found[0][0], order=order, direction="previous"))
    following = cursor(MessageCursor(seq=found[-1][0], order=order, direction="next"))
    is_last = not has_more and not is_back
    is_first = place is None or (is_back and not has_more)
    return MessagesPage(
        data=tuple(one for _, one in found),
        cursor=Cursors(previous=None if is_first else previous, next=None if is_last else following),
    )


async def context(store: Store, session_id: str) -> list[ShownMessage]:
    """The newest summary and the messages after it, oldest first."""
    await store.queries.state(session_id)
    found: list[ShownMessage] = []
    async for _, one in _items(store, session_id, None, newest_first=True):
        found.append(one)
        if isinstance(one, CompactionSaid):
            break
    return found[::-1]


async def message(store: Store, session_id: str, message_id: str) -> ShownMessage:
    """A message, or a switch of agent or model as a message."""
    await store.queries.state(session_id)
    try:
        found = await store.queries.message(session_id, message_id)
    except NotFound:
        shown = await _switch_under(store, session_id, message_id)
    else:
        shown = await _shown(store, session_id, found)
    if shown is None:
        raise Missing("Message", message_id)
    return shown


async def _items(
    store: Store, session_id: str, seq: int | None, *, newest_first: bool
) -> AsyncIterator[tuple[int, ShownMessage]]:
    """Messages and switches beyond a seq, each with its own seq."""
    edge = seq
    while True:
        at = place_cursor(edge) if edge is not None else None
        if newest_first:
            page = await store.queries.messages(session_id, before=at)
        else:
            page = await store.queries.messages(session_id, after=at or place_cursor(0))
        history = list(page.items)[:: -1 if newest_first else 1]
        is_last = (page.older if newest_first else page.newer) is None
        far = history[-1].info.seq if history and not is_last else None
        items = [
            (one.info.seq, shown) for one in history if (shown := await _shown(store, session_id, one)) is not None
        ]
        low, high = (far, edge) if newest_first else (edge, far)
        items += await _switches(store, session_id, low, high)
        for item in sorted(items, key=lambda item: item[0], reverse=newest_first):
            yield item
        if is_last:
            return
        edge = far


async def _shown(store: Store, session_id: str, one: MessageWithParts) -> ShownMessage | None:
    asked: MessageWithParts | None = None
    if isinstance(one.info, AssistantMessage) and one.info.summary:
        with suppress(NotFound):
            asked = await store.queries.message(session_id, one.info.parent_id)
    return said_by(one, asked)


async def _switches(store: Store, session_id: str, low: int | None, high: int | None) -> list[tuple[int, ShownMessage]]:
    """Switches between two seqs, exclusive. Entries of other kinds are not decoded."""
    after = low or 0
    limit = high - after - 1 if high is not None else None
    if limit is not None and limit <= 0:
        return []
    # Read some entries before: an agent and a model that are selected right after an admission belong to it.
    begin = max(after - SELECTIONS_MAX, 0)
    entries = await store.engine.read(session_id, after=begin, limit=None if limit is None else limit + after - begin)
    found: list[tuple[int, ShownMessage]] = []
    newest: Admitted | None = None
    for seq, stored in enumerate(entries, begin + 1):
        if not entry.kind(stored).startswith(_ABOUT_SWITCHES):
            continue
        recorded = entry.read(stored, seq)[0]
        match recorded.event:
            case e.PromptAdmitted(message=message, parts=parts, delivery=delivery):
                newest = Admitted(seq=seq, message=message, parts=parts, delivery=delivery)
            case e.PromptPromoted() | e.PromptWithdrawn():
                newest = None
            case _:
                if seq > after and not is_for_prompt(newest, recorded) and (shown := switch(recorded)) is not None:
                    found.append((seq, shown))
    return found


async def _switch_under(store: Store, session_id: str, message_id: str) -> ShownMessage | None:
    tail = message_id[-TAIL_LENGTH:]
    if not tail.isdecimal() or len(message_id) != len("msg_") + 12 + TAIL_LENGTH or int(tail) < 1:
        return None
    found: list[Recorded] = await store.journal.read(session_id, after=int(tail) - 1, limit=1)
    shown = switch(found[0]) if found and isinstance(found[0].event, e.AgentSelected | e.ModelSelected) else None
    return shown if shown is not None and shown.id == message_id else None

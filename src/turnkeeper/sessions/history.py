"""Change single messages and parts of a history."""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from turnkeeper.core.storable import storable
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.parts import Part
from turnkeeper.model.refusal import Busy, Conflict, Invalid
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store

E = TypeVar("E", bound=Event)


async def update_part(store: Store, part: Part) -> Part:
    """Replace a part. It keeps its place. Raises NotFound if it does not exist."""
    storable(part, Part, "the part")  # type: ignore[arg-type]  # A union can be decoded, but is no class.

    async def facts() -> e.PartRecorded:
        before = await store.queries.part(part.message_id, part.id)
        if before.session_id != part.session_id:
            raise Invalid(f"part {part.id!r} belongs to session {before.session_id!r}, not to {part.session_id!r}")
        return e.PartRecorded(part=part.but(seq=before.seq, nth=before.nth))

    return (await _change_unmoved(store, part.session_id, facts)).part


async def remove_part(store: Store, session_id: str, message_id: str, part_id: str) -> None:
    """Remove a part from its message."""

    async def facts() -> e.PartRemoved:
        await store.queries.message(session_id, message_id)
        await store.queries.part(message_id, part_id)
        return e.PartRemoved(message_id=message_id, part_id=part_id)

    await _change_unmoved(store, session_id, facts)


async def remove_message(store: Store, session_id: str, message_id: str) -> None:
    """Remove a message and its parts from the history. Raises Busy while its turn is open."""

    async def facts() -> e.MessageRemoved:
        found = await store.queries.message(session_id, message_id)
        part_ids = tuple(part.id for part in found.parts)
        return e.MessageRemoved(message_id=message_id, seq=found.info.seq, part_ids=part_ids)

    def check(view: SessionView) -> None:
        if view.turn is not None and view.turn.message.id == message_id:
            raise Busy(f"message {message_id!r} is being written; abort the turn first")

    await _change_unmoved(store, session_id, facts, check)


async def _change_unmoved(
    store: Store,
    session_id: str,
    facts: Callable[[], Awaitable[E]],
    check: Callable[[SessionView], None] = lambda _: None,
) -> E:
    """Append an event that is derived from documents. If the log grows meanwhile, the event is derived again."""
    for _ in range(ATTEMPTS_MAX):
        seq = (await store.queries.state(session_id)).seq
        fact = await facts()

        def decide(view: SessionView, seq: int = seq, fact: E = fact) -> list[Event]:
            check(view)
            return [fact] if view.seq == seq else []

        if (await store.journal.change(session_id, decide)).events:
            return fact
    raise Conflict(f"session {session_id!r} is being written without pause; try again")

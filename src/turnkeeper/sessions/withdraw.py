"""Withdraw a prompt that waits in the inbox."""

from turnkeeper.core.view import Admitted, SessionView
from turnkeeper.model import event as e
from turnkeeper.model.event import Event
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.store import keys
from turnkeeper.store.engine import InvalidKey
from turnkeeper.store.store import Store


async def withdraw(store: Store, session_id: str, message_id: str) -> MessageWithParts:
    """Withdraw an admitted prompt and return it. Raises Conflict if it was promoted, NotFound if there is none.

    Its id stays used: the prompt, sent again under it, is not admitted a second time.
    """
    found: list[Admitted] = []

    def decide(view: SessionView) -> list[Event]:
        found[:] = [one for one in view.inbox if one.message.id == message_id]
        return [e.PromptWithdrawn(message_id=message_id)] if found else []

    await store.journal.change(session_id, decide)
    if found:
        return await store.queries.whole(MessageWithParts(info=found[0].message, parts=found[0].parts))
    if await _was_admitted(store, message_id):
        raise Conflict(f"prompt {message_id!r} does not wait any more; undo takes back what was promoted")
    raise NotFound(f"no prompt {message_id!r} waits in session {session_id!r}")


async def _was_admitted(store: Store, message_id: str) -> bool:
    try:
        [receipt] = await store.engine.get([keys.receipt(message_id)])
    except InvalidKey:  # It is empty, for example, so no prompt ever had it.
        return False
    return receipt is not None

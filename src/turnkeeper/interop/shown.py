"""The messages of a session that people are shown: without system messages, and without what a revert has set aside."""

from collections.abc import AsyncIterator

from turnkeeper.model.message import SystemMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.session import Session
from turnkeeper.store.damaged import DamagedNames
from turnkeeper.store.store import Store


async def shown(
    store: Store, session: Session, damaged: DamagedNames | None = None
) -> AsyncIterator[tuple[int, MessageWithParts]]:
    """The messages in order, each with its number in the history."""
    number, revert = 0, session.revert
    async for messages in store.queries.walk(session.id, damaged=damaged):
        for message in messages:
            number += 1
            is_last = revert is not None and message.info.id == revert.message_id
            if is_last and revert is not None and not revert.keeps_message:
                ids = [part.id for part in message.parts]
                if revert.part_id not in ids:
                    return
                message = message.but(parts=message.parts[: ids.index(revert.part_id)])
            if not isinstance(message.info, SystemMessage):
                yield number, message
            if is_last:
                return

"""Announcing: a new subscriber receives the requests that wait for the user.

opencode's terminal UI never asks for a list of them. Without this, a request that was made before the UI was attached,
or before the server was restarted, would not be shown.
"""

import logging
from contextlib import suppress
from typing import Final

from turnkeeper.api import Turnkeeper
from turnkeeper.core.notify import asked
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.refusal import NotFound, Refusal
from turnkeeper.server.streams.hub import Hub, Membership
from turnkeeper.store.damaged import UNREADABLE
from turnkeeper.store.engine import EngineError

log = logging.getLogger(__name__)

_ASKED: Final = frozenset({"permission.asked", "question.asked"})
_ANSWERED: Final = frozenset({"permission.replied", "question.replied", "question.rejected"})


async def announce(hub: Hub, member: Membership) -> bool:
    """Send the open requests to a subscriber, except those published while they are being read.

    Returns False if the store is not available now, so that the caller tries again.
    """
    heard: set[object] = set()

    def note(one: Notification | Delta) -> None:
        if one.type in _ASKED and isinstance(one, Notification):
            heard.add(one.properties["id"])
        elif one.type in _ANSWERED and isinstance(one, Notification):
            heard.add(one.properties["requestID"])

    listener = hub.turnkeeper.bus.listen(note)
    try:
        waiting = await _waiting(hub.turnkeeper)
    except EngineError as error:
        log.warning("requests that wait for the user are announced later: %s", error)
        return False
    except (Refusal, *UNREADABLE) as error:
        log.error("requests that wait for the user are not announced: %s", error)
        return True
    finally:
        listener.close()
    hub.offer(member, [one for one in waiting if one.properties["id"] not in heard])
    return True


async def _waiting(turnkeeper: Turnkeeper) -> list[Notification]:
    asks = [ask for one in await turnkeeper.store.queries.asks() for ask in one.asks if ask.reply is None]
    found: list[Notification] = []
    for ask in asks:
        with suppress(NotFound):  # The session was removed meanwhile.
            found.append(asked(await turnkeeper.get(ask.request.session_id), ask))
    return found

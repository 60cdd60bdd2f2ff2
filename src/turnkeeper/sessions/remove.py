"""Remove a session and all that belongs to it: children, messages, parts, blobs, share. Nothing is left."""

from collections.abc import Callable

from turnkeeper.core import entry
from turnkeeper.core.notify import deleted
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import Conflict, NotFound
from turnkeeper.model.session import Session
from turnkeeper.store import keys
from turnkeeper.store.engine import Key, LogConflict
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store


async def remove(store: Store, session_id: str, publish: Callable[[Notification], None]) -> list[Session]:
    """Remove a session with its descendants in one transaction; what was removed, children first."""
    for _ in range(ATTEMPTS_MAX):
        root = await store.queries.session(session_id)
        family = [*reversed(await store.queries.children(session_id, recursive=True)), root]
        try:
            await _remove(store, family)
        except (LogConflict, NotFound):
            continue  # Somebody wrote meanwhile: look again, so that nothing of it is left.
        for session in family:
            store.journal.forget(session.id)
            publish(deleted(session))
        return family
    raise Conflict(f"session {session_id!r} is being written without pause; stop what writes to it and try again")


async def _remove(store: Store, family: list[Session]) -> None:
    logs: dict[str, int] = {}
    prefixes: list[Key] = []
    orphans: dict[Key, Key] = {}
    for one in family:
        # The length first: what is written after it makes the removal be refused, and so nothing is overlooked.
        logs[one.id] = await store.engine.length(one.id)
        session = await store.queries.session(one.id)
        prefixes.extend(keys.of_session(session))
        prefixes.extend(keys.places(session))
        messages = [key[-1] for key, _ in await store.engine.scan(("message", session.id))]
        prefixes.extend(("part", name) for name in messages)
        # The log knows them all, also those of prompts that were withdrawn.
        prefixes.extend(map(keys.receipt, entry.admitted(await store.engine.read(one.id))))
        for key, _ in await store.engine.scan(("blobused", session.id)):
            prefixes.append(keys.blob_user(key[-1], session.id))
            orphans[keys.blob(key[-1])] = ("blobuser", key[-1])
    await store.engine.remove(logs, prefixes, orphans=orphans)

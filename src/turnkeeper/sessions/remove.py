"""Remove a session with its children, messages, parts, blobs, share and files.

Documents are removed by their keys, so a session with damaged documents can be removed.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from turnkeeper.core import entry
from turnkeeper.core.notify import deleted
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import Busy, Conflict, NotFound
from turnkeeper.model.session import Session
from turnkeeper.store import documents, keys
from turnkeeper.store.damaged import UNREADABLE, DamagedDocument
from turnkeeper.store.engine import Engine, Key, LogConflict, is_key
from turnkeeper.store.journal import ATTEMPTS_MAX
from turnkeeper.store.store import Store
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.owner import is_alive, this_process


async def remove(
    store: Store, session_id: str, publish: Callable[[Notification], None], outputs: OutputFiles | None = None
) -> list[Session]:
    """Remove a session with its descendants in one transaction, and their output files.

    Returns the removed sessions, children first, without those whose documents could not be read. Raises NotFound,
    and Busy while another living process runs one of them.
    """
    for _ in range(ATTEMPTS_MAX):
        family = await _family(store, session_id)
        for one in family:
            await _check_idle(store, one)
        readable = [session for one in family if (session := await _session(store, one)) is not None]
        if outputs is not None:  # First, because after a crash here the store still has the outputs.
            await outputs.remove(family)
        try:
            await _remove(store, family)
        except LogConflict:
            continue  # Another process wrote to the session: collect its keys again.
        for one in family:
            store.journal.cache.forget(one)
        for session in readable:
            publish(deleted(session))
        return readable
    raise Conflict(f"session {session_id!r} is being written without pause; stop what writes to it and try again")


async def _family(store: Store, session_id: str) -> list[str]:
    """The ids of the session and its descendants, children first, from the keys of the lists."""
    [state] = await store.engine.get([keys.state(session_id)])
    if state is None and not await store.engine.length(session_id):
        raise NotFound(f"there is no session {session_id!r}")
    found = [session_id]
    for parent in found:  # The list grows during the iteration.
        below = await store.engine.scan(keys.recent(keys.below(parent), keys.UNLISTED))
        found.extend(key[-1] for key, _ in reversed(below) if key[-1] not in found)
    return found[::-1]


async def _check_idle(store: Store, session_id: str) -> None:
    """Raise Busy while another living process runs the session, whose paid answer would be lost."""
    [body] = await store.engine.get([keys.state(session_id)])
    state = documents.state_or_none(body)
    owner = state.owner if state is not None else None
    if owner is not None and owner != this_process() and is_alive(owner):
        raise Busy(f"session {session_id!r} is being run by process {owner.pid} on {owner.host}; stop it first")


async def _session(store: Store, session_id: str) -> Session | None:
    try:
        return await store.queries.session(session_id)
    except (DamagedDocument, NotFound):
        return None


async def _remove(store: Store, family: list[str]) -> None:
    logs: dict[str, int] = {}
    prefixes: list[Key] = []
    orphans: dict[Key, Key] = {}
    for one in family:
        # The length is read first, so that the engine refuses the removal if the log grows meanwhile.
        logs[one] = await store.engine.length(one)
        prefixes.extend((kind, one) for kind in keys.OWN)
        prefixes.extend(await _listed(store, one))
        messages = [key[-1] for key, _ in await store.engine.scan(("message", one))]
        prefixes.extend(("part", name) for name in messages)
        # The log has all receipts, also of withdrawn prompts. If it is damaged, the messages have more of them.
        prefixes.extend(map(keys.receipt, entry.admitted(await store.engine.read(one))))
        prefixes.extend(await _receipts(store, one, messages))
        for key, _ in await store.engine.scan(("blobused", one)):
            prefixes.append(keys.blob_user(key[-1], one))
            orphans[keys.blob(key[-1])] = ("blobuser", key[-1])
    # A damaged store may have documents under invalid keys, which ``doctor`` reports.
    await store.engine.remove(logs, list(filter(is_key, prefixes)), orphans=orphans)


async def _receipts(store: Store, session_id: str, messages: Sequence[str]) -> list[Key]:
    """The receipts of these messages that belong to the session."""
    wanted = [keys.receipt(name) for name in messages if is_key((name,))]
    owned: list[Key] = []
    for key, body in zip(wanted, await store.engine.get(wanted) if wanted else (), strict=True):
        with suppress(*UNREADABLE):
            if body is not None and documents.read_admission(body).session_id == session_id:
                owned.append(key)
    return owned


async def _listed(store: Store, session_id: str) -> list[Key]:
    """The keys of the session document and of its list entries."""
    session = await _session(store, session_id)
    if session is not None:
        return [keys.session(session.project_id, session_id), *keys.places(session)]
    return await indexed(store.engine, session_id)


async def indexed(engine: Engine, session_id: str) -> list[Key]:
    """The keys of the document and the list entries of a session that cannot be read, found by a scan of all lists."""
    kinds = [await engine.scan((kind,)) for kind in ("session", "recent", "fork")]
    return [key for found in kinds for key, _ in found if key[-1] == session_id]

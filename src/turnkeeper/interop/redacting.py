"""Redact sessions: the redactor of a session, which has read the whole of it, and the report of what it masks."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress

from anyio import to_thread

from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import export, redacted
from turnkeeper.interop.export_all import RedactorOf
from turnkeeper.interop.raw import plain
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.redaction import KnownSecret, RedactionReport
from turnkeeper.model.value import UNREADABLE
from turnkeeper.store.damaged import DamagedNames
from turnkeeper.store.store import Store
from turnkeeper.workspace.known_secrets import known_secrets


async def redactor(
    store: Store,
    session_id: str,
    environ: Mapping[str, str],
    *,
    known: Sequence[KnownSecret] = (),
) -> Redactor:
    """A redactor that knows the secrets of a session, and these. Documents that cannot be read are left out."""
    session = await store.queries.session(session_id)
    secrets = await to_thread.run_sync(known_secrets, environ, session.directory)
    made = Redactor([*known, *secrets])
    await _read(store, session_id, made)
    made.learn()
    return made


async def report(store: Store, session_id: str, environ: Mapping[str, str]) -> RedactionReport:
    """The report of an export: what it would mask."""
    return await masked(store, session_id, await redactor(store, session_id, environ))


async def masked(store: Store, session_id: str, made: Redactor) -> RedactionReport:
    """What a redactor masks in a session."""
    await _read(store, session_id, made)
    return made.report()


async def chunks(
    store: Store,
    session_id: str,
    environ: Mapping[str, str],
    *,
    sanitise: bool = False,
    damaged: DamagedNames | None = None,
) -> AsyncIterator[bytes]:
    """The redacted export of a session in pieces, as ``export.chunks``."""
    mask = await redactor(store, session_id, environ)
    async for piece in export.chunks(store, session_id, sanitise=sanitise, redactor=mask, damaged=damaged):
        yield piece


def redactor_of(store: Store, environ: Mapping[str, str]) -> RedactorOf:
    """Gives the redactor of each session of an export of many. Each has masks of its own."""
    return lambda session_id: redactor(store, session_id, environ)


async def _read(store: Store, session_id: str, made: Redactor) -> None:
    session = await store.queries.session(session_id)
    redacted.session(made, export.session_json(session))
    number = 0
    async for messages in store.queries.walk(session_id, damaged=[]):
        number += await to_thread.run_sync(_read_messages, made, messages, number)
    with suppress(*UNREADABLE):
        made.json(plain(await store.queries.todos(session_id)), "todos")
    with suppress(*UNREADABLE):
        for diff in await store.queries.diffs(session_id):
            made.json(plain(diff), "diffs")


def _read_messages(made: Redactor, messages: Iterator[MessageWithParts], before: int) -> int:
    """Redact messages that follow so many others, for what is found in them; how many they are."""
    count = 0
    for count, message in enumerate(messages, 1):
        redacted.message(made, export.message_json(message), f"message {before + count}")
    return count

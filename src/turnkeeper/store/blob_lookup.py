"""Blob lookups for an append: which blobs the session may refer to, and their contents."""

from collections.abc import Sequence

from turnkeeper.core import blobs
from turnkeeper.core.limits import TEXT_INDEXED_MAX
from turnkeeper.store import keys
from turnkeeper.store.document_writes import DocumentWrites
from turnkeeper.store.engine import Engine, Key


async def find_blobs(engine: Engine, wanted: set[str], lifted: dict[str, bytes]) -> dict[str, bytes]:
    """The wanted blobs; ``lifted`` ones are not read from the store, and missing ones are left out."""
    missing = sorted(wanted - lifted.keys())
    stored = await engine.get([keys.blob(name) for name in missing]) if missing else []
    found = {name: body for name, body in zip(missing, stored, strict=True) if body is not None}
    return {**found, **lifted}


async def known_blobs(engine: Engine, session_id: str, bodies: Sequence[bytes]) -> set[str] | None:
    """The blobs of the session that these events refer to; None if the events contain no mark.

    Any other mark in the events is text that looks like one.
    """
    if not blobs.is_marked(bodies):
        return None
    named = sorted({name for body in bodies for name in blobs.references(body)})
    used = await engine.get([keys.blob_used(session_id, name) for name in named]) if named else []
    return {name for name, found in zip(named, used, strict=True) if found is not None}


async def plain_texts(engine: Engine, writes: DocumentWrites, lifted: dict[str, bytes]) -> dict[Key, str | None]:
    """The texts for the search index, with blobs in place of marks."""
    texts = writes.texts
    named = {name for text in texts.values() if text and blobs.MARK in text for name in blobs.mentioned(text)}
    # Only a mark that a document refers to counts; elsewhere the characters are plain text.
    wanted = named and named & {name for body in writes.documents.values() for name in blobs.references(body or b"")}
    if not wanted:
        return texts
    found = await find_blobs(engine, wanted, lifted)
    # Cut again, because a blob may have megabytes.
    return {key: text and blobs.spell_out(text, found)[:TEXT_INDEXED_MAX] for key, text in texts.items()}

"""Looking up blobs for an append: which the session may name, and what stands behind marks."""

from collections.abc import Sequence

from turnkeeper.core import blobs
from turnkeeper.core.limits import TEXT_INDEXED_MAX
from turnkeeper.store import keys
from turnkeeper.store.documents import DocumentWrites
from turnkeeper.store.engine import Engine, Key


async def find_blobs(engine: Engine, wanted: set[str], lifted: dict[str, bytes]) -> dict[str, bytes]:
    """These blobs, of which some were just lifted out of values; one that is missing is left out."""
    missing = sorted(wanted - lifted.keys())
    stored = await engine.get([keys.blob(name) for name in missing]) if missing else []
    found = {name: body for name, body in zip(missing, stored, strict=True) if body is not None}
    return {**found, **lifted}


async def known_blobs(engine: Engine, session_id: str, bodies: Sequence[bytes]) -> set[str] | None:
    """Of the blobs these events name, those that the session has; the others are text that looks like a mark.

    None if they name none.
    """
    if not blobs.is_marked(bodies):
        return None
    named = sorted({name for body in bodies for name in blobs.references(body)})
    used = await engine.get([keys.blob_used(session_id, name) for name in named]) if named else []
    return {name for name, found in zip(named, used, strict=True) if found is not None}


async def plain_texts(engine: Engine, writes: DocumentWrites, lifted: dict[str, bytes]) -> dict[Key, str | None]:
    """The texts for the search index with blobs in the place of marks, so that search finds words and not hashes."""
    texts = writes.texts
    named = {name for text in texts.values() if text and blobs.MARK in text for name in blobs.mentioned(text)}
    # Only a mark that a document holds is one; the same characters inside other text are just text.
    wanted = named and named & {name for body in writes.documents.values() for name in blobs.references(body or b"")}
    if not wanted:
        return texts
    found = await find_blobs(engine, wanted, lifted)
    # Cut again: a mark is short, and what it stands for may be megabytes.
    return {key: text and blobs.spell_out(text, found)[:TEXT_INDEXED_MAX] for key, text in texts.items()}

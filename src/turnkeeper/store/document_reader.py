"""Reading documents: the base of all queries. Blobs replace their marks."""

import logging
from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import TypeVar

from turnkeeper.core import blobs
from turnkeeper.model.value import Value, encode
from turnkeeper.store import keys
from turnkeeper.store.damaged import DamagedDocument, DamagedNames, skipping
from turnkeeper.store.engine import Engine

log = logging.getLogger(__name__)

V = TypeVar("V", bound=Value)


class DocumentReader:
    """Reads documents of one engine."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def whole(self, value: V) -> V:
        """A value of a view, with blobs in place of their marks."""
        names = blobs.references(encode(value))
        texts = {name: body.decode("utf-8", "replace") for name, body in (await self._blobs(names)).items()}
        return blobs.lower(value, texts) if texts else value

    async def _with_blobs(self, stored: Sequence[bytes], damaged: DamagedNames | None = None) -> list[bytes]:
        """Documents with blobs in place of their marks."""
        if not blobs.is_marked(stored):
            return list(stored)
        texts = await self._blobs({name for body in stored for name in blobs.references(body)}, damaged)
        return [blobs.spelt(body, texts) for body in stored] if texts else list(stored)

    async def _blobs(self, names: Iterable[str], damaged: DamagedNames | None = None) -> dict[str, bytes]:
        """Blobs by name, checked against their hashes. Missing ones are left out and added to ``damaged``."""
        wanted = sorted(names)
        found = await self._engine.get([keys.blob(name) for name in wanted]) if wanted else ()
        for name, body in zip(wanted, found, strict=True):
            if body is None and damaged is not None:
                damaged.append("/".join(keys.blob(name)))
            elif body is not None and sha256(body).hexdigest() != name:
                with skipping(keys.blob(name), damaged):
                    raise DamagedDocument("/".join(keys.blob(name)), "it was altered")
        return {name: body for name, body in zip(wanted, found, strict=True) if body is not None}


def log_damaged(damaged: Iterable[str]) -> None:
    """Log the documents that were left out."""
    for name in damaged:
        log.warning("%s cannot be read and is left out; run `turnkeeper doctor`", name)

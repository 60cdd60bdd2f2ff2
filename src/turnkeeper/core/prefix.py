"""The prefix law: inside an epoch each request extends the one before it, byte for byte. Measured, not hoped for."""

from hashlib import sha256

from turnkeeper.model.context import Prefix
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.value import encode


def pieces(request: ModelRequest) -> list[bytes]:
    """A request in the order a provider's cache reads it: tools, system, then message by message."""
    head = encode([request.model.provider_id, request.model.api_id, request.tools])
    return [head, *(encode(text) for text in request.system), *(encode(message) for message in request.messages)]


def measure(request: ModelRequest, before: Prefix | None, *, cause: str | None = None) -> Prefix:
    """How a request relates to the one before it. ``cause`` explains a break that was declared."""
    parts = pieces(request)
    reused = 0
    broken = cause
    if before is not None:
        start = parts[: before.pieces]
        if len(start) == before.pieces and _hash(start) == before.hash:
            reused, broken = before.bytes, None
        elif cause is None:
            broken = "the request does not extend the one before it"
    return Prefix(pieces=len(parts), bytes=sum(map(len, parts)), hash=_hash(parts), reused=reused, cause=broken)


def _hash(parts: list[bytes]) -> str:
    digest = sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "big"))
        digest.update(part)
    return digest.hexdigest()[:32]

"""Text from outside that reads like a blob's mark is made a blob itself, so that it cannot stand for another's blob."""

from hashlib import sha256
from typing import TypeVar

import msgspec

from turnkeeper.core.blobs import MARK, references
from turnkeeper.model.value import Value, encode

V = TypeVar("V", bound=Value)


def shield(value: V, blobs: dict[str, bytes]) -> V:
    """The value with every such text replaced by a mark of its own; its blob is added to ``blobs``."""
    if not references(encode(value)):
        return value
    return msgspec.convert(_shield(msgspec.to_builtins(value), blobs), type(value))


def _shield(json: object, blobs: dict[str, bytes]) -> object:
    if isinstance(json, str) and json.startswith(MARK):
        content = json.encode()
        name = sha256(content).hexdigest()
        blobs[name] = content
        return MARK + name
    if isinstance(json, dict):
        return {key: _shield(item, blobs) for key, item in json.items()}
    if isinstance(json, list | tuple):
        return [_shield(item, blobs) for item in json]
    return json

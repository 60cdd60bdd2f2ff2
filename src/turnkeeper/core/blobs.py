"""Blobs: a long string is stored once under its hash, and events carry a mark in its place.

A mark is a control character and ``blob:sha256:<hex>``. Lifting leaves the marks a session already has, so that a value
read from the store can be written back. Any other text that looks like a mark becomes a blob itself, so that no caller
can name another session's blob.
"""

import re
from collections.abc import Iterable, Mapping, Set
from hashlib import sha256
from typing import TypeVar

import msgspec

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model.value import Value, encode

MARK = "\x01blob:sha256:"
"""The beginning of a mark."""

_MARK_JSON = b'"\\u0001blob:sha256:'
_MENTION = re.compile(MARK + "([0-9a-f]{64})")
_REFERENCE = re.compile(re.escape(_MARK_JSON) + b'([0-9a-f]{64})"')

# No backslash precedes the first quotation mark of a JSON string. A colon follows a string that is a name.
_SPELT = re.compile(rb"(?<!\\)" + _REFERENCE.pattern + rb"(?!:)")

V = TypeVar("V", bound=Value)


def lift(value: V, encoded: bytes, known: Set[str] = frozenset()) -> tuple[V, dict[str, bytes]]:
    """The value with its long strings replaced by marks, and the blobs by hash.

    ``encoded`` is its JSON; ``known`` are the blobs it may refer to already.
    """
    if len(encoded) < BLOB_CHARS_MIN and _MARK_JSON not in encoded:
        return value, {}
    blobs: dict[str, bytes] = {}
    lifted = _lift(msgspec.to_builtins(value), blobs, known)
    return (msgspec.convert(lifted, type(value)), blobs) if blobs else (value, {})


def is_marked(encoded: Iterable[bytes]) -> bool:
    """Whether any of these JSON texts refers to blobs."""
    return _MARK_JSON in b"\n".join(encoded)


def references(encoded: bytes) -> set[str]:
    """The hashes of the blobs that the JSON of a lifted value refers to."""
    if _MARK_JSON not in encoded:
        return set()
    return {found.decode() for found in _REFERENCE.findall(encoded)}


def lower(value: V, blobs: Mapping[str, str]) -> V:
    """The value with its marks replaced by the strings they stand for. A missing blob leaves its mark."""
    return msgspec.convert(lower_json(msgspec.to_builtins(value), blobs), type(value))


def lower_json(json: object, blobs: Mapping[str, str]) -> object:
    """Decoded JSON with its marks replaced by the strings they stand for. A missing blob leaves its mark."""
    if isinstance(json, str) and json.startswith(MARK):
        return blobs.get(json[len(MARK) :], json)
    if isinstance(json, dict):
        return {key: lower_json(item, blobs) for key, item in json.items()}
    if isinstance(json, list | tuple):
        return [lower_json(item, blobs) for item in json]
    return json


def spelt(encoded: bytes, blobs: Mapping[str, bytes]) -> bytes:
    """Encoded JSON with its marks replaced by stored blobs, without decoding it. A missing blob leaves its mark."""
    if _MARK_JSON not in encoded:
        return encoded

    def string(mark: re.Match[bytes]) -> bytes:
        found = blobs.get(mark[1].decode())
        return mark[0] if found is None else encode(found.decode("utf-8", "replace"))

    return _SPELT.sub(string, encoded)


def mentioned(text: str) -> set[str]:
    """The hashes of the marks anywhere in a text that was joined from lifted strings."""
    return set(_MENTION.findall(text)) if MARK in text else set()


def spell_out(text: str, blobs: Mapping[str, bytes]) -> str:
    """A text with each mark in it replaced by its blob. A missing blob leaves its mark."""
    return _MENTION.sub(lambda mark: blobs.get(mark[1], mark[0].encode()).decode("utf-8", "replace"), text)


def _lift(json: object, blobs: dict[str, bytes], known: Set[str]) -> object:
    if isinstance(json, str):
        is_forged = json.startswith(MARK) and json[len(MARK) :] not in known
        if len(json) < BLOB_CHARS_MIN and not is_forged:
            return json
        content = json.encode("utf-8", "surrogatepass")
        name = sha256(content).hexdigest()
        blobs[name] = content
        return MARK + name
    if isinstance(json, dict):
        return {key: _lift(item, blobs, known) for key, item in json.items()}
    if isinstance(json, list | tuple):
        return [_lift(item, blobs, known) for item in json]
    return json

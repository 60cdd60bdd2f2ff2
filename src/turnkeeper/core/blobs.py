"""Blobs: long strings live once under their hash, and events carry a mark in their place.

A mark is a control character and ``blob:sha256:<hex>``. Lifting leaves the marks a session already has as they are,
so what was read from the store can be written back; any other text that reads like a mark is made a blob itself, so
that nobody can name another session's blob. Hashing makes sharing safe: equal strings are one blob.
"""

import re
from collections.abc import Iterable, Mapping, Set
from hashlib import sha256
from typing import TypeVar

import msgspec

from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model.value import Value, encode

MARK = "\x01blob:sha256:"
"""How a mark begins."""

_MARK_JSON = b'"\\u0001blob:sha256:'
_MENTION = re.compile(MARK + "([0-9a-f]{64})")
_REFERENCE = re.compile(re.escape(_MARK_JSON) + b'([0-9a-f]{64})"')

# In JSON a string begins behind no backslash; one that is a value, not a name, is not followed by a colon.
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
    """Whether any of these JSON texts refers to blobs, at one look."""
    return _MARK_JSON in b"\n".join(encoded)


def references(encoded: bytes) -> set[str]:
    """The hashes of the blobs that a lifted value's JSON refers to."""
    if _MARK_JSON not in encoded:
        return set()
    return {found.decode() for found in _REFERENCE.findall(encoded)}


def lower(value: V, blobs: Mapping[str, str]) -> V:
    """The value with its marks replaced by the strings they stand for. A missing blob leaves its mark."""
    return msgspec.convert(lower_json(msgspec.to_builtins(value), blobs), type(value))


def lower_json(json: object, blobs: Mapping[str, str]) -> object:
    """The same for JSON that is no value of ours."""
    if isinstance(json, str) and json.startswith(MARK):
        return blobs.get(json[len(MARK) :], json)
    if isinstance(json, dict):
        return {key: lower_json(item, blobs) for key, item in json.items()}
    if isinstance(json, list | tuple):
        return [lower_json(item, blobs) for item in json]
    return json


def spelt(encoded: bytes, blobs: Mapping[str, bytes]) -> bytes:
    """The same for JSON that is not decoded; the blobs are given as they are stored."""
    if _MARK_JSON not in encoded:
        return encoded

    def string(mark: re.Match[bytes]) -> bytes:
        found = blobs.get(mark[1].decode())
        return mark[0] if found is None else encode(found.decode("utf-8", "replace"))

    return _SPELT.sub(string, encoded)


def mentioned(text: str) -> set[str]:
    """The hashes of the marks in a text that was put together from lifted strings."""
    return set(_MENTION.findall(text)) if MARK in text else set()


def spell_out(text: str, blobs: Mapping[str, bytes]) -> str:
    """The text with the blobs in the place of their marks."""
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

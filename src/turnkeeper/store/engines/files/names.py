"""The file names of keys and logs: the seeds' paths, with ``%XX`` for characters that a file name cannot have.

A document ``("part", "msg_1", "prt_1")`` is ``part/msg_1/prt_1.json``. The engine itself uses ``log``, ``migration``
and ``.store``, so the first letter of an equal first segment of a key is escaped.
"""

import re
from urllib.parse import unquote

from turnkeeper.store.engine import InvalidKey

JSON, RAW = ".json", ".raw"
"""The suffixes of formatted JSON, and of a body that JSON formatting would change."""

LOG_DIRECTORY, LOG_SUFFIX = "log", ".jsonl"
MARKER = "migration"
OWN_DIRECTORY = ".store"
RESERVED = frozenset({LOG_DIRECTORY, MARKER})
OWN_NAMES = RESERVED | {OWN_DIRECTORY}
"""Names at the top of a tree that are no documents. File names of keys do not begin with a dot."""

NAME_BYTES_MAX = 255 - len(LOG_SUFFIX)
PATH_BYTES_MAX = 2048

_PLAIN = re.compile(r"[A-Za-z0-9_-]+(?:/[A-Za-z0-9_-]+)*")
_ESCAPED = re.compile(r"%|[\x00-\x1f\x7f]|^\.|\.(?=(?:json|raw|jsonl)\Z)")


def relative(place: str) -> str:
    """The path of a document below the store, without its suffix. Raises InvalidKey if it would be too long."""
    first, _, _ = place.partition("/")
    if first not in RESERVED and len(place) < NAME_BYTES_MAX and _PLAIN.fullmatch(place):
        return place
    names = [_escape(segment) for segment in place.split("/")]
    if first in RESERVED:
        names[0] = f"%{ord(first[0]):02X}{first[1:]}"
    if sum(len(name.encode()) + 1 for name in names) > PATH_BYTES_MAX:
        raise InvalidKey(f"{place!r:.80} is too long for a path; a key may take {PATH_BYTES_MAX} bytes")
    return "/".join(names)


def log_name(log: str) -> str:
    """The file name of a log, without its suffix."""
    return _escape(log)


def decoded(name: str, *, top: bool) -> str | None:
    """The key segment of a file name without its suffix; None for a name that is no key."""
    if _PLAIN.fullmatch(name) and not (top and name in RESERVED) and len(name) < NAME_BYTES_MAX:
        return name
    try:
        segment = unquote(name, errors="strict")
        name.encode()
    except UnicodeError:
        return None
    if "/" in segment or "\x00" in segment or not segment:
        return None
    try:
        given = relative(segment) if top else _escape(segment)
    except InvalidKey:
        return None
    return segment if given == name else None


def _escape(segment: str) -> str:
    name = _ESCAPED.sub(lambda found: f"%{ord(found[0]):02X}", segment)
    if len(name.encode()) > NAME_BYTES_MAX:
        raise InvalidKey(f"{segment!r:.80} is too long for a file name; it may take {NAME_BYTES_MAX} bytes")
    return name

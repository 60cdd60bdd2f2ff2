"""Stored documents as answers: handed through unread where clients know all that is in them, else by ``wire``."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Raw

from turnkeeper.model.value import encode
from turnkeeper.server import wire
from turnkeeper.store import documents
from turnkeeper.store.written import Written

# A document begins with its kind and its ids, then its place in the log, which clients do not know; what was unknown in
# an import would follow. What does not begin like this is decoded.
_END: Final = rb')(?=,"(?!nth"|\$extra")|\})'
_MESSAGE: Final = re.compile(rb'\{"role":"[a-z]+","id":"\w+","sessionID":"\w+"(,"seq":\d+' + _END)
_PART: Final = re.compile(
    rb'\{"type":"[a-z-]+","id":"\w+","sessionID":"\w+","messageID":"\w+"(,"seq":(\d+)(?:,"nth":(\d+))?' + _END
)
_CALL: Final = b'{"type":"tool"'
_SYSTEM: Final = b'{"role":"system"'
_SESSION: Final = b'{"id":"'
_OURS_IN_SESSION: Final = re.compile(rb'"(?:origin|\$extra)":')
_OURS_IN_CALL: Final = re.compile(rb'"(?:raw|provider|attachments|structured|content|outputPaths|full)":')


def session(stored: bytes) -> Raw:
    """A session, from its document."""
    if stored.startswith(_SESSION) and not _OURS_IN_SESSION.search(stored):
        return Raw(stored)
    return Raw(encode(wire.session(documents.read_session(stored))))


def messages(stored: Iterable[Written]) -> list[Raw]:
    """Messages with their parts, from their documents; without those that clients do not know."""
    return [message(one) for one in stored if not one.info.startswith(_SYSTEM)]


def message(stored: Written) -> Raw:
    """A message with its parts."""
    found = _MESSAGE.match(stored.info)
    parts = _parts(stored)
    if found is None or parts is None:
        return Raw(encode(wire.with_parts(stored.value())))
    return Raw(b'{"info":%b,"parts":[%b]}' % (_without(found), b",".join(parts)))


def _parts(stored: Written) -> list[bytes] | None:
    """The parts in their order; None if one has to be put together, or does not begin as parts do."""
    placed: list[tuple[re.Match[bytes], bytes]] = []
    for key, body in stored.parts:
        found = _PART.match(body)
        if found is None or len(key) > 3:
            return None
        if body.startswith(_CALL) and _OURS_IN_CALL.search(body):
            placed.append((found, encode(wire.part(documents.read_part(body)))))
        else:
            placed.append((found, _without(found)))
    if len(placed) > 1:
        placed.sort(key=_place)
    return [told for _, told in placed]


def _place(part: tuple[re.Match[bytes], bytes]) -> tuple[int, int]:
    _, seq, nth = part[0].groups(b"0")
    return int(seq), int(nth)


def _without(found: re.Match[bytes]) -> bytes:
    """The document that was looked at, without its place in the log."""
    begin, end = found.span(1)
    return found.string[:begin] + found.string[end:]

"""Stored documents as answers: read by types that lack what only we keep, all at once, and never made into our values.

The types are those of ``model`` without some fields, and what a type lacks is skipped as a document is read. ``wire``
does the same to values that are at hand already.
"""

import logging
import re
from collections.abc import Iterable
from functools import reduce
from itertools import islice
from operator import or_
from typing import Final, get_args

import msgspec
from msgspec import Raw

from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.parts import FilePart, Part, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.model.session import Session
from turnkeeper.model.value import Value
from turnkeeper.server.wire import OURS_IN_CALL, OURS_IN_OUTPUT, OURS_IN_PART, OURS_IN_SESSION
from turnkeeper.store.damaged import UNREADABLE, DamagedNames
from turnkeeper.store.written import Written

log = logging.getLogger(__name__)


def _without(kind: type[Value], ours: Iterable[str], **others: object) -> type[msgspec.Struct]:
    """The same type without these fields, and with another type for some."""
    fields: list[tuple[str, object] | tuple[str, object, object]] = []
    for one in msgspec.structs.fields(kind):
        given = others.get(one.name, one.type)
        if one.name in ours:
            continue
        # Told under its own name; what is not said has the default, and is not said again.
        default = {} if one.required else {"default": one.default}
        fields.append((one.name, given, msgspec.field(name=one.encode_name, **default)))
    tag = kind.__struct_config__
    return msgspec.defstruct(
        kind.__name__,
        fields,
        tag_field=tag.tag_field,
        tag=tag.tag,
        omit_defaults=True,
        kw_only=True,
        frozen=True,
        gc=False,
    )


def _any(kinds: Iterable[object]) -> object:
    return reduce(or_, kinds)


_file = _without(FilePart, OURS_IN_PART)
_state = _any(
    (
        ToolPending,
        _without(ToolRunning, ("raw",)),
        _without(ToolCompleted, OURS_IN_OUTPUT, attachments=tuple[_file, ...] | None),  # type: ignore[valid-type]
        _without(ToolError, ("raw",)),
    )
)
_parts = {kind: _without(kind, OURS_IN_PART) for kind in get_args(Part)}
_parts |= {FilePart: _file, ToolPart: _without(ToolPart, OURS_IN_CALL, state=_state)}
_info = _any(_without(kind, ("seq", "extra")) for kind in (UserMessage, AssistantMessage))

_read_infos: Final = msgspec.json.Decoder(list[_info]).decode  # type: ignore[valid-type]
_read_parts: Final = msgspec.json.Decoder(list[_any(_parts.values())]).decode  # type: ignore[misc]
_read_session: Final = msgspec.json.Decoder(_without(Session, OURS_IN_SESSION)).decode

_SYSTEM: Final = b'{"role":"system"'
_MAY_BE_OURS: Final = re.compile(rb'"(?:origin|\$extra)":')


def session(stored: bytes) -> object:
    """A session, from its document; most often that is it already."""
    return _read_session(stored) if _MAY_BE_OURS.search(stored) else Raw(stored)


class Told(msgspec.Struct, frozen=True, gc=False):
    """A message with its parts, as clients know them."""

    info: object
    parts: tuple[object, ...]


def messages(stored: Iterable[Written]) -> list[Told]:
    """Messages with their parts, from their documents; without those that clients do not know, or that are damaged."""
    found = list(stored)
    try:
        return _told(found)
    except UNREADABLE:
        damaged: DamagedNames = []
        readable = [rest for one in found if (rest := one.readable(damaged)) is not None]
        log.warning("left out, because damaged: %s; run `turnkeeper doctor`", ", ".join(damaged))
        return _told(readable)


def _told(stored: Iterable[Written]) -> list[Told]:
    shown = [one for one in stored if not one.info.startswith(_SYSTEM)]
    groups = [one.in_order() for one in shown]
    # Two readings for all of them: one for each would take longer than what is read.
    infos = _read_infos(_array([one.info for one in shown]))
    parts = iter(_read_parts(_array([body for group in groups for body in group])))
    return [Told(info, tuple(islice(parts, len(group)))) for info, group in zip(infos, groups, strict=True)]


def _array(bodies: list[bytes]) -> bytes:
    return b"[" + b",".join(bodies) + b"]"


def message(stored: Written) -> Told:
    """One of them."""
    [told] = messages([stored])
    return told

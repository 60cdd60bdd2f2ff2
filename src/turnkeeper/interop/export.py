"""Export a session in opencode's format, one message at a time: ``{"info", "messages": [{"info", "parts"}]}``.

opencode's importer refuses system messages. They are exported under ``turnkeeper.system``, which opencode ignores, each
with its ``index`` among all messages.
"""

import re
from collections.abc import AsyncIterator
from typing import Final

import msgspec

from turnkeeper.core.extra import restore
from turnkeeper.core.redaction import Redactor
from turnkeeper.interop import redacted
from turnkeeper.interop.convert import public
from turnkeeper.interop.raw import RawObject, plain
from turnkeeper.interop.sanitise import sanitise_message, sanitise_part, sanitise_session
from turnkeeper.interop.shapes import as_object
from turnkeeper.model.message import SystemMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import ForeignPart, Part
from turnkeeper.model.session import Session
from turnkeeper.model.value import JsonObject
from turnkeeper.sessions.doctor_session import contradictions
from turnkeeper.store.damaged import DamagedDocument, DamagedNames
from turnkeeper.store.store import Store

LINE_BREAK: Final = re.compile(rb"\n *")
"""A line break of an export and the indentation after it. Line breaks in strings are escaped."""


async def chunks(
    store: Store,
    session_id: str,
    *,
    sanitise: bool = False,
    redactor: Redactor | None = None,
    damaged: DamagedNames | None = None,
) -> AsyncIterator[bytes]:
    """The export of a session in pieces: JSON with two spaces of indentation. Raises NotFound and DamagedDocument.

    ``sanitise`` leaves out all texts; a ``redactor`` masks secrets in them.

    With a ``damaged`` list only an unreadable session document raises. Other unreadable documents are left out and
    named in the list, and so are documents that the log contradicts.
    """
    session = await verified(store, session_id, damaged)
    info = session_json(session, sanitise=sanitise)
    info = redacted.session(redactor, info) if redactor is not None else info
    yield b'{\n  "info": ' + _indented(info, 2) + b',\n  "messages": ['
    separator, index, system = b"\n", 0, list[RawObject]()
    async for message in store.queries.stream(session_id, reverse=False, damaged=damaged):
        json = message_json(message, sanitise=sanitise)
        if redactor is not None:
            json = redacted.message(redactor, json, f"message {index + 1}")
        if isinstance(message.info, SystemMessage):
            system.append({"index": index, **json})
        else:
            yield separator + b"    " + _indented(json, 4)
            separator = b",\n"
        index += 1
    yield b"]" if separator == b"\n" else b"\n  ]"
    if system:
        yield b',\n  "turnkeeper": ' + _indented({"system": system}, 2)
    yield b"\n}\n"


async def line(
    store: Store,
    session_id: str,
    *,
    sanitise: bool = False,
    redactor: Redactor | None = None,
    damaged: DamagedNames | None = None,
) -> AsyncIterator[bytes]:
    """The export of a session on one line, for files with many sessions."""
    async for piece in chunks(store, session_id, sanitise=sanitise, redactor=redactor, damaged=damaged):
        yield LINE_BREAK.sub(b"", piece)
    yield b"\n"


async def verified(store: Store, session_id: str, damaged: DamagedNames | None) -> Session:
    """The session, after its documents were compared with its log: an export may be a backup."""
    session = await store.queries.session(session_id)
    found = await contradictions(store.engine, session_id)
    if found and damaged is None:
        raise DamagedDocument(f"session {session_id}", found[0])
    if damaged is not None:
        damaged.extend(found)
    return session


def session_json(session: Session, *, sanitise: bool = False) -> RawObject:
    """A session in opencode's format."""
    info = _public_json(session, session.extra)
    if isinstance(info.get("share"), dict):
        # The secret of a share allows changes to it, so it is not exported.
        info["share"] = {"url": info["share"].get("url", "")}
    return sanitise_session(info) if sanitise else info


def message_json(message: MessageWithParts, *, sanitise: bool = False) -> RawObject:
    """A message with its parts in opencode's format."""
    info = _public_json(message.info, message.info.extra)
    parts = [part_json(part) for part in message.parts]
    if sanitise:
        info, parts = sanitise_message(info), [sanitise_part(part) for part in parts]
    return {"info": info, "parts": parts}


def part_json(part: Part) -> RawObject:
    """A part in opencode's format; a part of an unknown type as it was imported."""
    if isinstance(part, ForeignPart):
        place = {"id": part.id, "sessionID": part.session_id, "messageID": part.message_id}
        return {**part.body, **place}
    return _public_json(part, part.extra)


def _public_json(value: object, overlay: JsonObject | None) -> RawObject:
    return as_object(restore(public(as_object(plain(value))), overlay))


def _indented(json: RawObject, indent: int) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(json), indent=2)
    return text.replace(b"\n", b"\n" + b" " * indent)

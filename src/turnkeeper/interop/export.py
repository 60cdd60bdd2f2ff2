"""Export a session in opencode's shape: ``{"info", "messages": [{"info", "parts"}]}``, written a message at a time.

opencode knows no system messages, and its importer refuses them. They stand under ``turnkeeper.system``, which it
ignores, each with its ``index`` among all messages.
"""

from collections.abc import AsyncIterator
from typing import cast

import msgspec

from turnkeeper.core.extra import restore
from turnkeeper.interop.fit import public
from turnkeeper.interop.raw import RawObject, plain
from turnkeeper.interop.sanitise import sanitise_message, sanitise_part, sanitise_session
from turnkeeper.model.message import Message, SystemMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import ForeignPart, Part
from turnkeeper.model.session import Session
from turnkeeper.model.value import JsonObject
from turnkeeper.sessions.doctor_session import contradictions
from turnkeeper.store.damaged import DamagedDocument, DamagedNames
from turnkeeper.store.store import Store


async def chunks(
    store: Store, session_id: str, *, sanitise: bool = False, damaged: DamagedNames | None = None
) -> AsyncIterator[bytes]:
    """The export of one session, piece by piece: JSON with two spaces of indentation. Raises NotFound.

    Raises DamagedDocument too. With a list for what is ``damaged``, only for the session itself: messages and parts
    that cannot be read are left out and named, and so is what contradicts the log.
    """
    session = await verified(store, session_id, damaged)
    yield b'{\n  "info": ' + _indented(session_json(session, sanitise=sanitise), 2) + b',\n  "messages": ['
    separator, own = b"\n", _Own()
    async for message in store.queries.stream(session_id, reverse=False, damaged=damaged):
        if (json := own.public(message, sanitise=sanitise)) is not None:
            yield separator + b"    " + _indented(json, 4)
            separator = b",\n"
    yield b"]" if separator == b"\n" else b"\n  ]"
    if own.system:
        yield b',\n  "turnkeeper": ' + _indented({"system": own.system}, 2)
    yield b"\n}\n"


async def line(
    store: Store, session_id: str, *, sanitise: bool = False, damaged: DamagedNames | None = None
) -> AsyncIterator[bytes]:
    """The export of one session on one line, as files with many sessions have it."""
    session = await verified(store, session_id, damaged)
    yield b'{"info":' + msgspec.json.encode(session_json(session, sanitise=sanitise)) + b',"messages":['
    separator, own = b"", _Own()
    async for message in store.queries.stream(session_id, reverse=False, damaged=damaged):
        if (json := own.public(message, sanitise=sanitise)) is not None:
            yield separator + msgspec.json.encode(json)
            separator = b","
    yield b"]"
    if own.system:
        yield b',"turnkeeper":' + msgspec.json.encode({"system": own.system})
    yield b"}\n"


class _Own:
    """Sorts out the messages that opencode does not know."""

    def __init__(self) -> None:
        self.system: list[RawObject] = []
        self._count = 0

    def public(self, message: MessageWithParts, *, sanitise: bool) -> RawObject | None:
        """A message as opencode reads it; None for one that only we know, which is kept in ``system``."""
        index, self._count = self._count, self._count + 1
        json = message_json(message, sanitise=sanitise)
        if not isinstance(message.info, SystemMessage):
            return json
        self.system.append({"index": index, **json})
        return None


async def verified(store: Store, session_id: str, damaged: DamagedNames | None) -> Session:
    """The session, after a look at its log: an export is what a backup is made of, so damage must not pass for data."""
    session = await store.queries.session(session_id)
    found = await contradictions(store.engine, session_id)
    if found and damaged is None:
        raise DamagedDocument(f"session {session_id}", found[0])
    if damaged is not None:
        damaged.extend(found)
    return session


def session_json(session: Session, *, sanitise: bool = False) -> RawObject:
    """A session as others know it."""
    info = _public_json(session, session.extra)
    if isinstance(info.get("share"), dict):
        # Whoever knows the secret may change what was shared; it is kept, and stays here.
        info["share"] = {"url": info["share"].get("url", "")}
    return sanitise_session(info) if sanitise else info


def message_json(message: MessageWithParts, *, sanitise: bool = False) -> RawObject:
    """A message with its parts as others know it."""
    info = info_json(message.info)
    parts = [part_json(part) for part in message.parts]
    if sanitise:
        info, parts = sanitise_message(info), [sanitise_part(part) for part in parts]
    return {"info": info, "parts": parts}


def info_json(message: Message) -> RawObject:
    """A message without its parts as others know it."""
    return _public_json(message, message.extra)


def part_json(part: Part) -> RawObject:
    """A part as others know it; one of a foreign type as it came."""
    if isinstance(part, ForeignPart):
        place = {"id": part.id, "sessionID": part.session_id, "messageID": part.message_id}
        return {**part.body, **place}
    return _public_json(part, part.extra)


def _public_json(value: object, overlay: JsonObject | None) -> RawObject:
    return cast(RawObject, restore(public(cast(RawObject, plain(value))), overlay))


def _indented(json: RawObject, indent: int) -> bytes:
    text = msgspec.json.format(msgspec.json.encode(json), indent=2)
    # A line break inside a string is escaped, so every one that is there ends a line of the format.
    return text.replace(b"\n", b"\n" + b" " * indent)

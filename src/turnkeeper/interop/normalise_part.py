"""Normalise a part: known types are typed and their missing fields filled; others are kept unchanged."""

from typing import cast, get_args

from turnkeeper.interop import shapes
from turnkeeper.interop.convert import converted
from turnkeeper.interop.raw import RawObject, Unreadable, derived_id
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import ForeignPart, Part
from turnkeeper.model.value import Json

KNOWN = frozenset(str(kind.__struct_config__.tag) for kind in get_args(Part) if kind is not ForeignPart)
"""The part types of the model. A part of another type becomes a ForeignPart."""

_PART = cast("type[Part]", Part)  # A union can be converted to, but is no class.


def part_of(raw: RawObject, message: Message, nth: int, has_id: bool) -> Part:
    """The part at this index of a message. Raises Unreadable if it cannot be stored at all."""
    name = raw["id"] if has_id else derived_id("prt", message.time.created, nth, message.id, "part")
    place = {"id": name, "sessionID": message.session_id, "messageID": message.id}
    placed = {**raw, **place}
    if isinstance(placed.get("type"), str) and placed["type"] in KNOWN:
        try:
            return converted(_filled(placed, message), _PART)
        except Unreadable:
            pass  # A known type with wrong fields is kept unchanged.
    return ForeignPart(id=name, session_id=message.session_id, message_id=message.id, body=placed)


def _filled(part: RawObject, message: Message) -> RawObject:
    match part["type"]:
        case "reasoning":
            return {"time": _span(message), **part}
        case "tool" if isinstance(part.get("state"), dict):
            return {
                **part,
                "state": shapes.tool_state(part["state"], lambda nth, one: _attachment(part, nth, one, message)),
            }
        case "step-finish":
            cost = part["cost"] if shapes.is_number(part.get("cost")) else 0
            return {"reason": "unknown", **part, "cost": cost, "tokens": shapes.tokens(part.get("tokens"))}
        case "compaction":
            return {"auto": False, **part}
        case "retry" if isinstance(part.get("error"), dict):
            return {**part, "error": shapes.failure(part["error"])[0]}
        case _:
            return part


def _span(message: Message) -> RawObject:
    completed = message.time.completed if isinstance(message, AssistantMessage) else None
    return {"start": message.time.created, "end": completed or message.time.created}


def _attachment(tool: RawObject, nth: int, raw: Json, message: Message) -> Json:
    if not isinstance(raw, dict):
        return raw
    name = derived_id("prt", message.time.created, nth, tool["id"], "attachment")
    return {"type": "file", "id": name, "sessionID": message.session_id, "messageID": message.id, **raw}

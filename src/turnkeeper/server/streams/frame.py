"""Frames: notifications as the bytes of a stream, in the shape of each generation. Encoded once, when first needed."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from turnkeeper.model.message import SystemMessage
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.value import JsonObject, Value, encode
from turnkeeper.server.public import public
from turnkeeper.server.v2.event import NextEvent
from turnkeeper.server.v2.framed import Durable, Second, durable
from turnkeeper.server.v2.shape import Location, number

Published: TypeAlias = Notification | Delta

COMMENT: Final = b": heartbeat\n\n"

SECOND: Final = frozenset(
    {
        "global.disposed",
        "server.connected",
        "session.compacted",
        "session.created",
        "session.deleted",
        "session.diff",
        "session.error",
        "session.idle",
        "session.status",
        "session.updated",
        "todo.updated",
    }
)
"""Notifications that the second generation sends under the name and in the shape of the first."""


class _First(Value, omit_defaults=False):
    id: str
    type: str
    properties: object


class OutgoingFrame:
    """A notification or delta to be sent. ``nth`` is its number among all frames of this server."""

    __slots__ = ("_first", "_second", "id", "now", "nth", "one")

    def __init__(self, one: Published, nth: int, id: str, now: int) -> None:
        self.one, self.nth, self.id, self.now = one, nth, id, now
        self._first: bytes | None = None
        self._second: bytes | None = None

    @property
    def first(self) -> bytes:
        """``{"id", "type", "properties"}``; empty if the first generation has no such event."""
        if self._first is None:
            self._first = _first(self.one, self.id)
        return self._first

    @property
    def second(self) -> bytes:
        """``{"id", "type", "durable", "location", "data"}``; empty if the second generation has no such event."""
        if self._second is None:
            self._second = _second(self.one, self.id, self.now)
        return self._second


def joined(waiting: Sequence[Published]) -> list[Published]:
    """Join consecutive deltas of a part into one. Any other event of the session separates its deltas."""
    runs: list[Published | list[Delta]] = []
    unbroken: dict[str, list[Delta]] = {}
    for one in waiting:
        if isinstance(one, Delta):
            run = unbroken.get(one.part_id)
            if run is not None and run[-1].offset + len(run[-1].delta) == one.offset:
                run.append(one)
            else:
                unbroken[one.part_id] = run = [one]
                runs.append(run)
            continue
        if unbroken:
            unbroken = {name: run for name, run in unbroken.items() if run[0].session_id != one.session_id}
        runs.append(one)
    return [one[0].but(delta="".join([part.delta for part in one])) if isinstance(one, list) else one for one in runs]


def plain(kind: str, id: str, properties: object) -> bytes:
    """An event of the server itself, in the first generation."""
    return encode(_First(id=id, type=kind, properties=properties))


def plain_second(kind: str, id: str, data: object) -> bytes:
    """An event of the server itself, in the second generation."""
    return encode(Second(id=id, type=kind, data=data))


def _first(one: Published, id: str) -> bytes:
    if isinstance(one, Delta):
        properties = {
            "sessionID": one.session_id,
            "messageID": one.message_id,
            "partID": one.part_id,
            "field": one.field,
            "delta": one.delta,
            "offset": one.offset,
        }
        return encode(_First(id=id, type=one.type, properties=properties))
    if isinstance(one, NextEvent) or isinstance(one.properties.get("info"), SystemMessage):
        return b""
    return encode(_First(id=id, type=one.type, properties=_shown(one)))


def _shown(one: Notification) -> dict[str, object]:
    return {name: public(value) for name, value in one.properties.items()}


def _second(one: Published, id: str, now: int) -> bytes:
    if isinstance(one, NextEvent):
        return durable(one, is_local=False)
    place = Location(directory=one.directory) if one.directory else None
    if isinstance(one, Delta):
        return encode(Second(id=id, type=f"session.next.{one.kind}.delta", location=place, data=_delta(one, now)))
    if one.type in SECOND:
        place_in_log = (
            Durable(aggregate=one.session_id, seq=number(one.seq), version=1) if one.type == "session.created" else None
        )
        return encode(Second(id=id, type=one.type, durable=place_in_log, location=place, data=_shown(one)))
    if (convert := _RENAMED.get(one.type)) is not None:
        group, _, verb = one.type.partition(".")
        return encode(Second(id=id, type=f"{group}.v2.{verb}", location=place, data=convert(one.properties)))
    return b""


def _delta(one: Delta, now: int) -> dict[str, object]:
    return {
        "timestamp": now,
        "sessionID": one.session_id,
        "assistantMessageID": one.message_id,
        f"{one.kind}ID": one.part_id,
        "delta": one.delta,
    }


def _permission(given: JsonObject) -> dict[str, object]:
    """A permission request in the shape of the second generation."""
    body = {"id": given["id"], "sessionID": given["sessionID"], "action": given["permission"]}
    body |= {"resources": given["patterns"], "save": given["always"], "metadata": given["metadata"]}
    if (tool := given.get("tool")) is not None:
        body["source"] = {"type": "tool", **msgspec.to_builtins(tool)}
    return body


_RENAMED: Final[Mapping[str, Callable[[JsonObject], dict[str, object]]]] = {
    "permission.asked": _permission,
    "permission.replied": dict,
    "question.asked": dict,
    "question.replied": dict,
    "question.rejected": dict,
}

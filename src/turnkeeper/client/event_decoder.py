"""EventDecoder: frames of a stream as the values that subscribers in the server's own process receive."""

from collections.abc import Mapping
from typing import Final

import msgspec

from turnkeeper.model.failure import Failure
from turnkeeper.model.message import Message
from turnkeeper.model.notification import KINDS, Delta, Notification
from turnkeeper.model.parts import Part, ReasoningPart, TextPart
from turnkeeper.model.session import FileDiff, Session
from turnkeeper.model.status import Status
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import Value

CONNECTED: Final = "server.connected"

_KINDS: Final[Mapping[tuple[str, str], object]] = {
    ("session.created", "info"): Session,
    ("session.updated", "info"): Session,
    ("session.deleted", "info"): Session,
    ("session.status", "status"): Status,
    ("session.error", "error"): Failure,
    ("session.diff", "diff"): tuple[FileDiff, ...],
    ("message.updated", "info"): Message,
    ("message.part.updated", "part"): Part,
    ("todo.updated", "todos"): tuple[Todo, ...],
}
"""Types of properties that are values of the model; all others stay JSON."""


class _Payload(Value):
    id: str = ""
    type: str
    properties: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


class _Frame(Value):
    directory: str = ""
    project: str | None = None
    payload: _Payload


_frame = msgspec.json.Decoder(_Frame)
_decoders: Final = {key: msgspec.json.Decoder(kind) for key, kind in _KINDS.items()}


class EventDecoder:
    """Decodes frames of ``/global/event``. It remembers which open parts are reasoning, because deltas do not say."""

    def __init__(self) -> None:
        self._reasoning_ids: set[str] = set()

    def decode(self, data: bytes) -> Notification | Delta:
        """Decode a frame."""
        frame = _frame.decode(data)
        payload = frame.payload
        properties = {name: _value(payload.type, name, raw) for name, raw in payload.properties.items()}
        if payload.type == "message.part.delta":
            return self._delta(properties, frame.directory)
        if isinstance(part := properties.get("part"), TextPart | ReasoningPart):
            self._remember(part)
        return KINDS.get(payload.type, Notification)(
            type=payload.type,
            session_id=str(properties.get("sessionID", "")),
            directory=frame.directory,
            seq=0,
            properties=properties,
            id=payload.id,
            project_id=frame.project,
        )

    def _delta(self, properties: Mapping[str, object], directory: str) -> Delta:
        part_id, offset = str(properties["partID"]), properties.get("offset", 0)
        return Delta(
            session_id=str(properties["sessionID"]),
            directory=directory,
            message_id=str(properties["messageID"]),
            part_id=part_id,
            field=str(properties["field"]),
            delta=str(properties["delta"]),
            offset=offset if isinstance(offset, int) else 0,
            kind="reasoning" if part_id in self._reasoning_ids else "text",
        )

    def _remember(self, part: TextPart | ReasoningPart) -> None:
        if isinstance(part, ReasoningPart) and part.time.end is None:
            self._reasoning_ids.add(part.id)
        else:
            self._reasoning_ids.discard(part.id)


def _value(kind: str, name: str, raw: msgspec.Raw) -> object:
    if (decoder := _decoders.get((kind, name))) is not None:
        try:
            return decoder.decode(raw)
        except msgspec.ValidationError:
            pass  # A newer server sent an unknown shape: pass it on as JSON.
    return msgspec.json.decode(raw)

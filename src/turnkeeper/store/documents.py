"""Documents of a view: their shapes, how they are read, and how a view is loaded from them."""

from collections.abc import Callable
from hashlib import sha1
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from turnkeeper.core import entry
from turnkeeper.core.entry import Damaged
from turnkeeper.core.limits import LOG_PAGE
from turnkeeper.core.projector import apply
from turnkeeper.core.view import Admitted, OpenAsk, OpenTurn, Restore, SessionView, ViewState
from turnkeeper.model.context import Epoch
from turnkeeper.model.event import Delivery
from turnkeeper.model.ledger import LedgerRow
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import ForeignPart, Part, ReasoningPart, TextPart
from turnkeeper.model.session import Session
from turnkeeper.model.share import HostedShare
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import UNREADABLE, Value
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key

V = TypeVar("V", bound=Value)


class State(ViewState):
    """The state document: the head of the log, the small fields of the view, and links to its other documents."""

    head: str
    project_id: str
    turn: str | None = None
    shape: str = ""
    """A hash of the field names of the writer's ``ViewState``. If it differs from SHAPE, the log is folded instead."""

    def is_current(self) -> bool:
        """Whether the document has the fields of today's ``ViewState``."""
        return self.shape == SHAPE


SHAPE: Final = sha1(" ".join(ViewState.__struct_fields__).encode(), usedforsecurity=False).hexdigest()[:8]
"""A hash of the field names of ``ViewState``, so that a new field invalidates old state documents."""


class StoredReceipt(Value):
    """The admission of a prompt, stored under its message id."""

    session_id: str
    seq: int
    delivery: Delivery
    digest: str


class SessionAsks(Value):
    """The requests to the user that a session has open, and where it works: what a directory waits for is one scan."""

    directory: str
    asks: tuple[OpenAsk, ...]


class Listing(Value):
    """The document of a list key, so that lists are filtered without reading the sessions."""

    title: str
    created: int
    parent: bool = False
    archived: bool = False


_session = msgspec.json.Decoder(Session)
_message: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_assistant = msgspec.json.Decoder(AssistantMessage)
_part: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)
_epoch = msgspec.json.Decoder(Epoch)
_restore = msgspec.json.Decoder(Restore)
_place: Callable[[Part], tuple[int, int]] = attrgetter("seq", "nth")

read_hosted = msgspec.json.Decoder(HostedShare).decode
read_admitted = msgspec.json.Decoder(Admitted).decode
read_asks = msgspec.json.Decoder(SessionAsks).decode
read_admission = msgspec.json.Decoder(StoredReceipt).decode
read_state = msgspec.json.Decoder(State).decode
read_message = _message.decode
read_piece = msgspec.json.Decoder(str).decode
read_todos = msgspec.json.Decoder(tuple[Todo, ...]).decode
read_ledger_row = msgspec.json.Decoder(LedgerRow).decode


def is_whole_session(stored: bytes) -> bool:
    """Whether every field of a session document can be read."""
    try:
        _session.decode(stored)
    except UNREADABLE:
        return False
    return True


def read_session(stored: bytes) -> Session:
    """The session, without invalid optional fields, which older versions stored. Raises one of UNREADABLE."""
    try:
        return _session.decode(stored)
    except msgspec.ValidationError:
        return _trimmed(msgspec.json.decode(stored, type=dict[str, object]), Session)


def read_part(stored: bytes) -> Part:
    """The part; as a foreign part if its fields are invalid. Raises one of UNREADABLE if it has no ids."""
    try:
        return _part.decode(stored)
    except msgspec.ValidationError:
        said = msgspec.json.decode(stored, type=dict[str, object])
        body = {name: value for name, value in said.items() if name not in ("seq", "nth", "$extra")}
        return _trimmed({**said, "type": "foreign", "body": body}, ForeignPart)


def _trimmed(said: dict[str, object], kind: type[V]) -> V:
    """The value without invalid optional fields. Raises ValidationError if a required field is invalid."""
    kept = dict(said)
    for field in msgspec.structs.fields(kind):
        if not field.required and field.encode_name in said:
            try:
                msgspec.convert(said[field.encode_name], field.type)
            except msgspec.ValidationError:
                del kept[field.encode_name]
    return msgspec.convert(kept, kind)


def state_or_none(stored: bytes | None) -> State | None:
    """The state document; None if it is missing or cannot be read."""
    try:
        return read_state(stored) if stored is not None else None
    except UNREADABLE:
        return None


def small_fields(source: ViewState) -> dict[str, Any]:
    """The fields of ``ViewState`` by name. ``Any`` because each has its own type."""
    return {name: getattr(source, name) for name in ViewState.__struct_fields__}


async def load(engine: Engine, session_id: str) -> tuple[SessionView, str] | None:
    """The view of a session from its documents, and the hash of the log's head; None if there is no session.

    If the state document has another shape, the log is folded instead.
    """
    while True:
        [stored] = await engine.get([keys.state(session_id)])
        if stored is None:
            return None
        state = read_state(stored)
        try:
            loaded = await (_load if state.is_current() else _folded)(engine, session_id, state)
        except Damaged:
            if [stored] == await engine.get([keys.state(session_id)]):
                raise
            continue  # The session was removed between the reads.
        # A view needs several reads. The state document is read again to detect a write between them.
        if [stored] == await engine.get([keys.state(session_id)]):
            return loaded


async def _folded(engine: Engine, session_id: str, state: State) -> tuple[SessionView, str]:
    """The fold of the log up to the seq of the state document."""
    view: SessionView | None = None
    head = ""
    for after in range(0, state.seq, LOG_PAGE):
        entries = await engine.read(session_id, after=after, limit=min(LOG_PAGE, state.seq - after))
        for recorded, link in entry.chain(session_id, entries, after=after, prev=head):
            view, head = apply(view, recorded).view, link
    if view is None or view.seq < state.seq:
        seq = view.seq + 1 if view is not None else 1
        raise Damaged(seq, f"is missing from the log of {session_id}, which once had {state.seq}")
    return view, head


async def _load(engine: Engine, session_id: str, state: State) -> tuple[SessionView, str] | None:
    kinds = (keys.todo, keys.epoch, keys.asks, keys.restore, keys.hosted)
    wanted = [keys.session(state.project_id, session_id), *(kind(session_id) for kind in kinds)]
    session, todos, epoch, asks, restore, hosted = await engine.get(wanted)
    if session is None:
        return None
    admitted = [read_admitted(body) for _, body in await engine.scan(("inbox", session_id))]
    view = SessionView(
        session=read_session(session),
        todos=read_todos(todos) if todos else (),
        inbox=tuple(sorted(admitted, key=lambda prompt: prompt.seq)),
        epoch=_epoch.decode(epoch) if epoch else None,
        turn=await _load_turn(engine, session_id, state.turn) if state.turn else None,
        asks=read_asks(asks).asks if asks else (),
        restore=_restore.decode(restore) if restore else None,
        hosted=read_hosted(hosted) if hosted else None,
        **small_fields(state),
    )
    return view, state.head


async def _load_turn(engine: Engine, session_id: str, message_id: str) -> OpenTurn | None:
    [message] = await engine.get([keys.message(session_id, message_id)])
    if message is None:
        return None
    stored = await engine.scan(("part", message_id))
    extended: dict[str, tuple[int, ...]] = {}
    for key, _ in stored:
        if len(key) == 4:
            extended[key[2]] = (*extended.get(key[2], ()), int(key[3]))
    parts = {part.id: part for part in in_order(stored)}
    return OpenTurn(message=_assistant.decode(message), parts=parts, extended=extended)


def in_order(stored: list[tuple[Key, bytes]]) -> list[Part]:
    """The parts of a message in order, each with the text that was added to it."""
    parts = [read_part(body) for key, body in stored if len(key) == 3]
    if len(parts) != len(stored):
        parts = _with_pieces(parts, stored)
    parts.sort(key=_place)
    return parts


def _with_pieces(parts: list[Part], stored: list[tuple[Key, bytes]]) -> list[Part]:
    found = {part.id: part for part in parts}
    for key, body in stored:  # In key order: the pieces of a part are ordered by offset.
        part = found.get(key[2])
        if len(key) == 4 and isinstance(part, TextPart | ReasoningPart):
            found[part.id] = part.but(text=part.text + read_piece(body))
    return list(found.values())

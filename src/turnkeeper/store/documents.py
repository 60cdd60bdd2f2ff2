"""View to documents and back: what an append writes beside its entries, and how a view is read again.

Documents are derived: folding the log from its start writes the same ones, and ``doctor`` checks that.
"""

from collections.abc import Callable
from hashlib import sha1
from operator import attrgetter
from typing import Any, Final, TypeVar

import msgspec

from turnkeeper.core import blobs, entry
from turnkeeper.core.entry import Damaged, Recorded
from turnkeeper.core.handles import whole_output
from turnkeeper.core.limits import LOG_PAGE, TEXT_INDEXED_MAX
from turnkeeper.core.projector import apply
from turnkeeper.core.titles import is_default
from turnkeeper.core.view import Admitted, OpenTurn, SessionView, ViewState
from turnkeeper.model import event as e
from turnkeeper.model.context import Epoch
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage, Message
from turnkeeper.model.parts import ForeignPart, Part, ReasoningPart, SubtaskPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.session import Session, Tokens
from turnkeeper.model.status import Idle
from turnkeeper.model.todo import Todo
from turnkeeper.model.value import UNREADABLE, Value, encode
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key

V = TypeVar("V", bound=Value)


class State(ViewState):
    """The state document: where the log stands, the small fields of the view, and where its other documents are."""

    head: str
    project_id: str
    turn: str | None = None
    shape: str = ""
    """Which fields the writer's ``ViewState`` had. A document of another shape lacks some, so the log is folded."""

    def is_current(self) -> bool:
        """Whether this document holds every field of the view."""
        return self.shape == SHAPE


SHAPE: Final = sha1(" ".join(ViewState.__struct_fields__).encode(), usedforsecurity=False).hexdigest()[:8]
"""The fields of ``ViewState`` in one word, so that adding one cannot leave old state documents in use."""


class Admission(Value):
    """What was admitted under a message id."""

    session_id: str
    seq: int
    delivery: Delivery
    digest: str


class Listing(Value):
    """What an entry of a list says, so that lists can be filtered without reading the sessions."""

    title: str
    created: int
    parent: bool = False
    archived: bool = False


class LedgerRow(Value):
    """What one attempt cost, whatever came of it; ``time`` is when it was recorded."""

    session_id: str
    time: int
    purpose: str
    provider_id: str
    model_id: str
    message_id: str | None = None
    attempt: int = 1
    tokens: Tokens
    cost: int | float


_state = msgspec.json.Decoder(State)
_session = msgspec.json.Decoder(Session)
_message: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)
_assistant = msgspec.json.Decoder(AssistantMessage)
_part: msgspec.json.Decoder[Part] = msgspec.json.Decoder(Part)
_todos = msgspec.json.Decoder(tuple[Todo, ...])
_epoch = msgspec.json.Decoder(Epoch)
_piece = msgspec.json.Decoder(str)
_admitted = msgspec.json.Decoder(Admitted)
_place: Callable[[Part], tuple[int, int]] = attrgetter("seq", "nth")

read_admitted = _admitted.decode
read_admission = msgspec.json.Decoder(Admission).decode
read_state = _state.decode
read_message = _message.decode
read_piece = _piece.decode
read_todos = _todos.decode
read_ledger_row = msgspec.json.Decoder(LedgerRow).decode


def is_whole_session(stored: bytes) -> bool:
    """Whether every field of a session's document can be read."""
    try:
        _session.decode(stored)
    except UNREADABLE:
        return False
    return True


def read_session(stored: bytes) -> Session:
    """The session, without optional fields that make no sense. Raises what decoding raises if a needed one is wrong.

    Older versions stored whatever a caller had put into a field.
    """
    try:
        return _session.decode(stored)
    except msgspec.ValidationError:
        return _trimmed(msgspec.json.decode(stored, type=dict[str, object]), Session)


def read_part(stored: bytes) -> Part:
    """The part; one whose fields make no sense is a foreign part. Raises what decoding raises if it has no ids."""
    try:
        return _part.decode(stored)
    except msgspec.ValidationError:
        said = msgspec.json.decode(stored, type=dict[str, object])
        body = {name: value for name, value in said.items() if name not in ("seq", "nth", "$extra")}
        return _trimmed({**said, "type": "foreign", "body": body}, ForeignPart)


def _trimmed(said: dict[str, object], kind: type[V]) -> V:
    """The value without optional fields that do not fit. Raises ValidationError if a needed one does not."""
    kept = dict(said)
    for field in msgspec.structs.fields(kind):
        if not field.required and field.encode_name in said:
            try:
                msgspec.convert(said[field.encode_name], field.type)
            except msgspec.ValidationError:
                del kept[field.encode_name]
    return msgspec.convert(kept, kind)


def state_or_none(stored: bytes | None) -> State | None:
    """The state document, if it is there and can be read; ``doctor`` must cope with any bytes."""
    try:
        return read_state(stored) if stored is not None else None
    except UNREADABLE:
        return None


class Changes:
    """What one append writes: documents (None removes) and texts for the search index."""

    def __init__(self) -> None:
        self.documents: dict[Key, bytes | None] = {}
        self.texts: dict[Key, str | None] = {}

    def of_event(self, before: SessionView | None, recorded: Recorded, after: SessionView) -> None:
        """Add what one event changes in the history."""
        seq, time, event = recorded
        match event:
            case e.MessageRecorded(message=message, parts=parts):
                self._message(message, seq)
                self._parts(parts, seq)
            case e.PromptAdmitted(message=message, delivery=delivery, digest=digest):
                admission = Admission(session_id=message.session_id, seq=seq, delivery=delivery, digest=digest)
                self.documents[keys.receipt(message.id)] = encode(admission)
            case e.PromptPromoted(message_id=message_id) if before is not None:
                prompt = next(p for p in before.inbox if p.message.id == message_id)
                self._message(prompt.message, seq)
                self._parts(prompt.parts, seq)
            case e.ContextAdmitted(message=message):
                self._message(message, seq)
            case e.TurnStarted(message=message):
                self._message(message, seq)
            case e.TurnEnded(message=message) if before is not None and before.turn is not None:
                self._message(message, before.turn.message.seq)
                self._settled(before.turn)
            case e.MessageRemoved():
                for part_id in event.part_ids:
                    self._closed(before, event.message_id, part_id)
                self._removed(after.session.id, event)
            case e.PartRecorded(part=part):
                self._closed(before, part.message_id, part.id)
                self._part(part, _seq_of(part, before, seq), part.nth)
            case e.PartExtended(message_id=message_id, part_id=part_id, offset=offset, text=text):
                self.documents[keys.extension(message_id, part_id, offset)] = encode(text)
            case e.PartRemoved(message_id=message_id, part_id=part_id):
                self._closed(before, message_id, part_id)
                self.documents[keys.part(message_id, part_id)] = None
                self.texts[keys.text(after.session.id, message_id, part_id)] = None
            case e.UsageRecorded():
                self.documents[keys.ledger(after.session.id, seq)] = encode(_row(after.session.id, time, event))
            case e.SummaryRecorded(diffs=diffs):
                self.documents[keys.diff(after.session.id)] = None if diffs is None else encode(diffs)
            case _:
                pass

    def of_blobs(self, session_id: str, body: bytes) -> None:
        """Add that the session uses the blobs an event's JSON refers to."""
        for name in blobs.references(body):
            self.documents[keys.blob_user(name, session_id)] = b"{}"
            self.documents[keys.blob_used(session_id, name)] = b"{}"

    def of_view(self, before: SessionView | None, after: SessionView, head: str) -> None:
        """Add what the whole append changes in the view. ``head`` is the hash of the log's last entry."""
        session = after.session
        if before is None or before.session is not session:
            self._session(before.session if before is not None else None, session)
        if before is None or before.inbox is not after.inbox:
            self._inbox(before.inbox if before is not None else (), after.inbox, session.id)
        if (before.todos if before else ()) is not after.todos:
            self.documents[keys.todo(session.id)] = encode(after.todos) if after.todos else None
        if (before.epoch if before else None) is not after.epoch:
            self.documents[keys.epoch(session.id)] = None if after.epoch is None else encode(after.epoch)
        if _at_work(before) != _at_work(after):
            self.documents[keys.busy(session.id)] = b"{}" if _at_work(after) else None
        self.documents[keys.state(session.id)] = encode(_state_of(after, head))

    def _session(self, before: Session | None, after: Session) -> None:
        if before is not None:  # Where it still stands is written again below.
            self.documents[keys.session(before.project_id, before.id)] = None
            self.documents.update(dict.fromkeys(keys.places(before)))
        listing = encode(
            Listing(
                title=after.title,
                created=after.time.created,
                parent=after.parent_id is not None,
                archived=after.time.archived is not None,
            )
        )
        self.documents[keys.session(after.project_id, after.id)] = encode(after)
        self.documents.update(dict.fromkeys(keys.places(after), listing))
        if before is None or before.title != after.title:
            self._title(named_title(before) if before is not None else None, named_title(after), after.id)
        if (before.share if before else None) != after.share:
            self.documents[keys.share(after.id)] = encode(after.share) if after.share else None

    def _title(self, before: str | None, after: str | None, session_id: str) -> None:
        if before != after:
            self.texts[keys.text(session_id, "title")] = after

    def _inbox(self, before: tuple[Admitted, ...], after: tuple[Admitted, ...], session_id: str) -> None:
        for prompt in before:
            if prompt not in after:
                self.documents[keys.inbox(session_id, prompt.message.id)] = None
        for prompt in after:
            if prompt not in before:
                self.documents[keys.inbox(session_id, prompt.message.id)] = encode(prompt)

    def _message(self, message: Message, seq: int) -> None:
        session_id, message_id, seq = message.session_id, message.id, message.seq or seq
        self.documents[keys.message(session_id, message_id)] = encode(message.but(seq=seq))
        self.documents[keys.order(session_id, seq)] = encode(message_id)

    def _removed(self, session_id: str, event: e.MessageRemoved) -> None:
        self.documents[keys.message(session_id, event.message_id)] = None
        self.documents[keys.order(session_id, event.seq)] = None
        for part_id in event.part_ids:
            self.documents[keys.part(event.message_id, part_id)] = None
            self.texts[keys.text(session_id, event.message_id, part_id)] = None

    def _parts(self, parts: tuple[Part, ...], seq: int) -> None:
        for nth, part in enumerate(parts):
            self._part(part, seq, nth)

    def _closed(self, before: SessionView | None, message_id: str, part_id: str) -> None:
        """The part is recorded whole: what was written of it piece by piece is no longer needed."""
        if before is not None and before.turn is not None:
            for offset in before.turn.extended.get(part_id, ()):
                self.documents[keys.extension(message_id, part_id, offset)] = None

    def _settled(self, turn: OpenTurn) -> None:
        """Write whole what the turn left in pieces: nothing knows of the pieces once the turn is over."""
        for part_id, offsets in turn.extended.items():
            part = turn.parts[part_id]
            for offset in offsets:
                self.documents[keys.extension(part.message_id, part_id, offset)] = None
            self._part(part, part.seq, part.nth)

    def _part(self, part: Part, seq: int, nth: int) -> None:
        message_id, part_id = part.message_id, part.id
        self.documents[keys.part(message_id, part_id)] = encode(part.but(seq=seq, nth=nth))
        text = searchable(part)
        if text:
            self.texts[keys.text(part.session_id, message_id, part_id)] = text[:TEXT_INDEXED_MAX]
        elif part.seq:  # What it said before is said no longer. A part still streaming has never been indexed.
            self.texts[keys.text(part.session_id, message_id, part_id)] = None


def named_title(session: Session) -> str | None:
    """The title, if anybody gave it; nobody looks for the words of one that was not."""
    return None if is_default(session.title) else session.title


def _row(session_id: str, time: int, event: e.UsageRecorded) -> LedgerRow:
    return LedgerRow(
        session_id=session_id,
        time=time,
        purpose=event.purpose,
        provider_id=event.provider_id,
        model_id=event.model_id,
        message_id=event.message_id,
        attempt=event.attempt,
        tokens=event.tokens,
        cost=event.cost,
    )


def _state_of(view: SessionView, head: str) -> State:
    turn = view.turn.message.id if view.turn else None
    return State(head=head, project_id=view.session.project_id, turn=turn, shape=SHAPE, **_small(view))


def _small(source: ViewState) -> dict[str, Any]:
    """The small fields of a view or of a state document, whatever they are. ``Any`` because each has its own type."""
    return {name: getattr(source, name) for name in ViewState.__struct_fields__}


def _at_work(view: SessionView | None) -> bool:
    """Whether a process runs the session, or died while it did."""
    return view is not None and (view.turn is not None or not isinstance(view.status, Idle))


def searchable(part: Part) -> str | None:
    """The words of a part that search finds, once they are settled; text still streaming is not indexed."""
    if isinstance(part, TextPart):  # Most parts are, and a pattern costs three times as much.
        return part.text if part.time is None or part.time.end is not None else None
    match part:
        case ReasoningPart(text=text, time=time):
            return text if time.end is not None else None
        case ToolPart(state=ToolCompleted(title=title) as state):
            return f"{title}\n{whole_output(state)}"  # Also what the model was not shown of it.
        case ToolPart(state=ToolError(error=error)):
            return error
        case SubtaskPart(prompt=prompt, description=description):
            return f"{description}\n{prompt}"
        case _:
            return None


def _seq_of(part: Part, before: SessionView | None, seq: int) -> int:
    """The place of the event that made this part: its own, or what the open turn knows, or this one."""
    if part.seq:
        return part.seq
    if before is not None and before.turn is not None and part.id in before.turn.parts:
        return before.turn.parts[part.id].seq
    return seq


async def load(engine: Engine, session_id: str) -> tuple[SessionView, str] | None:
    """The view that a session's documents stand for, and the hash of the log's head; None if there is none.

    Where the state document was written by a version whose view had other fields, the log is folded instead.
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
        # Several reads make one view. The second look at the state document shows that nothing changed between them.
        if [stored] == await engine.get([keys.state(session_id)]):
            return loaded


async def _folded(engine: Engine, session_id: str, state: State) -> tuple[SessionView, str]:
    """The fold of the log up to the event that the state document names."""
    view: SessionView | None = None
    head = ""
    for after in range(0, state.seq, LOG_PAGE):
        entries = await engine.read(session_id, after=after, limit=min(LOG_PAGE, state.seq - after))
        for recorded, link in entry.chain(session_id, entries, after=after, prev=head):
            view, head = apply(view, recorded), link
    if view is None or view.seq < state.seq:
        seq = view.seq + 1 if view is not None else 1
        raise Damaged(seq, f"is missing from the log of {session_id}, which once had {state.seq}")
    return view, head


async def _load(engine: Engine, session_id: str, state: State) -> tuple[SessionView, str] | None:
    session, todos, epoch = await engine.get(
        [keys.session(state.project_id, session_id), keys.todo(session_id), keys.epoch(session_id)]
    )
    if session is None:
        return None
    admitted = [_admitted.decode(body) for _, body in await engine.scan(("inbox", session_id))]
    view = SessionView(
        session=read_session(session),
        todos=read_todos(todos) if todos else (),
        inbox=tuple(sorted(admitted, key=lambda prompt: prompt.seq)),
        epoch=_epoch.decode(epoch) if epoch else None,
        turn=await _load_turn(engine, session_id, state.turn) if state.turn else None,
        **_small(state),
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
    """The parts of a message in the order they came, each with the text that was added to it since."""
    parts = [read_part(body) for key, body in stored if len(key) == 3]
    if len(parts) != len(stored):
        parts = _with_pieces(parts, stored)
    parts.sort(key=_place)
    return parts


def _with_pieces(parts: list[Part], stored: list[tuple[Key, bytes]]) -> list[Part]:
    found = {part.id: part for part in parts}
    for key, body in stored:  # In key order, so the pieces of a part come by their offsets.
        part = found.get(key[2])
        if len(key) == 4 and isinstance(part, TextPart | ReasoningPart):
            found[part.id] = part.but(text=part.text + _piece.decode(body))
    return list(found.values())

"""Bodies of requests as bytes: what a session's last request said already is not said again from the beginning.

A request repeats the one before and adds to it. So the wire form of what is repeated is kept, as bytes, and only the
rest is made anew. The bytes are those that encoding the whole would give: a conversation is cut only at a **seam**,
where no protocol and no family of models looks across, and where one might, nothing is kept. They are handed out in
pieces, so that what is kept is not copied either.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.core.strand import Strand
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    ModelMessage,
    ModelRequest,
    Result,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.providers import cache_points, transforms
from turnkeeper.providers.codec import Codec, Wire, encode_body, encode_value
from turnkeeper.providers.endpoint import Endpoint

TOOLS: Final = "tools"
"""Where in a body the tools stand, in every protocol. They depend on nothing that is said."""
KEPT_MAX: Final = 64
"""Conversations of which the wire form is kept."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""And how large all of it may be."""
BLOCK: Final = 128 * 1024
"""What is kept is divided into blocks of this size; to add to it copies the last one."""
SMALL: Final = 16 * 1024
"""Pieces below this size are joined to their neighbours: each one is a call of the system."""

BodyPiece: TypeAlias = bytes | memoryview


class Bodies:
    """The requests to one endpoint as bytes. Only a memory: without it the same bytes are made anew."""

    def __init__(self, codec: Codec, endpoint: Endpoint, *, block: int = BLOCK, small: int = SMALL) -> None:
        self._codec, self._endpoint, self._block, self._small = codec, endpoint, block, small
        self._kept: OrderedDict[tuple[str, int], _Said] = OrderedDict()
        self.repeated = 0
        """How many messages of the last request were not made anew."""

    def pieces(self, request: ModelRequest) -> list[BodyPiece]:
        """The body of a request, to be sent piece by piece. What the pieces hold never changes."""
        said = self._said(request)
        if said is None:
            return [encode_body(self._codec.body(request, self._endpoint))]
        marked = [_copy(one.item) for one in said.markable]
        tail = self._items(request, request.messages[len(said.messages) :])
        # Tools that are the same are not described again; a cache point may stand at the last one.
        knows_tools = request.tools is said.tools
        framed = request.but(tools=request.tools[-1:]) if knows_tools else request
        wire = self._codec.frame(framed, self._endpoint, [*marked, *tail])
        if not knows_tools:
            said.tools, said.tools_encoded = request.tools, encode_value(wire.get(TOOLS))
        return _gathered(_assembled(wire, self._codec.MESSAGES, said, len(marked), len(tail)), self._small)

    def _said(self, request: ModelRequest) -> "_Said | None":
        """What of the request is known, brought up to its newest seam; None if all of it must be made anew."""
        self.repeated = 0
        if not request.session_id or not request.messages or transforms.is_mistral(request.model):
            # Mistral's short call ids are counted from the beginning.
            return None
        # By its first message: a title is asked for in the name of the same session. The entry holds on to it, so that
        # no other message can have its identity.
        messages = Strand.of(request.messages)
        key = (request.session_id, id(messages[0]))
        said = self._kept.pop(key, None)
        if said is None or not said.is_repeated_by(request, messages):
            said = _Said(request, self._block)
        self.repeated = len(said.messages)
        seam = _newest_seam(messages, self.repeated)
        new, rest = messages[self.repeated : seam], messages[seam:]
        if not seam or said.is_called_from(new):
            return None
        if new:
            said.extend(messages.first(seam), new, self._items(request, new))
        if said.is_called_from(rest):
            return None
        self._kept[key] = said
        self._let_go()
        return said

    def _items(self, request: ModelRequest, messages: Sequence[ModelMessage]) -> list[Wire]:
        return self._codec.conversation(request.but(messages=messages), self._endpoint)

    def _let_go(self) -> None:
        size = sum(len(one.encoded) for one in self._kept.values())
        while self._kept and (len(self._kept) > KEPT_MAX or size > BYTES_MAX):
            size -= len(self._kept.popitem(last=False)[1].encoded)


class _Markable(NamedTuple):
    """An item that may get a cache point, and where its bytes stand."""

    item: Wire
    start: int
    end: int


class _Said:
    """The beginning of a conversation, up to a seam, as it stands on the wire."""

    def __init__(self, request: ModelRequest, block: int) -> None:
        self._model, self._options = request.model, request.options
        self.messages: Strand[ModelMessage] = Strand()
        self.encoded = _Blocks(block)
        """The items, joined by commas."""
        self.markable: list[_Markable] = []
        self.tools: Sequence[ToolDefinition] | None = None
        """The tools as they were last asked with, and as they stand on the wire."""
        self.tools_encoded = b""
        self._calls: set[str] = set()

    def is_repeated_by(self, request: ModelRequest, messages: Strand[ModelMessage]) -> bool:
        """Whether a request begins with these very messages, and they are still cut off from the rest."""
        return (
            len(messages) > len(self.messages)
            and messages.begins_with(self.messages)
            and _is_seam(messages, len(self.messages))
            and request.model == self._model
            and request.options == self._options
        )

    def is_called_from(self, messages: Iterable[ModelMessage]) -> bool:
        """Whether a result behind the seam belongs to a call before it: its wire form may depend on the call's."""
        results = (result for message in messages for result in _results(message))
        return any(result.call_id in self._calls for result in results)

    def extend(self, messages: Strand[ModelMessage], new: Sequence[ModelMessage], items: Sequence[Wire]) -> None:
        """Say more, up to the next seam: ``new``, so that it is all of ``messages``."""
        markable = self.markable
        more = bytearray()
        known = len(self.encoded)
        for item in items:
            if known or more:
                more += b","
            start = known + len(more)
            more += encode_value(item)
            markable.append(_Markable(item, start, known + len(more)))
        self.encoded.add(more)
        kept = cache_points.markable([one.item for one in markable])
        self.markable = [markable[index] for index in kept]
        self.messages = messages
        self._calls.update(
            part.id
            for message in new
            if isinstance(message, AssistantTurn)
            for part in message.content
            if isinstance(part, Call)
        )


class _Blocks:
    """Bytes that grow. What was handed out of them never changes."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks = [b""]  # All but the last are as long as a block.

    def __len__(self) -> int:
        return (len(self._blocks) - 1) * self._size + len(self._blocks[-1])

    def add(self, more: bytes | bytearray) -> None:
        """Put more behind them."""
        last, size = self._blocks.pop() + more, self._size
        self._blocks += [last[start : start + size] for start in range(0, max(1, len(last)), size)]

    def between(self, start: int, end: int) -> Iterator[memoryview]:
        """Some of them, uncopied."""
        while start < end:
            nth, first = divmod(start, self._size)
            yield memoryview(self._blocks[nth])[first : min(self._size, end - nth * self._size)]
            start = (nth + 1) * self._size


def _assembled(wire: Wire, field: str, said: _Said, marked: int, tail: int) -> list[BodyPiece]:
    """A body, of whose conversation only what may be marked and what is new is in ``wire``."""
    pieces: list[BodyPiece] = []
    repeated: list[bytes] = []
    place = 0
    for key, value in wire.items():
        pieces += [b"," if pieces else b"{", encode_value(key), b":"]
        if key != field:
            pieces.append(said.tools_encoded if key == TOOLS else encode_value(value))
            continue
        assert isinstance(value, list), "a conversation is a list"
        items = [encode_value(item) for item in value]
        head = len(items) - marked - tail  # System texts, in protocols that have them here.
        repeated = items[head : head + marked]
        pieces += [b"[", *(item + b"," for item in items[:head])]
        place = len(pieces)
        pieces += [*(b"," + item for item in items[head + marked :]), b"]"]
    return [*pieces[:place], *_with_marks(said, repeated), *pieces[place:], b"}"]


def _gathered(pieces: Iterable[BodyPiece], least: int) -> list[BodyPiece]:
    """Pieces that are worth a call each."""
    gathered: list[BodyPiece] = []
    small: list[BodyPiece] = []
    for piece in pieces:
        if len(piece) < least:
            small.append(piece)
            continue
        gathered += [b"".join(small), piece] if small else [piece]
        small = []
    return [*gathered, b"".join(small)]


def _copy(item: Wire) -> Wire:
    """An item that can be given a cache point: its blocks are copies, what they hold is not."""
    content = item.get("content")
    if not isinstance(content, list):
        return dict(item)
    return {**item, "content": [dict(block) if isinstance(block, dict) else block for block in content]}


def _with_marks(said: _Said, marked: Sequence[bytes]) -> Iterator[BodyPiece]:
    """What was said, with the items that may be marked as they are now."""
    place = 0
    for one, item in zip(said.markable, marked, strict=True):
        yield from said.encoded.between(place, one.start)
        yield item
        place = one.end
    yield from said.encoded.between(place, len(said.encoded))


def _newest_seam(messages: Sequence[ModelMessage], known: int) -> int:
    return next((place for place in range(len(messages) - 1, known, -1) if _is_seam(messages, place)), known)


def _is_seam(messages: Sequence[ModelMessage], place: int) -> bool:
    """Whether the conversation may be cut before this message: it is the assistant's, and the one before is not.

    Both have something that no protocol leaves out; so neither vanishes, and neither is joined to the other.
    """
    if place == 0:
        return True
    before, after = messages[place - 1], messages[place]
    return isinstance(after, AssistantTurn) and any(map(_is_spoken, after.content)) and _is_heard(before)


def _is_spoken(part: object) -> bool:
    return (isinstance(part, Text) and bool(part.text)) or (isinstance(part, Call) and not part.executed)


def _is_heard(message: ModelMessage) -> bool:
    match message:
        case UserTurn(content=content):
            return any(isinstance(part, Text) and part.text for part in content)
        case ToolTurn(results=results):
            return bool(results)
        case _:
            return False


def _results(message: ModelMessage) -> Iterable[Result]:
    match message:
        case ToolTurn(results=results):
            return results
        case AssistantTurn(content=content):
            return (part for part in content if isinstance(part, Result))
        case _:
            return ()

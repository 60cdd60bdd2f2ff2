"""Request bodies as bytes, with a cache of the encoded prefix of each conversation.

A request repeats the previous one and appends to it. The cache holds the encoded prefix, so that only the new messages
are encoded. The bytes are equal to those of encoding the whole request: a prefix ends only at a **seam**, across which
no protocol and no model family joins or changes messages. A body is a list of pieces, so the prefix is not copied.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

from turnkeeper.core.persistent_list import PersistentList
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
from turnkeeper.providers.codec import Codec, Wire, encode_body
from turnkeeper.providers.endpoint import Endpoint

TOOLS: Final = "tools"
"""The field of a body that holds the tools, in every protocol. It does not depend on the messages."""
KEPT_MAX: Final = 64
"""Maximum number of conversations in the cache."""
BYTES_MAX: Final = 64 * 1024 * 1024
"""Maximum size of the cache."""
BLOCK: Final = 128 * 1024
"""Size of a block of cached bytes. Appending copies only the last block."""
SMALL: Final = 16 * 1024
"""Pieces below this size are joined, because each piece costs a system call."""

BodyPiece: TypeAlias = bytes | memoryview


class Bodies:
    """Encodes the requests to one endpoint and caches their prefixes. The cache does not change the bytes."""

    def __init__(self, codec: Codec, endpoint: Endpoint, *, block: int = BLOCK, small: int = SMALL) -> None:
        self._codec, self._endpoint, self._block, self._small = codec, endpoint, block, small
        self._cache: OrderedDict[tuple[str, int], _CachedPrefix] = OrderedDict()
        self.repeated = 0
        """Number of messages of the last request that came from the cache."""

    def pieces(self, request: ModelRequest) -> list[BodyPiece]:
        """The body of a request as immutable pieces."""
        prefix = self._prefix(request)
        if prefix is None:
            return [encode_body(self._codec.body(request, self._endpoint))]
        marked = [_copy(one.item) for one in prefix.markable]
        tail = self._items(request, request.messages[len(prefix.messages) :])
        # Unchanged tools are not encoded again, except the last one, which may have a cache point.
        knows_tools = request.tools is prefix.tools
        framed = request.but(tools=request.tools[-1:]) if knows_tools else request
        wire = self._codec.frame(framed, self._endpoint, [*marked, *tail])
        if not knows_tools:
            prefix.tools, prefix.tools_encoded = request.tools, encode_body(wire.get(TOOLS))
        return _gathered(_assembled(wire, self._codec.MESSAGES, prefix, len(marked), len(tail)), self._small)

    def _prefix(self, request: ModelRequest) -> "_CachedPrefix | None":
        """The cached prefix of a request, extended to its newest seam; None if the whole request must be encoded."""
        self.repeated = 0
        if not request.session_id or not request.messages or transforms.is_mistral(request.model):
            # Mistral's short call ids depend on all earlier messages.
            return None
        # The first message is part of the key because requests for a title have the session's id too. The entry keeps
        # a reference to that message, so its identity is not reused.
        messages = PersistentList.of(request.messages)
        key = (request.session_id, id(messages[0]))
        prefix = self._cache.pop(key, None)
        if prefix is None or not prefix.is_repeated_by(request, messages):
            prefix = _CachedPrefix(request, self._block)
        self.repeated = len(prefix.messages)
        seam = _newest_seam(messages, self.repeated)
        new, rest = messages[self.repeated : seam], messages[seam:]
        if not seam or prefix.has_calls_of(new):
            return None
        if new:
            prefix.extend(messages.first(seam), new, self._items(request, new))
        if prefix.has_calls_of(rest):
            return None
        self._cache[key] = prefix
        self._evict()
        return prefix

    def _items(self, request: ModelRequest, messages: Sequence[ModelMessage]) -> list[Wire]:
        return self._codec.conversation(request.but(messages=messages), self._endpoint)

    def _evict(self) -> None:
        size = sum(len(one.encoded) for one in self._cache.values())
        while self._cache and (len(self._cache) > KEPT_MAX or size > BYTES_MAX):
            size -= len(self._cache.popitem(last=False)[1].encoded)


class _Markable(NamedTuple):
    """An item that may get a cache point, and the range of its bytes in the prefix."""

    item: Wire
    start: int
    end: int


class _CachedPrefix:
    """The encoded beginning of a conversation, up to a seam."""

    def __init__(self, request: ModelRequest, block: int) -> None:
        self._model, self._options = request.model, request.options
        self.messages: PersistentList[ModelMessage] = PersistentList()
        self.encoded = _Blocks(block)
        """The items, joined by commas."""
        self.markable: list[_Markable] = []
        self.tools: Sequence[ToolDefinition] | None = None
        """The tools of the last request; ``tools_encoded`` is their wire format."""
        self.tools_encoded = b""
        self._calls: set[str] = set()

    def is_repeated_by(self, request: ModelRequest, messages: PersistentList[ModelMessage]) -> bool:
        """Whether a request begins with the messages of this prefix, and the prefix still ends at a seam."""
        return (
            len(messages) > len(self.messages)
            and messages.begins_with(self.messages)
            and _is_seam(messages, len(self.messages))
            and request.model == self._model
            and request.options == self._options
        )

    def has_calls_of(self, messages: Iterable[ModelMessage]) -> bool:
        """Whether a result in ``messages`` belongs to a call in the prefix: its wire format may depend on the call."""
        results = (result for message in messages for result in _results(message))
        return any(result.call_id in self._calls for result in results)

    def extend(
        self, messages: PersistentList[ModelMessage], new: Sequence[ModelMessage], items: Sequence[Wire]
    ) -> None:
        """Append the ``new`` messages and their items; ``messages`` is the prefix with them."""
        markable = self.markable
        more = bytearray()
        known = len(self.encoded)
        for item in items:
            if known or more:
                more += b","
            start = known + len(more)
            more += encode_body(item)
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
    """An append-only byte buffer whose views stay valid."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._blocks = [b""]  # All but the last have the full size.

    def __len__(self) -> int:
        return (len(self._blocks) - 1) * self._size + len(self._blocks[-1])

    def add(self, more: bytes | bytearray) -> None:
        """Append bytes."""
        last, size = self._blocks.pop() + more, self._size
        self._blocks += [last[start : start + size] for start in range(0, max(1, len(last)), size)]

    def between(self, start: int, end: int) -> Iterator[memoryview]:
        """The bytes of a range, uncopied."""
        while start < end:
            nth, first = divmod(start, self._size)
            yield memoryview(self._blocks[nth])[first : min(self._size, end - nth * self._size)]
            start = (nth + 1) * self._size


def _assembled(wire: Wire, field: str, prefix: _CachedPrefix, marked: int, tail: int) -> list[BodyPiece]:
    """The pieces of a body; ``wire`` has only the markable and the new items of the conversation."""
    pieces: list[BodyPiece] = []
    repeated: list[bytes] = []
    place = 0
    for key, value in wire.items():
        pieces += [b"," if pieces else b"{", encode_body(key), b":"]
        if key != field:
            pieces.append(prefix.tools_encoded if key == TOOLS else encode_body(value))
            continue
        assert isinstance(value, list), "a conversation is a list"
        items = [encode_body(item) for item in value]
        head = len(items) - marked - tail  # Number of system messages, in protocols that put them here.
        repeated = items[head : head + marked]
        pieces += [b"[", *(item + b"," for item in items[:head])]
        place = len(pieces)
        pieces += [*(b"," + item for item in items[head + marked :]), b"]"]
    return [*pieces[:place], *_with_marks(prefix, repeated), *pieces[place:], b"}"]


def _gathered(pieces: Iterable[BodyPiece], least: int) -> list[BodyPiece]:
    """The pieces with small neighbours joined."""
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
    """A copy of an item and its blocks, to which a cache point can be added."""
    content = item.get("content")
    if not isinstance(content, list):
        return dict(item)
    return {**item, "content": [dict(block) if isinstance(block, dict) else block for block in content]}


def _with_marks(prefix: _CachedPrefix, marked: Sequence[bytes]) -> Iterator[BodyPiece]:
    """The prefix with its markable items replaced by their current bytes."""
    place = 0
    for one, item in zip(prefix.markable, marked, strict=True):
        yield from prefix.encoded.between(place, one.start)
        yield item
        place = one.end
    yield from prefix.encoded.between(place, len(prefix.encoded))


def _newest_seam(messages: Sequence[ModelMessage], known: int) -> int:
    return next((place for place in range(len(messages) - 1, known, -1) if _is_seam(messages, place)), known)


def _is_seam(messages: Sequence[ModelMessage], place: int) -> bool:
    """Whether a prefix may end before this message: it is an assistant turn, and the previous message is none.

    Both have content that every protocol sends, so that neither is left out nor joined to the other.
    """
    if place == 0:
        return True
    before, after = messages[place - 1], messages[place]
    return isinstance(after, AssistantTurn) and any(map(_is_sent, after.content)) and _has_input(before)


def _is_sent(part: object) -> bool:
    """Whether every protocol sends this part of an assistant turn."""
    return (isinstance(part, Text) and bool(part.text.strip())) or (isinstance(part, Call) and not part.executed)


def _has_input(message: ModelMessage) -> bool:
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

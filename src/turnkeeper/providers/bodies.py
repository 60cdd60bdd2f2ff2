"""Bodies of requests as bytes: what a session's last request said already is not said again from the beginning.

A request repeats the one before and adds to it. So the wire form of what is repeated is kept, as bytes, and only the
rest is made anew. The bytes are those that encoding the whole would give: a conversation is cut only at a **seam**,
where no protocol and no family of models looks across, and where one might, nothing is kept.
"""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

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


class Bodies:
    """The requests to one endpoint as bytes. Only a memory: without it the same bytes are made anew."""

    def __init__(self, codec: Codec, endpoint: Endpoint) -> None:
        self._codec, self._endpoint = codec, endpoint
        self._kept: OrderedDict[tuple[str, int], _Said] = OrderedDict()
        self.repeated = 0
        """How many messages of the last request were not made anew."""

    def encode(self, request: ModelRequest) -> bytes:
        """The body of a request."""
        said = self._said(request)
        if said is None:
            return encode_body(self._codec.body(request, self._endpoint))
        marked = [_copy(one.item) for one in said.markable]
        tail = self._items(request, request.messages[len(said.messages) :])
        # Tools that are the same are not described again; a cache point may stand at the last one.
        knows_tools = request.tools is said.tools
        framed = request.but(tools=request.tools[-1:]) if knows_tools else request
        wire = self._codec.frame(framed, self._endpoint, [*marked, *tail])
        if not knows_tools:
            said.tools, said.tools_encoded = request.tools, encode_value(wire.get(TOOLS))
        return _joined(wire, self._codec.MESSAGES, said, len(marked), len(tail))

    def _said(self, request: ModelRequest) -> "_Said | None":
        """What of the request is known, brought up to its newest seam; None if all of it must be made anew."""
        self.repeated = 0
        if not request.session_id or not request.messages or transforms.is_mistral(request.model):
            # Mistral's short call ids are counted from the beginning.
            return None
        # By its first message: a title is asked for in the name of the same session. The entry holds on to it, so that
        # no other message can have its identity.
        key = (request.session_id, id(request.messages[0]))
        said = self._kept.pop(key, None)
        if said is None or not said.is_repeated_by(request):
            said = _Said(request)
        self.repeated = len(said.messages)
        seam = _newest_seam(request.messages, self.repeated)
        new, rest = request.messages[self.repeated : seam], request.messages[seam:]
        if not seam or said.is_called_from(new):
            return None
        if new:
            said.extend(new, self._items(request, new))
        if said.is_called_from(rest):
            return None
        self._kept[key] = said
        self._let_go()
        return said

    def _items(self, request: ModelRequest, messages: tuple[ModelMessage, ...]) -> list[Wire]:
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

    def __init__(self, request: ModelRequest) -> None:
        self._model, self._options = request.model, request.options
        self.messages: tuple[ModelMessage, ...] = ()
        self.encoded = bytearray()
        """The items, joined by commas."""
        self.markable: list[_Markable] = []
        self.tools: Sequence[ToolDefinition] | None = None
        """The tools as they were last asked with, and as they stand on the wire."""
        self.tools_encoded = b""
        self._calls: set[str] = set()

    def is_repeated_by(self, request: ModelRequest) -> bool:
        """Whether a request begins with these very messages, and they are still cut off from the rest."""
        return (
            len(request.messages) > len(self.messages)
            # By content, which costs next to nothing where they are the same objects.
            and self.messages == request.messages[: len(self.messages)]
            and _is_seam(request.messages, len(self.messages))
            and request.model == self._model
            and request.options == self._options
        )

    def is_called_from(self, messages: Iterable[ModelMessage]) -> bool:
        """Whether a result behind the seam belongs to a call before it: its wire form may depend on the call's."""
        results = (result for message in messages for result in _results(message))
        return any(result.call_id in self._calls for result in results)

    def extend(self, messages: tuple[ModelMessage, ...], items: Sequence[Wire]) -> None:
        """Say more, up to the next seam."""
        markable = self.markable
        for item in items:
            if self.encoded:
                self.encoded += b","
            start = len(self.encoded)
            self.encoded += encode_value(item)
            markable.append(_Markable(item, start, len(self.encoded)))
        kept = cache_points.markable([one.item for one in markable])
        self.markable = [markable[index] for index in kept]
        self.messages += messages
        self._calls.update(
            part.id
            for message in messages
            if isinstance(message, AssistantTurn)
            for part in message.content
            if isinstance(part, Call)
        )


def _joined(wire: Wire, field: str, said: _Said, marked: int, tail: int) -> bytes:
    """A body, of whose conversation only what may be marked and what is new is in ``wire``."""
    pieces: list[bytes] = []
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
    return b"".join((*pieces[:place], *_with_marks(said, repeated), *pieces[place:], b"}"))


def _copy(item: Wire) -> Wire:
    """An item that can be given a cache point: its blocks are copies, what they hold is not."""
    content = item.get("content")
    if not isinstance(content, list):
        return dict(item)
    return {**item, "content": [dict(block) if isinstance(block, dict) else block for block in content]}


def _with_marks(said: _Said, marked: Sequence[bytes]) -> Iterator[bytes | memoryview]:
    """What was said, with the items that may be marked as they are now; nothing else is copied."""
    shown, place = memoryview(said.encoded), 0
    for one, item in zip(said.markable, marked, strict=True):
        yield shown[place : one.start]
        yield item
        place = one.end
    yield shown[place:]


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

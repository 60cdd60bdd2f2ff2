"""Prefixes: measures how many bytes of the previous request each request repeats. In an epoch it should be all."""

from collections.abc import Mapping, Sequence
from hashlib import sha256

from turnkeeper.core.limits import CACHE_KEPT_S
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.model.context import Epoch, Mark, Prefix
from turnkeeper.model.request import ModelRequest, ToolDefinition
from turnkeeper.model.value import JsonObject, encode

PASSED = "the request before it ended with words for that request only"
TOOLS = "the tool list changed"
MODEL = "the model changed"
SYSTEM = "the System Context was rewritten"
HISTORY = "the history was changed"
CHOICE = "the tool choice changed, for which some providers read the messages anew"


def measure(
    request: ModelRequest,
    before: Prefix | None,
    epoch: Epoch,
    *,
    now: int,
    passing: int = 0,
    encoded: Sequence[bytes] = (),
    rewritten: str | None = None,
    meter: "Meter | None" = None,
    changes: tuple[str, ...] = (),
    servers: Mapping[str, str] | None = None,
    plugins: Mapping[str, str] | None = None,
) -> Prefix:
    """How much of the request ``before`` a request repeats. Its last ``passing`` messages are in no later request.

    A request is hashed piece by piece in the order of a provider's cache: tools, system, then each message. ``encoded``
    is the JSON of its first messages. ``rewritten`` is the reason of an event that changed the history since.
    ``meter`` keeps the hashes of the previous request, so that repeated pieces are not hashed again. ``changes`` are
    those of plugins, which may be the cause; so may the tools be of MCP servers and of plugins, of which ``servers``
    and ``plugins`` have a hash.
    """
    meter = meter or Meter()
    front = (meter.head(request), *(encode(text) for text in request.system))
    rest = [encode(message) for message in request.messages[len(encoded) :]]
    said = PersistentList.of(encoded).plus(rest[: len(rest) - passing])
    lasting = len(front) + len(said)
    places = {1, len(front), lasting, *([before.pieces] if before is not None else [])}
    marks = meter.marks(front, said, places)
    prefix = Prefix(
        pieces=lasting,
        bytes=marks[lasting].bytes,
        hash=marks[lasting].hash,
        passing=sum(map(len, rest[len(rest) - passing :])),
        epoch=epoch.number,
        at=now,
        model=_model(request),
        choice=request.tool_choice,
        tools=marks[1],
        system=marks[len(front)],
        changes=changes,
        servers=dict(servers or {}),
        plugins=dict(plugins or {}),
    )
    if before is None:
        return prefix.but(cause=_began(epoch))
    start = marks.get(before.pieces)
    is_whole = start is not None and start.hash == before.hash
    return prefix.but(
        before=before.bytes + before.passing,
        reused=before.bytes if is_whole else _common(prefix, before),
        cause=(PASSED if before.passing else None) if is_whole else _cause(prefix, before, epoch, rewritten),
        note=_note(request, prefix, before),
    )


class Meter:
    """Hashes the pieces of requests; pieces that repeat the previous request are not hashed again."""

    def __init__(self) -> None:
        self._tools: tuple[str, Sequence[ToolDefinition]] | None = None
        self._head = b""
        self._begin()

    def head(self, request: ModelRequest) -> bytes:
        """The first piece of a request: model and tools. An unchanged tool list is not encoded again."""
        model = _model(request)
        if self._tools is None or self._tools[0] != model or self._tools[1] is not request.tools:
            self._tools, self._head = (model, request.tools), encode([model, request.tools])
        return self._head

    def _begin(self) -> None:
        self._front: tuple[bytes, ...] = ()
        self._said: PersistentList[bytes] = PersistentList()
        self._digest, self._size = sha256(), 0
        self._marks: dict[int, Mark] = {}

    def marks(self, front: tuple[bytes, ...], said: PersistentList[bytes], places: set[int]) -> dict[int, Mark]:
        """The size and hash after so many pieces; a place beyond the end of the request has none."""
        known = len(self._front) + len(self._said)
        is_longer = self._front == front and said.begins_with(self._said)
        if not is_longer or any(place <= known and place not in self._marks for place in places):
            self._begin()
            known = 0
        new = said[known - len(front) :] if known else (*front, *said)
        for number, part in enumerate(new, known + 1):
            self._digest.update(len(part).to_bytes(8, "big"))
            self._digest.update(part)
            self._size += len(part)
            if number in places:
                self._marks[number] = Mark(bytes=self._size, hash=self._digest.copy().hexdigest()[:32])
        self._front, self._said = front, said
        self._marks = {place: mark for place, mark in self._marks.items() if place in places}
        return self._marks


def reuse_percent(*prefixes: Prefix) -> int | None:
    """The percentage of their previous requests that these requests repeat; None if there was none."""
    before = sum(one.before for one in prefixes)
    return sum(one.reused for one in prefixes) * 100 // before if before else None


def _model(request: ModelRequest) -> str:
    return f"{request.model.provider_id}/{request.model.api_id}"


def _common(prefix: Prefix, before: Prefix) -> int:
    """The bytes that a request shares with a previous one that it does not extend: tools and baseline, or tools."""
    for mine, other in ((prefix.system, before.system), (prefix.tools, before.tools)):
        if mine is not None and mine == other:
            return mine.bytes
    return 0


def _cause(prefix: Prefix, before: Prefix, epoch: Epoch, rewritten: str | None) -> str:
    if prefix.epoch != before.epoch:
        return _began(epoch)
    if prefix.model != before.model:
        return MODEL
    if prefix.tools != before.tools:
        return _with_culprit(_with_server(TOOLS, prefix, before), "tools", prefix, before)
    if prefix.system != before.system:
        return _with_culprit(SYSTEM, "system", prefix, before)
    return rewritten or _with_culprit(HISTORY, "messages", prefix, before)


def _with_server(cause: str, prefix: Prefix, before: Prefix) -> str:
    """A cause with the MCP servers that offer other tools than before."""
    names = _differing(prefix.servers, before.servers)
    return f"{cause}, by the MCP server {', '.join(names)}" if names else cause


def _with_culprit(cause: str, what: str, prefix: Prefix, before: Prefix) -> str:
    """A cause with the plugins that changed this of the request, or of the one before it, or brought other tools."""
    changes = (one.rpartition(": ") for one in (*prefix.changes, *before.changes))
    names = dict.fromkeys(name for name, _, changed in changes if changed == what)
    if what == "tools":
        names |= dict.fromkeys(_differing(prefix.plugins, before.plugins))
    return f"{cause}, by the plugin {', '.join(names)}" if names else cause


def _differing(now: Mapping[str, str], then: Mapping[str, str]) -> list[str]:
    return sorted(name for name in now.keys() | then.keys() if now.get(name) != then.get(name))


def is_cold(before: Prefix | None, options: JsonObject, now: int) -> bool:
    """Whether the provider has probably dropped the previous request from its cache."""
    return before is not None and now - before.at > _kept_s(options) * 1000


def _began(epoch: Epoch) -> str:
    return f"epoch {epoch.number} began: {epoch.reason}"


def _note(request: ModelRequest, prefix: Prefix, before: Prefix) -> str | None:
    """Why the provider may reuse less than the common prefix."""
    kept_s = _kept_s({**request.model.options, **request.options})
    notes = [CHOICE] if prefix.choice != before.choice else []
    if prefix.at - before.at > kept_s * 1000:
        notes.append(f"more than {kept_s // 60:g} minutes have passed: the provider may have let go of its cache")
    return "; ".join(notes) or None


def _kept_s(options: JsonObject) -> int | float:
    wanted = options.get("cacheTtl")
    return max(CACHE_KEPT_S, wanted) if isinstance(wanted, int | float) else CACHE_KEPT_S

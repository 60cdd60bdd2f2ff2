"""Lowering: turns a history into the messages of a request. Equal histories and models give equal messages.

For any log (crashed turns, foreign models, odd ids, no messages) the result obeys ``testing/laws.py``: no message can
make a session unusable.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence

from turnkeeper.core.handles import handle, whole_output
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.persistent_list import PersistentList
from turnkeeper.core.prefix import Meter
from turnkeeper.core.quarantine import without
from turnkeeper.core.sources import without_sources
from turnkeeper.core.window import Gauge, chars_of
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import (
    CompactionPart,
    FilePart,
    Part,
    ReasoningPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolTurn,
    UserTurn,
)
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.text.surrogates import clean, clean_json, clean_object

CLEARED = "[Old tool result content cleared]"
INTERRUPTED = "[The tool was interrupted before it gave a result]"
LEFT = "[The tool was interrupted and had not ended yet: what it started is being ended, or may still be at work]"
STOPPED = "[The tool was stopped before it was done; above is its output until then]"
NO_OUTPUT = "[The tool gave no output]"
COMPACTED = "What did we do so far?"
DELEGATED = "The following tool was executed by the user"
MADE = "[The assistant made a file here: {}]"
FROM_TOOL = "These files come from the tool result above:"
EARLIER = "[The beginning of this conversation is not shown]"
CONTINUE = "Continue."

OPENING = UserTurn(content=(Text(text=EARLIER),))
_OPENING_JSON = encode(OPENING)
# One value for all requests, because prefixes of earlier requests are compared by identity.

_DATA_URL = re.compile(r"data:([^;,]*)(;base64)?,(.*)", re.DOTALL)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MIME = re.compile(r"[\w.+-]+/[\w.+*-]+", re.ASCII)
_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def lower(entries: Iterable[HistoryItem], model: ModelInfo) -> tuple[ModelMessage, ...]:
    """The messages of a request for this history, with a continuation if the model's own turn is last."""
    messages = conversation(entries, model)
    return (*messages, *continuation(messages))


def conversation(entries: Iterable[HistoryItem], model: ModelInfo) -> Sequence[ModelMessage]:
    """The messages for this history. A longer history only adds messages, so that a provider's cache stays valid."""
    lowered = Lowered(model)
    lowered.add(entries)
    return lowered.messages


class Lowered:
    """A history lowered for one model, entry by entry; each message is encoded once."""

    def __init__(self, model: ModelInfo, left_out: Collection[str] = ()) -> None:
        self.model, self.left_out = model, left_out
        self.gauge = Gauge()
        self.outputs = 0
        """Characters of tool outputs that are not pruned."""
        self.sources: list[str] = []
        """For each message but OPENING, the id of its history message."""
        self.meter = Meter()
        """Measures the prefixes of the requests."""
        self._names = _CallNames()
        self._messages: PersistentList[ModelMessage] = PersistentList()
        self._encoded: PersistentList[bytes] = PersistentList()
        self._has_begun = False  # Whether the role of the first message is known.

    def add(self, entries: Iterable[HistoryItem]) -> None:
        """Lower the next entries."""
        said: list[ModelMessage] = []
        spelt: list[bytes] = []
        for entry in entries:
            at = self.gauge.chars
            for message in _entry(without(entry, self.left_out), self.model, self._names):
                encoded = encode(message)
                said.append(message)
                spelt.append(encoded)
                self.sources.append(entry.message.id)
                self.gauge.add(chars_of(message, encoded))
                if isinstance(message, AssistantTurn):
                    at = self.gauge.chars
            if isinstance(entry.message, AssistantMessage):
                self.gauge.report(entry.message, at)
                self.outputs += sum(map(_prunable, entry.parts))
        self._messages, self._encoded = self._messages.plus(said), self._encoded.plus(spelt)
        if not self._has_begun:
            self._begin()

    @property
    def messages(self) -> PersistentList[ModelMessage]:
        """The messages so far."""
        return self._messages if self._has_begun else PersistentList((OPENING, *self._messages))

    @property
    def encoded(self) -> PersistentList[bytes]:
        """The JSON of each message."""
        return self._encoded if self._has_begun else PersistentList((_OPENING_JSON, *self._encoded))

    def _begin(self) -> None:
        """Insert OPENING before a first message that is not the user's: requests begin with a user turn."""
        first = next((m for m in self._messages if not isinstance(m, SystemTurn)), None)
        self._has_begun = first is not None
        if isinstance(first, AssistantTurn | ToolTurn):
            self._messages = PersistentList((OPENING, *self._messages))
            self._encoded = PersistentList((_OPENING_JSON, *self._encoded))


def continuation(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """A user turn, for this request only, if the last turn is the model's own; else nothing."""
    last = next(m for m in reversed(messages) if not isinstance(m, SystemTurn))
    return (UserTurn(content=(Text(text=CONTINUE),)),) if isinstance(last, AssistantTurn) else ()


def system_text(message: SystemMessage) -> str:
    """A Mid-Conversation System Message as the model reads it."""
    return clean("\n\n".join(update.text for update in message.updates))


def _entry(entry: HistoryItem, model: ModelInfo, names: "_CallNames") -> Iterator[ModelMessage]:
    match entry.message:
        case UserMessage(system=system):
            content = tuple(_user_content(entry.parts))
            if content:
                yield UserTurn(content=content)
            if system is not None and system.strip():
                # Not at the top, where it would change the beginning of every later request.
                yield SystemTurn(text=clean(system))
        case SystemMessage() as message:
            if (text := system_text(message)).strip():
                yield SystemTurn(text=text)
        case AssistantMessage() as message:
            if is_sent(message, entry.parts):
                yield from _Turn(message, model, names).lower(entry.parts)


def _user_content(parts: Iterable[Part]) -> Iterator[Text | Media]:
    for part in parts:
        match part:
            case TextPart(text=text, ignored=ignored) if text.strip() and not ignored:
                yield Text(text=clean(text))
            case FilePart(mime=mime) if mime not in ("text/plain", "application/x-directory"):
                yield _media(part)
            case CompactionPart():
                yield Text(text=COMPACTED)
            case SubtaskPart():
                yield Text(text=DELEGATED)
            case _:
                pass


def is_sent(message: AssistantMessage, parts: tuple[Part, ...]) -> bool:
    """Whether requests have this turn: not one that failed, unless the user stopped it after it had output."""
    if message.error is None:
        return True
    said = any(not isinstance(part, StepStartPart | ReasoningPart) for part in parts)
    return isinstance(message.error, AbortedFailure) and said


class _CallNames:
    """Makes call ids unique in the request and valid for every provider. Some providers reuse ids between turns."""

    def __init__(self) -> None:
        self._seen: set[str] = set()

    def fresh(self, call_id: str) -> str:
        base = _NAME.sub("_", call_id)[:56] or "call"
        name, count = base, 1
        while name in self._seen:
            count += 1
            name = f"{base}_{count}"
        self._seen.add(name)
        return name


class _Turn:
    """One assistant message being lowered for one model."""

    def __init__(self, message: AssistantMessage, model: ModelInfo, names: _CallNames) -> None:
        self._same = message.provider_id == model.provider_id and message.model_id == model.id
        # A provider's opaque metadata goes back only to the model it came from, and never from a turn that failed.
        self._keeps = self._same and message.error is None
        self._model, self._names = model, names

    def lower(self, parts: tuple[Part, ...]) -> Iterator[ModelMessage]:
        """One assistant turn for each step, each followed by the results of its calls."""
        # Of parts with one call id, the last counts: a provider may repeat an id inside one message.
        settled = {part.call_id: part.id for part in parts if isinstance(part, ToolPart)}
        for block in _steps(parts):
            yield from self._block(block, settled)

    def _block(self, parts: list[Part], settled: dict[str, str]) -> Iterator[ModelMessage]:
        content: list[Text | Reasoning | Call | Result] = []
        results: list[Result] = []
        media: list[Media] = []
        signed = [n for n, p in enumerate(parts) if isinstance(p, ReasoningPart) and _signature(p.metadata)]
        for place, part in enumerate(parts):
            match part:
                case TextPart(ignored=True):
                    pass
                case TextPart(text=text, metadata=metadata):
                    if text.strip():
                        own = Text(text=clean(text), metadata=self._own(metadata))
                        content.append(own if self._keeps else _apart(text, content))
                    elif self._keeps and signed and signed[0] < place < signed[-1]:
                        # A blank text separates signed thinking blocks. Empty text is rejected, and so is a blank one
                        # in a message without other text.
                        content.append(Text(text=" "))
                case ReasoningPart():
                    content.extend(self._reasoning(part, content))
                case FilePart():
                    content.append(_apart(MADE.format(part.filename or part.mime), content))
                case ToolPart(call_id=call_id) if settled[call_id] == part.id:
                    self._tool(part, content, results, media)
                case _:
                    pass
        if content:
            yield AssistantTurn(content=tuple(content))
        if results:
            yield ToolTurn(results=tuple(results))
        if media:
            yield UserTurn(content=(Text(text=FROM_TOOL), *media))

    def _reasoning(self, part: ReasoningPart, before: Sequence[object]) -> Iterator[Text | Reasoning]:
        if self._keeps:
            if part.text.strip() or part.metadata:
                yield Reasoning(text=clean(part.text), metadata=self._own(part.metadata))
        elif part.text.strip():
            yield Reasoning(text=clean(part.text)) if self._same else _apart(part.text, before)

    def _own(self, metadata: JsonObject | None) -> JsonObject | None:
        """A provider's opaque metadata, if it goes back to its model."""
        return (clean_object(without_sources(metadata)) or None) if self._keeps and metadata else None

    def _tool(
        self,
        part: ToolPart,
        content: list[Text | Reasoning | Call | Result],
        results: list[Result],
        media: list[Media],
    ) -> None:
        name = _NAME.sub("_", part.tool)[:64] or "tool"
        executed = part.is_hosted
        text, is_error = _outcome(part)
        if executed and not self._keeps:
            # No other model can read the records of a hosted tool, so its result is sent as text.
            content.append(_apart(f"[{name} was run by the provider]\n{text}", content))
            return
        call_id = self._names.fresh(part.call_id)
        content.append(
            Call(
                id=call_id,
                name=name,
                input=clean_object(part.state.input),
                executed=executed,
                metadata=self._own(part.metadata),
            )
        )
        output: list[Text | Media] = [Text(text=text)]
        for file in _attachments(part):
            found = _media(file)
            if isinstance(found, Text) or takes_media_in_results(self._model, found.mime):
                output.append(found)
            else:
                media.append(found)
        result = Result(
            call_id=call_id,
            name=name,
            output=tuple(output),
            is_error=is_error,
            executed=executed,
            raw=clean_json(part.state.structured) if executed and isinstance(part.state, ToolCompleted) else None,
            metadata=self._own(part.provider.result_metadata) if executed and part.provider else None,
        )
        if executed:
            content.append(result)
        else:
            results.append(result)


def _apart(text: str, before: Sequence[object]) -> Text:
    """A text that is not the model's own, after a blank line if a text stands before it: providers join texts.

    The blank line is at the beginning, so that a part that is added later does not change this one.
    """
    is_first = not any(isinstance(part, Text) for part in before)
    return Text(text=clean(text) if is_first else f"\n\n{clean(text)}")


def takes_media_in_results(model: ModelInfo, mime: str) -> bool:
    """Whether a provider accepts images and PDFs inside a tool result."""
    if model.protocol in ("anthropic", "openai-responses"):
        return True
    return model.protocol == "gemini" and "gemini-3" in model.api_id and "gemini-2" not in model.api_id


def _outcome(part: ToolPart) -> tuple[str, bool]:
    """The text of a call's result, and whether it is an error."""
    match part.state:
        case ToolCompleted(time=time, output=output):
            text = output if time.compacted is None else cleared(part.state)
            return clean(text) if text.strip() else NO_OUTPUT, False
        case ToolError(error=error, metadata=metadata):
            if partial := partial_output(metadata):
                return f"{clean(partial)}\n\n{STOPPED}", False
            return clean(error) if error.strip() else INTERRUPTED, True
        case _:
            return INTERRUPTED, True


def partial_output(metadata: JsonObject | None) -> str:
    """The output of an interrupted call until it was stopped; empty for any other failure."""
    partial = metadata.get("output") if metadata and metadata.get("interrupted") is True else None
    return partial.rstrip() if isinstance(partial, str) else ""


def _prunable(part: Part) -> int:
    state = part.state if isinstance(part, ToolPart) else None
    return len(state.output) if isinstance(state, ToolCompleted) and state.time.compacted is None else 0


def cleared(state: ToolCompleted) -> str:
    """The text in place of a pruned output: the sentence that clients know, and the recall handle."""
    return f"{CLEARED}\n(Its whole text is kept: call recall with the handle {handle(whole_output(state))}.)"


def _attachments(part: ToolPart) -> tuple[FilePart, ...]:
    state = part.state
    if isinstance(state, ToolCompleted) and state.time.compacted is None:
        return state.attachments or ()
    return ()


def _media(part: FilePart) -> Media | Text:
    """The file as media, or a text that says why it cannot be shown."""
    mime, url = clean(part.mime), clean(part.url)
    filename = clean(part.filename) if part.filename else None
    shown = filename or mime or "A file"
    match = _DATA_URL.fullmatch(url)
    if not _MIME.fullmatch(mime):
        return Text(text=f"[{shown} cannot be shown: nobody knows of what kind it is]")
    if match is None:
        if url.startswith(("http://", "https://")):
            return Media(mime=mime, url=url, filename=filename)
        return Text(text=f"[{shown} cannot be shown: it is only known as {url[:200]}]")
    if not match[2] or not _is_base64(match[3]):
        return Text(text=f"[{shown} cannot be shown: it is empty or not base64]")
    return Media(mime=mime, data=match[3], filename=filename)


def _is_base64(text: str) -> bool:
    # Not decoded, because every file of the history is checked before every turn.
    return bool(text.rstrip("=")) and text.isascii() and not text.rstrip("=").encode().translate(None, _BASE64)


def _steps(parts: tuple[Part, ...]) -> Iterator[list[Part]]:
    block: list[Part] = []
    for part in parts:
        if isinstance(part, StepStartPart):
            if block:
                yield block
            block = []
        else:
            block.append(part)
    if block:
        yield block


def _signature(metadata: JsonObject | None) -> bool:
    inner = (metadata or {}).get("anthropic")
    return isinstance(inner, dict) and bool(inner.get("signature"))

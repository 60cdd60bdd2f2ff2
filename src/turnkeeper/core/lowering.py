"""Lowering: history to the messages of a request. Deterministic: the same history and model give the same messages.

Whatever a log holds (crashed turns, foreign models, odd ids, nothing at all), the result obeys ``testing/laws.py``: no
message can brick a session.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TypeVar

from turnkeeper.core.handles import handle, whole_output
from turnkeeper.core.history import HistoryItem
from turnkeeper.core.prefix import Meter
from turnkeeper.core.quarantine import without
from turnkeeper.core.sources import without_sources
from turnkeeper.core.strand import Strand
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
# One value for all requests: what is kept of earlier ones is found again by identity.

_DATA_URL = re.compile(r"data:([^;,]*)(;base64)?,(.*)", re.DOTALL)
_NAME = re.compile(r"[^A-Za-z0-9_-]")
_MIME = re.compile(r"[\w.+-]+/[\w.+*-]+", re.ASCII)
T = TypeVar("T")

_BASE64 = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


def lower(entries: Iterable[HistoryItem], model: ModelInfo) -> tuple[ModelMessage, ...]:
    """The messages a model is sent for this history, ending where it is to speak."""
    messages = conversation(entries, model)
    return (*messages, *continuation(messages))


def conversation(entries: Iterable[HistoryItem], model: ModelInfo) -> Sequence[ModelMessage]:
    """The messages that stand for this history. A longer history only adds to them: so a provider's cache holds."""
    lowered = Lowered(model)
    lowered.add(entries)
    return lowered.messages


class Lowered:
    """A history being lowered for one model, entry by entry; each message with its JSON, made once."""

    def __init__(self, model: ModelInfo, left_out: Collection[str] = ()) -> None:
        self.model, self.left_out = model, left_out
        self.gauge = Gauge()
        self.outputs = 0
        """How many characters of tool outputs are in it that could be pruned."""
        self.sources: list[str] = []
        """For each message but the opening, the id of the message it comes from."""
        self.meter = Meter()
        """Measures the requests that are made of it."""
        self._names = _CallNames()
        self._messages: Strand[ModelMessage] = Strand()
        self._encoded: Strand[bytes] = Strand()
        self._has_begun = False  # Whether it is known who spoke first.

    def add(self, entries: Iterable[HistoryItem]) -> None:
        """Lower what follows."""
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
    def messages(self) -> Strand[ModelMessage]:
        """The messages so far."""
        return self._messages if self._has_begun else _opened(OPENING, self._messages)

    @property
    def encoded(self) -> Strand[bytes]:
        """The JSON of each message."""
        return self._encoded if self._has_begun else _opened(_OPENING_JSON, self._encoded)

    def _begin(self) -> None:
        """A conversation begins with the user; what was cut off before is stood for by a word."""
        first = next((m for m in self._messages if not isinstance(m, SystemTurn)), None)
        self._has_begun = first is not None
        if isinstance(first, AssistantTurn | ToolTurn):
            self._messages, self._encoded = _opened(OPENING, self._messages), _opened(_OPENING_JSON, self._encoded)


def _opened(word: T, said: Strand[T]) -> Strand[T]:
    return Strand((word, *said))


def continuation(messages: Sequence[ModelMessage]) -> tuple[ModelMessage, ...]:
    """What must follow so that the model speaks next: a word of the user's, for this request only, or nothing."""
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
                # At its place in the history: at the top it would rewrite the beginning of every request.
                yield SystemTurn(text=clean(system))
        case SystemMessage() as message:
            if (text := system_text(message)).strip():
                yield SystemTurn(text=text)
        case AssistantMessage() as message:
            if _is_shown(message, entry.parts):
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


def _is_shown(message: AssistantMessage, parts: tuple[Part, ...]) -> bool:
    """A failed turn is left out, unless it was stopped by the user after it had said or done something."""
    if message.error is None:
        return True
    said = any(not isinstance(part, StepStartPart | ReasoningPart) for part in parts)
    return isinstance(message.error, AbortedFailure) and said


class _CallNames:
    """Call ids that are unique in the request and fit every provider. Some providers reuse ids between turns."""

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
        same = message.provider_id == model.provider_id and message.model_id == model.id
        self._same = same
        # A provider's opaque metadata goes back only to the model it came from, and never from a turn that failed.
        self._keeps = same and message.error is None
        self._model, self._names = model, names

    def lower(self, parts: tuple[Part, ...]) -> Iterator[ModelMessage]:
        """One assistant turn for each step, each followed by the results of its calls."""
        settled = _last_of_each_call(parts)
        for block in _steps(parts):
            yield from self._block(block, settled)

    def _block(self, parts: list[Part], settled: dict[str, str]) -> Iterator[ModelMessage]:
        content: list[Text | Reasoning | Call | Result] = []
        results: list[Result] = []
        media: list[Media] = []
        signed = self._keeps and any(isinstance(p, ReasoningPart) and _signature(p.metadata) for p in parts)
        for part in parts:
            match part:
                case TextPart(ignored=True):
                    pass
                case TextPart(text=text, metadata=metadata):
                    if text.strip():
                        content.append(Text(text=clean(text), metadata=self._own(metadata)))
                    elif signed:
                        # It separates signed thinking blocks: dropped, positions shift; empty, it is rejected.
                        content.append(Text(text=" "))
                case ReasoningPart():
                    content.extend(self._reasoning(part))
                case FilePart():
                    content.append(Text(text=MADE.format(clean(part.filename or part.mime))))
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

    def _reasoning(self, part: ReasoningPart) -> Iterator[Text | Reasoning]:
        if self._keeps:
            if part.text.strip() or part.metadata:
                yield Reasoning(text=clean(part.text), metadata=self._own(part.metadata))
        elif part.text.strip():
            yield Reasoning(text=clean(part.text)) if self._same else Text(text=clean(part.text))

    def _own(self, metadata: JsonObject | None) -> JsonObject | None:
        """A provider's opaque metadata, for the model it came from."""
        return (clean_object(without_sources(metadata)) or None) if self._keeps and metadata else None

    def _tool(
        self,
        part: ToolPart,
        content: list[Text | Reasoning | Call | Result],
        results: list[Result],
        media: list[Media],
    ) -> None:
        name = _NAME.sub("_", part.tool)[:64] or "tool"
        executed = part.provider is not None and part.provider.executed
        text, is_error = _outcome(part)
        if executed and not self._keeps:
            # No other model can read a hosted tool's own records; what it found out is kept as words.
            content.append(Text(text=f"[{name} was run by the provider]\n{text}"))
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


def takes_media_in_results(model: ModelInfo, mime: str) -> bool:
    """Whether a provider accepts images and PDFs inside a tool result."""
    if model.protocol in ("anthropic", "openai-responses"):
        return True
    return model.protocol == "gemini" and "gemini-3" in model.api_id and "gemini-2" not in model.api_id


def _outcome(part: ToolPart) -> tuple[str, bool]:
    """What the model reads of a call, and whether it is an error."""
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
    """What a call that was stopped had put out until then; empty if there is nothing, or the call failed otherwise."""
    partial = metadata.get("output") if metadata and metadata.get("interrupted") is True else None
    return partial.rstrip() if isinstance(partial, str) else ""


def _prunable(part: Part) -> int:
    state = part.state if isinstance(part, ToolPart) else None
    return len(state.output) if isinstance(state, ToolCompleted) and state.time.compacted is None else 0


def cleared(state: ToolCompleted) -> str:
    """What stands for an output that was pruned: the words clients know, and how to have it back."""
    return f"{CLEARED}\n(Its whole text is kept: call recall with the handle {handle(whole_output(state))}.)"


def _attachments(part: ToolPart) -> tuple[FilePart, ...]:
    state = part.state
    if isinstance(state, ToolCompleted) and state.time.compacted is None:
        return state.attachments or ()
    return ()


def _media(part: FilePart) -> Media | Text:
    """A file as the model can be shown it: itself, or why not."""
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
    # Not decoded: every file of the history passes here before every turn.
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


def _last_of_each_call(parts: tuple[Part, ...]) -> dict[str, str]:
    """Which part speaks for a call id: the last one; a provider may repeat an id inside one message."""
    return {part.call_id: part.id for part in parts if isinstance(part, ToolPart)}


def _signature(metadata: JsonObject | None) -> bool:
    inner = (metadata or {}).get("anthropic")
    return isinstance(inner, dict) and bool(inner.get("signature"))

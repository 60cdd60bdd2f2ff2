"""Entries of the full screen, made from the calls of the feed and from stored messages.

This module does not draw. The screen polls the changed entries several times a second.
"""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from turnkeeper.cli.feed import Display, is_settled
from turnkeeper.cli.part_lines import file_line, source_lines
from turnkeeper.cli.partial_text import PartialPart
from turnkeeper.cli.plain import ending_text, retried
from turnkeeper.cli.screen import harmless, one_line
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    FilePart,
    ReasoningPart,
    RetryPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.session import Tokens
from turnkeeper.model.status import Retrying

Kind: TypeAlias = Literal["prompt", "head", "text", "thought", "call", "note", "summary"]

ENTRIES_MAX: Final = 2000
"""Maximum number of entries on the screen. Older ones are read again on request."""
FOLDED: Final[frozenset[Kind]] = frozenset({"thought", "call", "summary"})
"""Kinds of entries that can be folded."""


@dataclass
class Entry:
    """One entry of the transcript. ``text`` is the text that is copied."""

    id: str
    kind: Kind
    text: str = ""
    about: str = ""
    part: ToolPart | None = None
    message_id: str = ""
    is_settled: bool = True
    is_whole: bool = False
    """Whether the whole entry is shown."""
    blocks: list[str] = field(default_factory=list)
    """The complete paragraphs of a text, which are drawn once."""
    tail: str = ""
    """The rest of a text, which may still change."""
    is_asked: bool = False
    """Whether the entry is a call that waits for an answer of the user."""


class Transcript(Display):
    """The entries of a session, oldest first, and the state of its running turn."""

    def __init__(self) -> None:
        self.entries: dict[str, Entry] = {}
        self.changed: set[str] = set()
        """The entries that were added or changed since the screen was drawn."""
        self.is_replaced = False
        """Whether the entries are those of another session, or were shortened, since the screen was drawn."""
        self.added_before: list[str] = []
        """Older entries that were added at the beginning since the screen was drawn."""
        self.removed: set[str] = set()
        """Entries that were removed since the screen was drawn."""
        self.turn: AssistantMessage | None = None
        self.waiting: Retrying | None = None
        self.notice_text = ""
        self.tokens: Tokens | None = None
        """The tokens of the last request and its answer."""
        self._growing: dict[str, PartialPart] = {}
        self._recorded: set[str] = set()
        """The prompts that were recorded."""
        self._in_history: set[str] = set()
        """The prompts that are known to be part of the history: recorded a second time, or answered."""
        self._notes = 0
        self._header = ""

    # Calls of the feed.

    def began(self, message: AssistantMessage) -> None:
        """Show a changed agent or model, and move the answered prompt to its place in the history."""
        self._took_effect(message.parent_id)  # After a restart of the server there may be no other notification.
        self._head(message)
        self.turn, self.waiting = message, None

    def opened(self, part: BasePart) -> None:
        """Show an unfinished part."""
        self.waiting = None
        self._upsert(part)

    def grew(self, part_id: str, text: str) -> None:
        """Show text as it comes."""
        growing, entry = self._growing.get(part_id), self.entries.get(part_id)
        if growing is None or entry is None:
            return
        growing.grow(text)
        self._take(entry, growing)

    def settled(self, part: BasePart) -> None:
        """Show a part in its last form."""
        self._upsert(part)
        self._growing.pop(part.id, None)

    def dropped(self, part_id: str) -> None:
        """Take a part of a failed attempt off the screen."""
        self._growing.pop(part_id, None)
        self._remove(part_id)

    def waits(self, status: Retrying) -> None:
        """Show the waiting time until the next attempt."""
        self.waiting = status

    def ended(self, message: AssistantMessage) -> None:
        """Clear the running turn, and record its tokens."""
        self.turn = self.waiting = None
        self.tokens = message.tokens

    def prompted(self, text: str, about: str = "", *, message_id: str = "") -> None:
        """Show a prompt, with the note whether it steers or is queued."""
        if not message_id:
            self._add("prompt", harmless(text), about)
            return
        is_promoted = message_id in self._in_history  # The notification may arrive before the receipt.
        id = message_id if is_promoted else _waiting(message_id)
        self._put(Entry(id, "prompt", harmless(text), "" if is_promoted else about, message_id=message_id))

    def recorded(self, message_id: str) -> None:
        """Move a waiting prompt to its place in the history when it is recorded a second time."""
        if message_id in self._recorded:
            self._took_effect(message_id)
        self._recorded.add(message_id)

    def note(self, text: str) -> None:
        """Show a remark."""
        self._add("note", text)

    def notice(self, text: str) -> None:
        """Show a notice above the prompt."""
        self.notice_text = text

    def mark_asked(self, call_ids: Set[str]) -> None:
        """Mark the calls that wait for an answer of the user."""
        for one in self.entries.values():
            if one.part is not None and one.is_asked != (one.part.call_id in call_ids):
                one.is_asked = not one.is_asked
                self.changed.add(one.id)

    def tool_of(self, call_id: str) -> str:
        """The tool of a call; empty if the call is not on the screen."""
        return next((one.part.tool for one in self.entries.values() if one.part and one.part.call_id == call_id), "")

    # Stored messages.

    def replace(self, messages: Iterable[MessageWithParts]) -> None:
        """Replace all entries by those of these messages."""
        self.entries, self.changed, self.removed, self.added_before = {}, set(), set(), []
        self._growing, self._header, self.tokens = {}, "", None
        self.is_replaced = True
        for one in messages:
            self._message(one)
        self.changed.clear()

    def add_before(self, messages: Sequence[MessageWithParts]) -> None:
        """Add the entries of older messages at the beginning."""
        older = Transcript()
        older.replace(messages)
        new = {id: entry for id, entry in older.entries.items() if id not in self.entries}
        self.entries = {**new, **self.entries}
        self.added_before = [*new, *self.added_before]

    def shorten(self) -> bool:
        """Remove the oldest entries above the maximum; returns whether there were any."""
        excess = len(self.entries) - ENTRIES_MAX
        if excess <= 0:
            return False
        for id in list(self.entries)[: excess + ENTRIES_MAX // 10]:
            del self.entries[id]
        self.is_replaced = True
        return True

    @property
    def last_answer(self) -> str:
        """The newest text of the model."""
        return next((one.text for one in reversed(self.entries.values()) if one.kind == "text"), "")

    def _message(self, message: MessageWithParts) -> None:
        info = message.info
        if isinstance(info, UserMessage):
            self._prompt(message)
            return
        if not isinstance(info, AssistantMessage):
            return
        self.tokens = info.tokens if info.tokens.input or info.tokens.output else self.tokens
        if info.summary:
            text = "\n\n".join(part.text for part in message.parts if isinstance(part, TextPart))
            self._put(Entry(info.id, "summary", text, message_id=info.id))
            return
        self._head(info)
        for part in message.parts:
            self._upsert(part)
        if problem := ending_text(info):
            self._put(Entry(f"{info.id}-error", "note", f"✗ {problem}", message_id=info.id))

    def _prompt(self, message: MessageWithParts) -> None:
        said = [part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic]
        files = [file_line(part) for part in message.parts if isinstance(part, FilePart)]
        if said or files:
            self._put(
                Entry(
                    message.info.id, "prompt", harmless("\n".join(said)), "\n".join(files), message_id=message.info.id
                )
            )
        for part in message.parts:
            self._mark(part)

    def _mark(self, part: BasePart) -> None:
        match part:
            case CompactionPart():
                text = "⋯ older history was replaced by a summary"
            case SubtaskPart(agent=agent, description=description):
                text = one_line(f"→ {agent}: {description}")
            case AgentPart(name=name):
                text = one_line(f"@ {name}")
            case _:
                return
        self._put(Entry(part.id, "note", text, message_id=part.message_id))

    # Entries.

    def _took_effect(self, message_id: str) -> None:
        self._in_history.add(message_id)
        if (waited := self._remove(_waiting(message_id))) is not None:
            self._put(Entry(message_id, "prompt", waited.text, message_id=message_id))

    def _head(self, message: AssistantMessage) -> None:
        header = f"{message.agent} · {message.provider_id}/{message.model_id}"
        if header != self._header:
            self._header = header
            self._put(Entry(f"{message.id}-head", "head", one_line(header), message_id=message.id))

    def _upsert(self, part: BasePart) -> None:
        match part:
            case TextPart() if not part.synthetic:
                self._text("text", part)
            case ReasoningPart():
                self._text("thought", part)
            case ToolPart():
                before = self.entries.get(part.id)
                is_whole = before.is_whole if before is not None else False
                output = getattr(part.state, "output", "") or getattr(part.state, "error", "")
                self._put(Entry(part.id, "call", output, "", part, part.message_id, is_settled(part), is_whole))
            case FilePart():
                self._put(Entry(part.id, "note", file_line(part), message_id=part.message_id))
            case RetryPart():
                self._put(Entry(part.id, "note", retried(part), message_id=part.message_id))

    def _text(self, kind: Kind, part: TextPart | ReasoningPart) -> None:
        entry = self.entries.get(part.id)
        growing = self._growing.get(part.id)
        if entry is None or growing is None:
            growing = self._growing[part.id] = PartialPart(part)
            entry = Entry(part.id, kind, message_id=part.message_id)
        if is_settled(part):
            growing.settle(part)
            entry.is_settled = True
        else:
            entry.is_settled = False
        if isinstance(part, TextPart):
            entry.about = "\n".join(source_lines(part))
        self._take(entry, growing)
        entry.text = part.text if is_settled(part) else entry.text
        if is_settled(part):
            self._growing.pop(part.id, None)

    def _take(self, entry: Entry, growing: PartialPart) -> None:
        """Move complete paragraphs to the blocks of an entry."""
        if done := growing.take():
            entry.blocks.append(done)
        entry.tail = growing.waiting
        entry.text = "".join([*entry.blocks, entry.tail])
        self._put(entry)

    def _add(self, kind: Kind, text: str, about: str = "") -> None:
        self._notes += 1
        self._put(Entry(f"{kind}-{self._notes}", kind, text, about))

    def _put(self, entry: Entry) -> None:
        self.entries[entry.id] = entry
        self.changed.add(entry.id)

    def _remove(self, id: str) -> Entry | None:
        if (entry := self.entries.pop(id, None)) is not None:
            self.changed.discard(id)
            self.removed.add(id)
        return entry


def _waiting(message_id: str) -> str:
    """The id of the entry of a waiting prompt, which differs from that of the prompt in the history."""
    return f"{message_id}-waiting"

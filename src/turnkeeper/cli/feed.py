"""The feed: what a session's notifications mean to whoever shows a run, in the order it happens."""

from typing import Literal, Protocol, TypeAlias

from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.model.status import Retrying

Lack: TypeAlias = Literal["cut off", "empty"]


class Display(Protocol):
    """Shows a run, in one of several ways."""

    def began(self, message: AssistantMessage) -> None:
        """A turn began."""

    def opened(self, part: BasePart) -> None:
        """A part came, or changed, and will change again."""

    def grew(self, part_id: str, text: str) -> None:
        """Text was added to an open part."""

    def settled(self, part: BasePart) -> None:
        """A part is as it will stay."""

    def dropped(self, part_id: str) -> None:
        """A part was taken back: the attempt it came from failed."""

    def waits(self, status: Retrying) -> None:
        """The next attempt comes later."""

    def ended(self, message: AssistantMessage) -> None:
        """A turn is over, and how."""

    def note(self, text: str) -> None:
        """A remark of ours."""

    def notice(self, text: str) -> None:
        """What is going on just now, where something is shown live."""

    def tick(self) -> None:
        """A moment passed."""

    def close(self) -> None:
        """Nothing more will be shown live; called any number of times."""


class Feed:
    """Hears notifications and tells a display. Turns that began elsewhere or earlier are not told."""

    def __init__(self, display: Display, *, shows_summary: bool = False) -> None:
        self._display, self._shows_summary = display, shows_summary
        self._begun: set[str] = set()
        self._lengths: dict[str, int] = {}
        self._summaries: dict[str, str | None] = {}
        """Summaries under way, each with what kept a model from writing it."""
        self.turns = 0
        """How many turns are over."""
        self.failure: Failure | None = None
        """What was wrong with the last turn."""
        self.lack: Lack | None = None
        """What the last answer lacks, though its turn did not fail."""
        self._has_said = False

    def take(self, one: Notification | Delta) -> None:
        """Tell what this means."""
        if isinstance(one, Delta):
            self._grew(one)
            return
        match one.type, one.properties:
            case "message.updated", {"info": AssistantMessage() as message}:
                self._message(message)
            case "message.part.updated", {"part": BasePart() as part} if part.message_id in self._begun:
                self._part(part)
            case "message.part.updated", {"part": TextPart() as part} if part.message_id in self._summaries:
                self._summaries[part.message_id] = str((part.metadata or {}).get("problem") or "") or None
            case "message.part.removed", {"messageID": message_id, "partID": str(part_id)} if message_id in self._begun:
                self._lengths.pop(part_id, None)
                self._display.dropped(part_id)
            case "session.status", {"status": Retrying() as status}:
                self._display.waits(status)

    def _message(self, message: AssistantMessage) -> None:
        if message.time.completed is None:
            if message.summary and not self._shows_summary:
                self._summaries.setdefault(message.id)
                self._display.notice("Older history is being summarised.")
            elif message.id not in self._begun:
                self._begun.add(message.id)
                self._has_said = False
                self._display.began(message)
        elif message.id in self._summaries:
            self._summarised(message)
        elif message.id in self._begun:
            self._begun.discard(message.id)
            self._lengths.clear()
            self.turns += 1
            self.failure = message.error
            self.lack = self._lacking(message)
            self._display.ended(message)

    def _summarised(self, message: AssistantMessage) -> None:
        """Say what came of a compaction. A Summary is for the model; it is no answer to the user."""
        self.turns += 1
        problem = self._summaries.pop(message.id)
        if message.error is not None:
            self.failure = message.error
            self._display.ended(message)
        elif problem:
            self._display.note(f"Older history was shortened without a model: {problem}")
        else:
            self._display.note("Older history was summarised; `session recall` gives it back.")

    def _lacking(self, message: AssistantMessage) -> Lack | None:
        if message.error is not None:
            return None
        if message.finish == "length":
            return "cut off"
        return None if self._has_said or message.structured is not None else "empty"

    def _part(self, part: BasePart) -> None:
        self._has_said = self._has_said or is_answer(part)
        if is_settled(part):
            self._lengths.pop(part.id, None)
            self._display.settled(part)
        else:
            if isinstance(part, TextPart | ReasoningPart):
                self._lengths.setdefault(part.id, len(part.text))
            self._display.opened(part)

    def _grew(self, delta: Delta) -> None:
        # One that was dropped on the way leaves a gap: the part is then shown when it is settled.
        if self._lengths.get(delta.part_id) == delta.offset:
            self._lengths[delta.part_id] += len(delta.delta)
            self._display.grew(delta.part_id, delta.delta)


def is_answer(part: BasePart) -> bool:
    """Whether a part is something for the user: words, or something done. Thoughts alone are no answer."""
    return isinstance(part, ToolPart) or (isinstance(part, TextPart) and bool(part.text.strip()))


def is_settled(part: BasePart) -> bool:
    """Whether a part is as it will stay."""
    match part:
        case TextPart(time=time):
            return time is None or time.end is not None
        case ReasoningPart(time=time):
            return time.end is not None
        case ToolPart(state=ToolPending() | ToolRunning()):
            return False
        case _:
            return True

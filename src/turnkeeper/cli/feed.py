"""The feed: turns the notifications of a session into calls of a display."""

from typing import Literal, TypeAlias

from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import Delta, Notification
from turnkeeper.model.parts import ReasoningPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.parts.tool import ToolPending, ToolRunning
from turnkeeper.model.status import Retrying

Lack: TypeAlias = Literal["cut off", "empty"]


class Display:
    """Displays a run: on a terminal, as plain text or as JSON. A method that a display does not have does nothing."""

    def began(self, message: AssistantMessage) -> None:
        """A turn began."""

    def opened(self, part: BasePart) -> None:
        """A part began or changed, and is not finished."""

    def grew(self, part_id: str, text: str) -> None:
        """Text was added to an unfinished part."""

    def settled(self, part: BasePart) -> None:
        """A part is finished."""

    def dropped(self, part_id: str) -> None:
        """A part was removed because its attempt failed."""

    def waits(self, status: Retrying) -> None:
        """The next attempt waits for its time."""

    def ended(self, message: AssistantMessage) -> None:
        """A turn ended."""

    def prompted(self, text: str, about: str = "", *, message_id: str = "") -> None:
        """A prompt was typed, with what becomes of it; with its id if it waits."""

    def recorded(self, message_id: str) -> None:
        """A prompt was recorded: when it was admitted, and again when it became part of the history."""

    def note(self, text: str) -> None:
        """Display a remark."""

    def notice(self, text: str) -> None:
        """Display what is happening now, on a live display."""

    def tick(self) -> None:
        """Redraw what depends on the time."""

    def close(self) -> None:
        """End the live display. Can be called repeatedly."""


class Feed:
    """Passes notifications to a display, except for turns that began before the feed."""

    def __init__(self, display: Display, *, shows_summary: bool = False) -> None:
        self._display, self._shows_summary = display, shows_summary
        self._begun: set[str] = set()
        self._lengths: dict[str, int] = {}
        self._settled: set[str] = set()
        """Finished parts of turns that have not ended. One may still change: a step start gets its snapshot later."""
        self._summaries: dict[str, str | None] = {}
        """Unfinished Summaries, each with the reason why no model wrote it."""
        self.turns = 0
        """How many turns ended."""
        self.failure: Failure | None = None
        """The failure of the last turn."""
        self.lack: Lack | None = None
        """The defect of the last answer, if its turn did not fail."""
        self._has_answer = False

    def resume(self, found: MessageWithParts) -> None:
        """Go on with a turn that began before the feed and whose finished parts are displayed already."""
        self._begun.add(found.info.id)
        for part in found.parts:
            if is_settled(part):
                self._settled.add(part.id)
            self._part(part)

    def take(self, one: Notification | Delta) -> None:
        """Pass a notification to the display."""
        if isinstance(one, Delta):
            self._grew(one)
            return
        match one.type, one.properties:
            case "message.updated", {"info": AssistantMessage() as message}:
                self._message(message)
            case "message.updated", {"info": UserMessage(id=message_id)}:
                self._display.recorded(message_id)
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
                self._has_answer = False
                self._display.began(message)
        elif message.id in self._summaries:
            self._summarised(message)
        elif message.id in self._begun:
            self._begun.discard(message.id)
            self._lengths.clear()
            self._settled.clear()
            self.turns += 1
            self.failure = message.error
            self.lack = self._lacking(message)
            self._display.ended(message)

    def _summarised(self, message: AssistantMessage) -> None:
        """Display the result of a compaction, but not the Summary, which is for the model."""
        self.turns += 1
        problem = self._summaries.pop(message.id)
        if message.error is not None:
            self.failure = message.error
            self._display.ended(message)
        elif problem:
            self._display.note(f"Older history was shortened without a model: {problem}")
        else:
            self._display.note("Older history was summarised; `session recall` reads it.")

    def _lacking(self, message: AssistantMessage) -> Lack | None:
        if message.error is not None:
            return None
        if message.finish == "length":
            return "cut off"
        return None if self._has_answer or message.structured is not None else "empty"

    def _part(self, part: BasePart) -> None:
        if part.id in self._settled:
            return
        self._has_answer = self._has_answer or is_answer(part)
        if is_settled(part):
            self._settled.add(part.id)
            self._lengths.pop(part.id, None)
            self._display.settled(part)
        else:
            if isinstance(part, TextPart | ReasoningPart):
                self._lengths.setdefault(part.id, len(part.text))
            self._display.opened(part)

    def _grew(self, delta: Delta) -> None:
        # After a lost delta the rest of the part is displayed when it is finished.
        if self._lengths.get(delta.part_id) == delta.offset:
            self._lengths[delta.part_id] += len(delta.delta)
            self._display.grew(delta.part_id, delta.delta)


class FinishedParts:
    """The parts that were told of as finished. Who reads a history and then hears of it is told of some twice."""

    def __init__(self) -> None:
        self._ids: set[str] = set()

    def is_repeated(self, one: Notification | Delta) -> bool:
        """Whether a notification is of a part that an earlier one told of as finished."""
        match one:
            case Notification(type="message.part.updated", properties={"part": BasePart() as part}):
                is_known = part.id in self._ids
                if is_settled(part):
                    self._ids.add(part.id)
                return is_known
        return False


def is_answer(part: BasePart) -> bool:
    """Whether a part is a text or a tool call. Reasoning alone is no answer."""
    return isinstance(part, ToolPart) or (isinstance(part, TextPart) and bool(part.text.strip()))


def is_settled(part: BasePart) -> bool:
    """Whether a part is finished."""
    match part:
        case TextPart(time=time):
            return time is None or time.end is not None
        case ReasoningPart(time=time):
            return time.end is not None
        case ToolPart(state=ToolPending() | ToolRunning()):
            return False
        case _:
            return True

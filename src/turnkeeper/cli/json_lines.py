"""A run for programs: one JSON object a line, in the shapes opencode's ``run --format json`` writes."""

import sys
import time
from typing import Final

from turnkeeper.cli.answer import write
from turnkeeper.cli.screen import show
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.status import Retrying
from turnkeeper.model.value import encode

KINDS: Final = {
    StepStartPart: "step_start",
    ToolPart: "tool_use",
    TextPart: "text",
    FilePart: "file",
    ReasoningPart: "reasoning",
    StepFinishPart: "step_finish",
}


class JsonLines:
    """Writes settled parts, and what went wrong."""

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._is_heard = True

    def began(self, message: AssistantMessage) -> None:
        """The step's own mark tells."""

    def opened(self, part: BasePart) -> None:
        """Not yet."""

    def grew(self, part_id: str, text: str) -> None:
        """Not yet."""

    def dropped(self, part_id: str) -> None:
        """A reader must forgive what a failed attempt said, as opencode's readers do."""

    def waits(self, status: Retrying) -> None:
        """Only what is settled is told."""

    def notice(self, text: str) -> None:
        """Nothing is shown live."""

    def tick(self) -> None:
        """Nothing moves here."""

    def close(self) -> None:
        """Nothing is open."""

    def settled(self, part: BasePart) -> None:
        """One line for a part."""
        kind = KINDS.get(type(part))
        if kind is not None and (kind != "reasoning" or self._thinking):
            self._line(kind, part.session_id, part=part)

    def ended(self, message: AssistantMessage) -> None:
        """One line for a failure."""
        if message.error is not None:
            self.failed(message.session_id, message.error)

    def failed(self, session_id: str, failure: Failure) -> None:
        """One line for what went wrong outside of a turn."""
        self._line("error", session_id, error=failure)

    def note(self, text: str) -> None:
        """A remark is for people."""
        show(text, to=sys.stderr)

    def _line(self, kind: str, session_id: str, **body: object) -> None:
        line = {"type": kind, "timestamp": time.time_ns() // 1_000_000, "sessionID": session_id, **body}
        try:
            if self._is_heard:
                write(encode(line) + b"\n")
        except BrokenPipeError:
            self._is_heard = False

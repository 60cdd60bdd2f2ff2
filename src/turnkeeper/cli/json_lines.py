"""The display for programs: one JSON object per line, in the format of opencode's ``run --format json``."""

import sys
import time
from typing import Final

from turnkeeper.cli.output import write
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
    """Writes finished parts and failures."""

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._is_open = True

    def began(self, message: AssistantMessage) -> None:
        """A step_start part is written instead."""

    def opened(self, part: BasePart) -> None:
        """Only finished parts are written."""

    def grew(self, part_id: str, text: str) -> None:
        """Only finished parts are written."""

    def dropped(self, part_id: str) -> None:
        """Parts of a failed attempt stay in the output, as in opencode."""

    def waits(self, status: Retrying) -> None:
        """Only finished parts are written."""

    def notice(self, text: str) -> None:
        """There is no live display."""

    def tick(self) -> None:
        """Nothing depends on the time."""

    def close(self) -> None:
        """There is no live display."""

    def settled(self, part: BasePart) -> None:
        """Write a part."""
        kind = KINDS.get(type(part))
        if kind is not None and (kind != "reasoning" or self._thinking):
            self._line(kind, part.session_id, part=part)

    def ended(self, message: AssistantMessage) -> None:
        """Write the failure of a turn."""
        if message.error is not None:
            self.failed(message.session_id, message.error)

    def failed(self, session_id: str, failure: Failure) -> None:
        """Write a failure."""
        self._line("error", session_id, error=failure)

    def note(self, text: str) -> None:
        """Print a remark on standard error."""
        show(text, to=sys.stderr)

    def _line(self, kind: str, session_id: str, **body: object) -> None:
        line = {"type": kind, "timestamp": time.time_ns() // 1_000_000, "sessionID": session_id, **body}
        try:
            if self._is_open:
                write(encode(line) + b"\n")
        except BrokenPipeError:
            self._is_open = False

"""The display for programs: one JSON object per line, in the format of opencode's ``run --format json``."""

import sys
import time
from typing import Final

from turnkeeper.cli.feed import Display
from turnkeeper.cli.output import write
from turnkeeper.cli.screen import show
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, ReasoningPart, StepFinishPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.value import encode

KINDS: Final = {
    StepStartPart: "step_start",
    ToolPart: "tool_use",
    TextPart: "text",
    FilePart: "file",
    ReasoningPart: "reasoning",
    StepFinishPart: "step_finish",
}


class JsonLines(Display):
    """Writes finished parts and failures. Parts of a failed attempt stay in the output, as in opencode."""

    def __init__(self, *, thinking: bool) -> None:
        self._thinking = thinking
        self._is_open = True

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

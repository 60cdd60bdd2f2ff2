"""The display for pipes and files: finished text on standard output, everything else on standard error."""

import sys
from collections.abc import Iterable
from typing import Final

from turnkeeper.cli.feed import Display
from turnkeeper.cli.part_lines import call_lines, file_line, source_lines
from turnkeeper.cli.screen import Screen, harmless, one_line, show
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, ReasoningPart, RetryPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart


class Plain(Display):
    """Displays finished parts only."""

    def __init__(self, *, thinking: bool) -> None:
        self._screen, self._thinking = Screen.of(sys.stderr), thinking
        self._is_open = True
        self._model = ""

    def began(self, message: AssistantMessage) -> None:
        """Display agent and model when they change."""
        model = f"{message.agent} · {message.provider_id}/{message.model_id}"
        if model != self._model:
            self._model = model
            self._aside([f"> {one_line(model)}"], "dim")

    def notice(self, text: str) -> None:
        """Display it like a remark."""
        self.note(text)

    def settled(self, part: BasePart) -> None:
        """Print a text on standard output, other parts on standard error."""
        match part:
            case TextPart(text=text) if not part.synthetic:
                if text.strip():
                    self._say(text.strip())
                self._aside(source_lines(part), "dim")
            case FilePart():
                self._aside([file_line(part)])
            case ReasoningPart(text=text) if text.strip() and self._thinking:
                self._aside([f"┊ {line}" for line in harmless(text.strip()).splitlines()], "dim")
            case ToolPart():
                self._aside(call_lines(self._screen, part))
            case RetryPart():
                self._aside([retried(part)], "yellow")

    def note(self, text: str) -> None:
        """Print a remark on standard error."""
        self._aside(text.splitlines())

    def _say(self, text: str) -> None:
        """Print a text. The run continues if the reader closes the pipe."""
        try:
            if self._is_open:
                show(text if not sys.stdout.isatty() else harmless(text))
                sys.stdout.flush()
        except BrokenPipeError:
            self._is_open = False

    def _aside(self, lines: Iterable[str], *styles: str) -> None:
        for line in lines:
            show(self._screen.paint(line, *styles), to=sys.stderr)


def retried(part: RetryPart) -> str:
    """A line for a failed attempt that is repeated."""
    return f"↻ attempt {part.attempt} failed: {one_line(part.error.data.message)}; trying again"


CUT_OFF: Final = "the answer is cut off: it reached the model's output limit"


def ending_text(message: AssistantMessage) -> str:
    """What is wrong with the end of a stored answer, in one line; empty if nothing is."""
    if message.error is not None:
        return failure_text(message.error)
    return CUT_OFF if message.finish == "length" else ""


def failure_text(failure: Failure) -> str:
    """A failure in one line, with what to do about it."""
    from turnkeeper.model.failure import ApiFailure, AuthFailure, OutputLengthFailure, OverflowFailure

    said = one_line(getattr(failure.data, "message", "")).rstrip(".")
    match failure:
        case AuthFailure(data=data):
            return f"{said}; `turnkeeper auth login {data.provider_id}` stores a key"
        case ApiFailure(data=data) if data.status_code is not None and str(data.status_code) not in said:
            return f"the provider answered {data.status_code}: {said}"
        case OverflowFailure():
            return f"{said}; the conversation is too long for this model"
        case OutputLengthFailure():
            return "the answer hit the model's output limit before there was any text"
    return said or type(failure).__name__

"""A run for pipes and files: finished text on standard output, everything else on standard error."""

import sys
from collections.abc import Iterable

from turnkeeper.cli.beside import file_line, source_lines
from turnkeeper.cli.calls import call_lines
from turnkeeper.cli.screen import Screen, harmless, one_line, show
from turnkeeper.model.failure import Failure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, ReasoningPart, RetryPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.status import Retrying


class Plain:
    """Shows what is finished, and nothing that is on its way."""

    def __init__(self, *, thinking: bool) -> None:
        self._screen, self._thinking = Screen.of(sys.stderr), thinking
        self._is_heard = True
        self._model = ""

    def began(self, message: AssistantMessage) -> None:
        """Say who answers, when that changes."""
        model = f"{message.agent} · {message.provider_id}/{message.model_id}"
        if model != self._model:
            self._model = model
            self._aside([f"> {one_line(model)}"], "dim")

    def opened(self, part: BasePart) -> None:
        """Not yet."""

    def grew(self, part_id: str, text: str) -> None:
        """Not yet."""

    def dropped(self, part_id: str) -> None:
        """It was not shown."""

    def waits(self, status: Retrying) -> None:
        """The retry itself is told."""

    def notice(self, text: str) -> None:
        """What is going on is a remark like any other."""
        self.note(text)

    def tick(self) -> None:
        """Nothing moves here."""

    def close(self) -> None:
        """Nothing is open."""

    def settled(self, part: BasePart) -> None:
        """Print a text; tell the rest."""
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

    def ended(self, message: AssistantMessage) -> None:
        """The end of the run tells what went wrong."""

    def note(self, text: str) -> None:
        """A remark on standard error."""
        self._aside(text.splitlines())

    def _say(self, text: str) -> None:
        """Whoever reads may stop reading; the work goes on."""
        try:
            if self._is_heard:
                show(text if not sys.stdout.isatty() else harmless(text))
                sys.stdout.flush()
        except BrokenPipeError:
            self._is_heard = False

    def _aside(self, lines: Iterable[str], *styles: str) -> None:
        for line in lines:
            show(self._screen.paint(line, *styles), to=sys.stderr)


def retried(part: RetryPart) -> str:
    """That an attempt failed and another one follows."""
    return f"↻ attempt {part.attempt} failed: {one_line(part.error.data.message)}; trying again"


def failure_text(failure: Failure) -> str:
    """A failure in one line, with what to do about it."""
    from turnkeeper.model.failure import ApiFailure, AuthFailure, OutputLengthFailure, OverflowFailure

    said = one_line(getattr(failure.data, "message", "")).rstrip(".")
    match failure:
        case AuthFailure(data=data):
            return f"{said}; `turnkeeper auth login {data.provider_id}` keeps a key"
        case ApiFailure(data=data) if data.status_code is not None and str(data.status_code) not in said:
            return f"the provider answered {data.status_code}: {said}"
        case OverflowFailure():
            return f"{said}; the conversation is too long for this model"
        case OutputLengthFailure():
            return "the answer hit the model's output limit before anything was said"
    return said or type(failure).__name__

"""The card of a request to the user, above the prompt: a permission, or the questions of a model."""

import sys
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from turnkeeper.cli.chat.tui.asks import OpenAsk
from turnkeeper.cli.permission_prompt import (
    always_key,
    parse_choice,
    permission_lines,
    question_lines,
    ways_to_answer,
)
from turnkeeper.cli.screen import Screen, cells, one_line
from turnkeeper.model.permission import PermissionRequest, Reply
from turnkeeper.model.question import QuestionReply, QuestionRequest

ARMED_S: Final = 0.4
"""Time before keys answer a new card: a key pressed earlier was not meant for it."""


SHARE_PERCENT: Final = 60
"""Maximum height of a card, in percent of the terminal."""
BORDER_LINES: Final = 2
LINES_MAX: Final = 16
SUBTITLE_EDGES: Final = 6
"""Columns of the border that are not available for its text."""
GAP: Final = " · "


class AskCard(Vertical, can_focus=True):
    """A permission request: y, a and n answer while the card has the focus, e takes advice for the model."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "give('once')", "once", show=False),
        Binding("a", "give('always')", "always", show=False),
        Binding("n", "give('reject')", "refuse", show=False),
        Binding("e", "advise", "advice", show=False),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
    ]

    def __init__(self, ask: OpenAsk, waiting: int, tool: str = "") -> None:
        """``tool`` is the tool that asks, if it is known; ``waiting`` is the number of open requests."""
        # Without an id: the card of the next request is mounted while this one is being removed.
        super().__init__()
        self.ask, self._waiting, self._tool = ask, waiting, tool
        self._lines, self._input = Static(), Input()
        self.is_armed = False
        """Whether keys answer the request."""
        self._answers: list[tuple[str, ...]] = []

    def compose(self) -> ComposeResult:
        """The widgets: the request, and an input line. The keys are in the border, which is always visible."""
        self._lines.update(self._asked())
        with VerticalScroll(can_focus=False):
            yield self._lines
        yield self._input

    def on_mount(self) -> None:
        """Show the input line only for questions, set the title and start the timer of the keys."""
        self._input.display = isinstance(self.ask.request, QuestionRequest)
        more = f" · {self._waiting - 1} more wait" if self._waiting > 1 else ""
        tool = f" · {one_line(self._tool)}" if self._tool else ""
        self.border_title = Content(f"WAITING FOR YOU{tool}{more}")
        self.set_timer(ARMED_S, self._arm)

    def on_resize(self) -> None:
        """Limit the height of the request, which scrolls, to its share of the terminal."""
        room = self.app.size.height * SHARE_PERCENT // 100 - BORDER_LINES - self._input.display
        self.query_one(VerticalScroll).styles.max_height = min(max(room, 1), LINES_MAX)
        if self.is_armed:
            self._name_keys()

    def _arm(self) -> None:
        """Let keys answer from now on, and show them."""
        self.is_armed = True
        self._name_keys()

    def on_descendant_focus(self) -> None:
        """The line to type in has the focus."""
        self.on_focus()

    def on_descendant_blur(self) -> None:
        """It lost the focus, perhaps to the prompt."""
        self.on_focus()

    def on_blur(self) -> None:
        """The prompt or the transcript takes the keys."""
        self.on_focus()

    def on_focus(self) -> None:
        """Which keys answer depends on who has the focus."""
        if self.is_armed:
            self._name_keys()

    def _name_keys(self) -> None:
        if self.ask.is_answered.is_set():
            return  # It is about to go, and no question is left whose ways could be named.
        ways = self._ways()
        room = self.app.size.width - SUBTITLE_EDGES
        while len(ways) > 1 and cells(GAP.join(ways)) > room:
            ways.pop(1 if len(ways) == 3 else -1)  # The last keys go first; the key to refuse always stays.
        self.border_subtitle = Content(GAP.join(ways))

    def take_focus(self) -> None:
        """Move the focus to the card or its input line."""
        if isinstance(self.ask.request, QuestionRequest):
            self._input.focus()
        else:
            self.focus()

    def action_give(self, answer: str) -> None:
        """Answer a permission request."""
        if isinstance(self.ask.request, PermissionRequest) and self.is_armed:
            match answer:
                case "once" | "always" | "reject":
                    self.ask.give(Reply(answer=answer))

    def action_advise(self) -> None:
        """Refuse, and tell the model what to do instead."""
        if isinstance(self.ask.request, PermissionRequest) and self.is_armed:
            self._input.placeholder, self._input.display = "refuse, and tell the model what to do instead", True
            self.on_resize()
            self._input.focus()

    def action_move(self, by: int) -> None:
        """Scroll the request."""
        self.query_one(VerticalScroll).scroll_relative(y=by, animate=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Answer with the typed text: advice, or the answer to a question."""
        event.stop()
        request, typed = self.ask.request, event.value
        if isinstance(request, PermissionRequest):
            if typed.strip():
                self.ask.give(Reply(answer="reject", feedback=typed.strip()))
            return
        if not self.is_armed:
            return
        chosen = parse_choice(request.questions[len(self._answers)], typed)
        event.input.value = ""
        if chosen is None:
            return
        self._answers.append(chosen)
        if len(self._answers) == len(request.questions):
            self.ask.give(QuestionReply(answers=tuple(self._answers)))
        else:
            self._lines.update(self._asked())
            self._name_keys()

    def _asked(self) -> Text:
        request, screen = self.ask.request, self._screen()
        if isinstance(request, PermissionRequest):
            lines = list(permission_lines(screen, request))
        else:
            lines = list(question_lines(screen, request.questions[len(self._answers)]))
        lines += [f"  {self.ask.asked_by}"] if self.ask.asked_by else []
        return Text("\n").join(Text.from_ansi(line) for line in lines)

    def _screen(self) -> Screen:
        return Screen(width=self.app.size.width - 8, has_colors=True, now=Screen.of(sys.stdout).now)

    def _ways(self) -> list[str]:
        request = self.ask.request
        if isinstance(request, PermissionRequest):
            always = always_key(self._screen(), request)
            return self._reached(["y once", f"a {always}", "n refuse", "e advice"])
        count = len(request.questions)
        nth = f"{len(self._answers) + 1} of {count}: " if count > 1 else ""
        return self._reached([f"{nth}{ways_to_answer(request.questions[len(self._answers)])}"])

    def _reached(self, ways: list[str]) -> list[str]:
        """The ways, and where Tab leads: what is typed meanwhile goes to the prompt and answers nothing."""
        if self.has_focus_within:
            return [*ways, "Tab the prompt"]
        return [f"Tab, then {ways[0]}", *ways[1:]]

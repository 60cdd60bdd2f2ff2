"""Dialogs over a session: a list to choose from, a yes-or-no question, a text page, and a second key."""

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import ClassVar, Final, NamedTuple

from rich.text import Text
from textual import events
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option
from textual.worker import WorkType

from turnkeeper.cli.screen import harmless, one_line

NEW: Final = ""
"""The value of the choice of a new session."""


class Choice(NamedTuple):
    """An entry of a list, with its description."""

    value: str
    title: str
    about: str = ""


class Picker(ModalScreen[str | None]):
    """A list with a search line. Escape chooses nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("pageup", "move(-10)", show=False, priority=True),
        Binding("pagedown", "move(10)", show=False, priority=True),
        Binding("ctrl+n", "new", show=False, priority=True),
    ]

    def __init__(
        self, title: str, find: Callable[[str], Awaitable[Sequence[Choice]]], *, has_new: bool = False
    ) -> None:
        super().__init__()
        self._title, self._find, self._has_new = title, find, has_new
        self._choices: list[Choice] = []
        self._searched = ""

    def compose(self) -> ComposeResult:
        """The search line and the list."""
        with Vertical(classes="dialog"):
            yield Input(placeholder="type to search")
            yield OptionList()

    def on_mount(self) -> None:
        """Set title and keys, and list all entries."""
        dialog = self.query_one(".dialog")
        new = " · Ctrl-N new session" if self._has_new else ""
        dialog.border_title, dialog.border_subtitle = self._title, f"Enter chooses · Esc leaves{new}"
        self.query_one(OptionList).can_focus = False
        self._search("")

    def on_input_changed(self, event: Input.Changed) -> None:
        """Search again."""
        self._search(event.value)

    async def on_input_submitted(self, event: Input.Submitted) -> None:
        """Choose the marked entry."""
        if event.value != self._searched:  # The list is still the result of an earlier search.
            await self._show(event.value)
        place = self.query_one(OptionList).highlighted
        if place is not None and place < len(self._choices):
            self.dismiss(self._choices[place].value)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Choose the clicked entry."""
        self.dismiss(self._choices[event.option_index].value)

    def action_leave(self) -> None:
        """Choose nothing."""
        self.dismiss(None)

    def action_new(self) -> None:
        """Begin a new session."""
        if self._has_new:
            self.dismiss(NEW)

    def action_move(self, by: int) -> None:
        """Mark another entry."""
        listed = self.query_one(OptionList)
        if self._choices:
            listed.highlighted = min(max((listed.highlighted or 0) + by, 0), len(self._choices) - 1)

    def _search(self, words: str) -> None:
        # A function and no coroutine: Python warns of a coroutine that is replaced before it is awaited.
        work: WorkType[None] = partial(self._show, words)
        self.run_worker(work, exclusive=True)

    async def _show(self, words: str) -> None:
        self._choices, self._searched = list(await self._find(words)), words
        listed = self.query_one(OptionList)
        listed.clear_options()
        listed.add_options([Option(_line(one)) for one in self._choices])
        listed.highlighted = 0 if self._choices else None
        if not self._choices:
            new = " Ctrl-N begins a new session." if self._has_new else ""
            listed.add_option(Option(f"Nothing matches.{new}", disabled=True))


class Agreement(ModalScreen[bool]):
    """A yes-or-no question below some lines. Only y agrees."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", show=False),
        Binding("n,escape,enter", "answer(False)", show=False),
    ]

    def __init__(self, lines: Sequence[str], question: str) -> None:
        super().__init__()
        self._lines, self._question = lines, question

    def compose(self) -> ComposeResult:
        """The lines and the question."""
        with Vertical(classes="dialog agreement"):
            with VerticalScroll():
                yield Static(Text("\n").join(Text.from_ansi(line) for line in self._lines))
            yield Static(Text(harmless(self._question), style="bold"))

    def on_mount(self) -> None:
        """Show the keys in the border."""
        self.query_one(".dialog").border_subtitle = "y yes · n no"

    def action_answer(self, is_yes: bool) -> None:
        """Answer."""
        self.dismiss(is_yes)


class Page(ModalScreen[None]):
    """A text to read."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,f1", "leave", show=False)]

    def __init__(self, title: str, lines: Sequence[str]) -> None:
        super().__init__()
        self._title, self._lines = title, lines

    def compose(self) -> ComposeResult:
        """The text."""
        with Vertical(classes="dialog"), VerticalScroll():
            yield Static(Text("\n").join(Text.from_ansi(line) for line in self._lines))

    def on_mount(self) -> None:
        """Set the title and the key, and focus the text."""
        dialog = self.query_one(".dialog")
        dialog.border_title, dialog.border_subtitle = self._title, "Esc leaves"
        self.query_one(VerticalScroll).focus()

    def action_leave(self) -> None:
        """Go back."""
        self.dismiss(None)


class NextKey(ModalScreen[str | None]):
    """A list of second keys, which waits for one of them."""

    def __init__(self, keys: Sequence[tuple[str, str]]) -> None:
        super().__init__()
        self._keys = keys

    def compose(self) -> ComposeResult:
        """The keys and what they do."""
        yield Static(" · ".join(f"{key} {about}" for key, about in self._keys), classes="next-key")

    def on_key(self, event: events.Key) -> None:
        """Close with the pressed key, or with None for any other key."""
        event.stop()
        self.dismiss(event.key if any(event.key == key for key, _ in self._keys) else None)


def _line(choice: Choice) -> Text:
    about = one_line(choice.about)
    return Text.assemble(harmless(choice.title), *([("  " + about, "dim")] if about else []), no_wrap=True)

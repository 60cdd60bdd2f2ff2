"""Prompt box: a text widget of several lines with history, and a menu of completions."""

from collections.abc import Callable
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.binding import BindingType
from textual.message import Message
from textual.widgets import OptionList, TextArea
from textual.widgets.option_list import Option

from turnkeeper.cli.chat.completion import Candidate
from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.keys import Key
from turnkeeper.cli.screen import one_line, shortened

ABOUT_CELLS: Final = 60
PLACEHOLDER: Final = "type a prompt, /command, @file or !shell command"
KEYS: Final[dict[str, Key]] = {"enter": "enter", "ctrl+o": "ctrl-o", "ctrl+c": "ctrl-c", "ctrl+d": "ctrl-d"}


class CompletionMenu(OptionList, can_focus=False):
    """Menu of the completions of the text before the cursor. The keys of the prompt box move in it."""

    def __init__(self) -> None:
        super().__init__(id="menu")
        self.candidates: list[Candidate] = []
        self.is_entered = False
        """Whether the user has moved in the menu, so that Enter takes the marked completion."""

    def offer(self, candidates: list[Candidate]) -> None:
        """Show these completions; hide the menu if there are none."""
        self.candidates, self.is_entered = candidates, False
        self.clear_options()
        width = max((len(one.text) for one in candidates), default=0)
        for one in candidates:
            about = shortened(one_line(one.about), ABOUT_CELLS)
            self.add_option(Option(Text.assemble(one.text.ljust(width), (f"  {about}", "dim"), no_wrap=True)))
        self.display = bool(candidates)
        self.highlighted = 0 if candidates else None

    def move(self, by: int) -> None:
        """Mark the next or the previous completion."""
        self.is_entered = True
        self.highlighted = ((self.highlighted or 0) + by) % max(len(self.candidates), 1)

    def taken(self) -> Candidate | None:
        """The marked completion; None if the menu is hidden."""
        return self.candidates[self.highlighted] if self.display and self.highlighted is not None else None


class PromptBox(TextArea):
    """Text widget of several lines. Keys with a meaning in the chat are passed to the screen."""

    BINDINGS: ClassVar[list[BindingType]] = []

    class LeftByTab(Message):
        """Tab was pressed while no menu was open: the focus leaves the box."""

    class Escaped(Message):
        """Escape was pressed, and no menu was open."""

    class Wanted(Message):
        """The text changed, so that the completions must be updated."""

        def __init__(self, before: str) -> None:
            super().__init__()
            self.before = before

    def __init__(self, history: TypedLines, menu: CompletionMenu, pressed: Callable[[Key, str], None]) -> None:
        """``pressed`` receives each key with a meaning in the chat, before the next key is handled."""
        super().__init__(id="box", show_line_numbers=False, soft_wrap=True, compact=True, placeholder=PLACEHOLDER)
        self._lines, self._menu, self._pressed = history, menu, pressed
        self._typed = history.load()
        self._place = len(self._typed)
        self._draft = ""

    def sent(self, text: str) -> None:
        """Empty the box and add the text to the history."""
        self._lines.add(text)
        if text.strip() and text[0] != " ":
            self._typed.append(text)
        self.text = ""
        self._place, self._draft = len(self._typed), ""

    @property
    def typed(self) -> list[str]:
        """The history, newest first, each text once."""
        return list(dict.fromkeys(reversed(self._typed)))

    def put(self, text: str) -> None:
        """Replace the text of the box, and focus it."""
        self.text = text
        self.move_cursor(self.document.end)
        self.focus()

    @property
    def before_cursor(self) -> str:
        """The text before the cursor."""
        row, column = self.cursor_location
        lines = self.text.split("\n")
        return "\n".join([*lines[:row], lines[row][:column]])

    async def _on_key(self, event: events.Key) -> None:
        if not event.is_printable and await self._handled(event.key):
            event.prevent_default()
            event.stop()

    async def _handled(self, key: str) -> bool:
        menu = self._menu
        if menu.display and key in ("up", "down"):
            menu.move(1 if key == "down" else -1)
        elif menu.display and (key == "tab" or (key == "enter" and menu.is_entered)):
            self._take()
        elif menu.display and key == "escape":
            menu.offer([])
        elif key in KEYS:
            self._pressed(KEYS[key], self.text)
        elif key in ("ctrl+j", "alt+enter", "shift+enter"):
            self.insert("\n")
        elif key == "tab":
            self.post_message(self.LeftByTab())
        elif key == "escape":
            self.post_message(self.Escaped())
        elif not (key in ("up", "down") and self._recalled(-1 if key == "up" else 1)):
            return await self._edited(key)
        return True

    async def _edited(self, key: str) -> bool:
        """Run the key binding of the box at once; returns whether there is one."""
        # textual would send the key up to the application, and insert the letters that follow it meanwhile.
        bound = self.screen.active_bindings.get(key)
        if bound is None or bound.node is not self or not bound.enabled:
            return False
        await self.run_action(bound.binding.action)
        return True

    def _take(self) -> None:
        if (one := self._menu.taken()) is None:
            return
        row, column = self.cursor_location
        self.replace(one.text, (row, max(column + one.start, 0)), (row, column))
        self._menu.offer([])

    def _recalled(self, by: int) -> bool:
        """Show an entry of the history; False if the cursor is not at the edge of the text."""
        row = self.cursor_location[0]
        if (by < 0 and row > 0) or (by > 0 and row < self.text.count("\n")):
            return False
        place = self._place + by
        if not 0 <= place <= len(self._typed):
            return True
        if self._place == len(self._typed):
            self._draft = self.text
        self._place = place
        self.text = self._typed[place] if place < len(self._typed) else self._draft
        self.move_cursor(self.document.end)
        return True

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        """Request completions."""
        self.post_message(self.Wanted(self.before_cursor))

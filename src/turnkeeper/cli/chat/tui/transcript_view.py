"""The transcript on the screen: a row for each entry. It follows the end until the user moves up."""

from collections.abc import Callable
from typing import ClassVar, Final

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Click, MouseScrollDown, MouseScrollUp
from textual.message import Message
from textual.widgets import Static

from turnkeeper.cli.chat.tui.drawing import drawn
from turnkeeper.cli.chat.tui.entries import FOLDED, Entry, Transcript
from turnkeeper.cli.prose import Prose
from turnkeeper.cli.screen import Screen

MARGIN: Final = 4
"""Columns that the scroll bar and the margins of rows take."""


class Row(Vertical, can_focus=True):
    """Widget of an entry. A text has a widget for each of its blocks, other entries have one."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(classes=entry.kind)
        self.entry = entry
        self._last = Static(classes="last")
        self._blocks = 0
        self._is_complete = False
        """Whether the row is mounted, so that blocks can be added before the last widget."""

    def compose(self) -> ComposeResult:
        """The complete blocks of the entry, and its last widget, which may change."""
        if self.entry.kind == "text":
            self._blocks = len(self.entry.blocks)
            yield from (Static(Prose(block), classes="block") for block in self.entry.blocks)
        yield self._last

    def on_mount(self) -> None:
        """Add the blocks that were completed since the row was composed."""
        self._is_complete = True
        self._add_blocks()

    def draw(self, screen: Screen) -> None:
        """Draw the changes of the entry."""
        entry = self.entry
        if entry.kind != "text":
            self._last.update(drawn(entry, screen))
            return
        if self._is_complete:
            self._add_blocks()
        rest = Prose(entry.tail) if entry.tail.strip() else Text(entry.about, style="dim")
        self._last.display = bool(entry.tail.strip() or entry.about)
        self._last.update(rest)

    def _add_blocks(self) -> None:
        if self.entry.kind == "text" and (new := self.entry.blocks[self._blocks :]):
            self._blocks = len(self.entry.blocks)
            self.mount_all([Static(Prose(block), classes="block") for block in new], before=self._last)


class TranscriptView(VerticalScroll):
    """The rows of a transcript."""

    class OlderWanted(Message):
        """The user has scrolled to the beginning: older messages are wanted."""

    class Chosen(Message):
        """A key was pressed for an entry."""

        def __init__(self, key: str, entry: Entry) -> None:
            super().__init__()
            self.key, self.entry = key, entry

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("j,down", "step(1)", "next", show=False),
        Binding("k,up", "step(-1)", "previous", show=False),
        Binding("o,enter", "fold", "fold", show=False),
        Binding("O", "fold_all", "fold all", show=False),
        Binding("g,home", "begin", "beginning", show=False),
        Binding("G,end", "follow", "end", show=False),
        Binding("c", "choose('copy')", "copy", show=False),
        Binding("f", "choose('fork')", "fork", show=False),
    ]

    def __init__(self, transcript: Transcript, screen_of: Callable[[int], Screen]) -> None:
        super().__init__(id="transcript")
        self._transcript, self._screen_of = transcript, screen_of
        self._rows: dict[str, Row] = {}
        self.is_following = True
        self.unseen = 0
        """Number of entries that were added since the user scrolled up."""

    # Drawing.

    def sync(self, *, is_tick: bool) -> None:
        """Draw the entries that changed since the last call; on a tick also running calls, which show a time."""
        shown = self._transcript
        if self.is_following:
            shown.shorten()
        if shown.is_replaced:
            self._replace()
        if shown.added_before:
            self._add_before()
        removed, shown.removed = shown.removed, set()
        for id in removed:
            if (gone := self._rows.pop(id, None)) is not None:
                gone.remove()
        changed, shown.changed = shown.changed, set()
        if is_tick:
            changed |= {
                row.entry.id for row in self._rows.values() if row.entry.kind == "call" and not row.entry.is_settled
            }
        if changed:
            self._draw([one for id, one in shown.entries.items() if id in changed])

    def redraw(self) -> None:
        """Mark all entries but texts to be drawn again, for another width."""
        self._transcript.changed |= {row.entry.id for row in self._rows.values() if row.entry.kind != "text"}

    def _draw(self, entries: list[Entry]) -> None:
        screen, new = self._current(), []
        for entry in entries:
            row = self._rows.get(entry.id)
            if row is None:
                row = self._rows[entry.id] = Row(entry)
                new.append(row)
            row.entry = entry
            row.draw(screen)
        if new:
            self.mount_all(new)
            self.unseen += 0 if self.is_following else len(new)
        if self.is_following:
            self.scroll_end(animate=False)

    def _replace(self) -> None:
        shown, screen = self._transcript, self._current()
        shown.is_replaced, shown.changed, shown.removed, shown.added_before = False, set(), set(), []
        self._rows = {id: Row(entry) for id, entry in shown.entries.items()}
        for row in self._rows.values():
            row.draw(screen)
        self.remove_children()
        self.mount_all(self._rows.values())
        self.action_follow()

    def _add_before(self) -> None:
        shown, screen = self._transcript, self._current()
        new = {id: Row(shown.entries[id]) for id in shown.added_before if id in shown.entries}
        shown.added_before = []
        for row in new.values():
            row.draw(screen)
        first = next(iter(self._rows.values()), None)
        self._rows = {**new, **self._rows}
        self.mount_all(new.values(), before=0)
        if first is not None:  # The first row keeps its position on the screen.
            self.call_after_refresh(self.scroll_to_widget, first, animate=False, top=True)

    def _current(self) -> Screen:
        return self._screen_of(max((self.size.width or 80) - MARGIN, 20))

    # Following.

    def action_follow(self) -> None:
        """Scroll to the end, and follow new entries."""
        self.is_following, self.unseen = True, 0
        self.scroll_end(animate=False)

    def action_begin(self) -> None:
        """Scroll to the beginning; at the beginning, request older messages."""
        self.is_following = False
        if self.scroll_y <= 0:
            self.post_message(self.OlderWanted())
        self.scroll_home(animate=False)

    def page(self, direction: int) -> None:
        """Scroll by a page; at the beginning, request older messages."""
        if direction > 0:
            self.scroll_page_down(animate=False)
            self.call_after_refresh(self._followed)
            return
        self.is_following = False
        if self.scroll_y <= 0:
            self.post_message(self.OlderWanted())
        self.scroll_page_up(animate=False)

    def _followed(self) -> None:
        if self.scroll_y >= self.max_scroll_y:
            self.action_follow()

    def on_mouse_scroll_up(self, event: MouseScrollUp) -> None:
        """Stop following; at the beginning, request older messages."""
        self.is_following = False
        if self.scroll_y <= 0:
            self.post_message(self.OlderWanted())

    def on_mouse_scroll_down(self, event: MouseScrollDown) -> None:
        """Follow new entries if the end was reached."""
        self.call_after_refresh(self._followed)

    # Entries.

    def action_step(self, by: int) -> None:
        """Focus the next or the previous entry."""
        rows = list(self._rows.values())
        if not rows:
            return
        here = self.app.focused
        place = rows.index(here) + by if isinstance(here, Row) and here in rows else len(rows) - 1
        if place < 0:
            self.action_begin()
        elif place >= len(rows):
            self.action_follow()
        else:
            self.is_following = False
            rows[place].focus()

    def action_fold(self) -> None:
        """Fold or unfold the focused entry."""
        if isinstance(row := self.app.focused, Row):
            self._fold(row)

    def action_fold_all(self) -> None:
        """Unfold all entries that can be folded; fold them if one is unfolded."""
        folded = [row for row in self._rows.values() if row.entry.kind in FOLDED]
        whole = not any(row.entry.is_whole for row in folded)
        for row in folded:
            row.entry.is_whole = whole
            row.draw(self._current())
        if isinstance(chosen := self.app.focused, Row):  # Keeps it in view: entries above it have other heights now.
            self.call_after_refresh(self.scroll_to_widget, chosen, animate=False)

    def action_choose(self, key: str) -> None:
        """Post the action of a key for the focused entry."""
        if isinstance(row := self.app.focused, Row):
            self.post_message(self.Chosen(key, row.entry))

    def on_click(self, event: Click) -> None:
        """Fold or unfold the clicked entry."""
        widget = event.widget
        while widget is not None and not isinstance(widget, Row):
            widget = widget.parent if isinstance(widget.parent, Static | Vertical) else None
        if isinstance(widget, Row) and widget.entry.kind in FOLDED:
            self.is_following = False  # The clicked entry keeps its position.
            self._fold(widget)

    def _fold(self, row: Row) -> None:
        if row.entry.kind in FOLDED:
            row.entry.is_whole = not row.entry.is_whole
            row.draw(self._current())

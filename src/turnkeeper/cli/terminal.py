"""The display for a terminal: unfinished parts in a live region, finished ones printed above it."""

import time
from typing import TYPE_CHECKING, Final

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from turnkeeper.cli.feed import Display
from turnkeeper.cli.part_lines import call_lines, file_line, head, source_lines
from turnkeeper.cli.partial_text import PartialPart
from turnkeeper.cli.plain import retried
from turnkeeper.cli.prose import WIDTH_MAX, Prose
from turnkeeper.cli.screen import Screen, harmless, one_line, shortened
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, ReasoningPart, RetryPart, TextPart, ToolPart
from turnkeeper.model.parts.base import BasePart
from turnkeeper.model.parts.tool import ToolRunning
from turnkeeper.model.status import Retrying

if TYPE_CHECKING:
    from collections.abc import Iterable

FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
FRAMES_PER_S: Final = 12.5
PROMPT_MARK: Final = "»"
TAIL_LINES: Final = 10
"""How many lines of an unfinished text are displayed."""


class Region:
    """The area in which unfinished parts are drawn, below printed output; here at the end of the output."""

    lines_below = 2
    """How many lines of the terminal are reserved below the region."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live: Live | None = None

    def show(self, rows: RenderableType) -> None:
        """Draw these rows in place of those that are shown."""
        if self._live is None:
            self._live = Live(
                console=self._console, auto_refresh=False, transient=True, redirect_stdout=False, redirect_stderr=False
            )
            self._live.start()
        self._live.update(rows, refresh=True)

    def clear(self) -> None:
        """Remove the rows."""
        if self._live is not None:
            self._live.stop()
            self._live = None


class Terminal(Display):
    """Displays unfinished parts in a live region and prints finished ones above it."""

    def __init__(self, console: Console, screen: Screen, *, thinking: bool, region: Region | None = None) -> None:
        self._console, self._screen, self._thinking = console, screen, thinking
        self._live_region = region or Region(console)
        self._is_drawn = False
        self._items: dict[str, PartialPart] = {}
        self._turn: AssistantMessage | None = None
        self._since = 0.0
        self._wait: Retrying | None = None
        self._header = ""
        self._last = ""
        self._drawn = 0.0
        self._notice = ""

    # Calls of the feed.

    def began(self, message: AssistantMessage) -> None:
        """Print agent and model when they change, and show that the run waits."""
        header = f"{message.agent} · {message.provider_id}/{message.model_id}"
        if header != self._header:
            self._header = header
            self._print("head", Text(f"> {one_line(header)}", style="dim"))
        self._turn, self._since, self._wait = message, time.monotonic(), None
        self._draw()

    def opened(self, part: BasePart) -> None:
        """Display an unfinished part."""
        item = self._items.get(part.id)
        if item is None:
            self._items[part.id] = PartialPart(part)
        else:
            item.part = part
        self._draw()

    def grew(self, part_id: str, text: str) -> None:
        """Display the text, and print complete paragraphs."""
        item = self._items.get(part_id)
        if item is not None:
            item.grow(text)
            if "\n" in text:
                self._flush()
            self._draw(soon=True)

    def settled(self, part: BasePart) -> None:
        """Print a finished part after all parts that began before it."""
        item = self._items.setdefault(part.id, PartialPart(part))
        item.settle(part)
        self._flush()
        self._draw()

    def dropped(self, part_id: str) -> None:
        """Remove the part. Printed text stays; the retry that follows explains it."""
        self._items.pop(part_id, None)
        self._draw()

    def waits(self, status: Retrying) -> None:
        """Display the time until the next attempt."""
        self._wait = status
        self._draw()

    def ended(self, message: AssistantMessage) -> None:
        """Print all remaining parts."""
        for item in self._items.values():
            item.is_settled = True
        self._flush()
        self._turn = self._wait = None
        self._draw()

    def note(self, text: str) -> None:
        """Print a remark with its colours."""
        self._print("note", *(Text.from_ansi(line) for line in text.splitlines()))

    def prompted(self, text: str, about: str = "", *, message_id: str = "") -> None:
        """Print a prompt, with what becomes of it."""
        first, *others = harmless(text).splitlines() or [""]
        lines = [Text(f"{PROMPT_MARK} {first}", style="bold"), *(Text(f"  {line}", style="bold") for line in others)]
        self._print("prompt", *lines, *([Text(f"  {about}", style="dim")] if about else []))

    def notice(self, text: str) -> None:
        """Display what is happening, at the bottom."""
        self._notice = text
        self._draw()

    def tick(self) -> None:
        """Redraw the spinner and the times."""
        if self._is_drawn or self._turn is not None:
            self._draw()

    def close(self) -> None:
        """Remove the live region."""
        if self._is_drawn:
            self._live_region.clear()
            self._is_drawn = False

    # Printing.

    def _flush(self) -> None:
        """Print finished parts, in the order in which they began."""
        while self._items:
            item = next(iter(self._items.values()))
            if isinstance(item.part, TextPart) and (text := item.take()):
                self._print("text", Prose(text))
            if not item.is_settled:
                return
            del self._items[item.part.id]
            self._finish(item)

    def _finish(self, item: PartialPart) -> None:
        match item.part:
            case TextPart() as part:
                self._print("sources", *(Text(line, style="dim") for line in source_lines(part)))
            case FilePart() as part:
                self._print("call", Text(file_line(part)))
            case ReasoningPart():
                self._print("thought", *self._thought(item))
            case ToolPart() as part:
                self._print("call", *(Text.from_ansi(line) for line in call_lines(self._screen, part)))
            case RetryPart() as part:
                self._print("note", Text(retried(part), style="yellow"))

    def _print(self, kind: str, *lines: RenderableType) -> None:
        """Print lines, after an empty line if the last ones were of another kind."""
        if not lines:
            return
        if self._last not in ("", "thought") and (kind != self._last or kind == "text"):
            self._console.print()
        self._last = kind
        for line in lines:
            is_text = isinstance(line, Text)
            # The line of a call is not wrapped, so that it can be copied; a remark is.
            self._console.print(
                line, soft_wrap=is_text and kind != "note", highlight=False, end="\n" if is_text else ""
            )

    def _thought(self, item: PartialPart) -> "Iterable[Text]":
        """The first line of reasoning, or all of it with --thinking."""
        lines = [line for line in harmless(item.waiting.strip()).splitlines() if line.strip()]
        if not lines:
            return []
        room = min(self._console.width, WIDTH_MAX) - 4
        if self._thinking:
            return [Text(f"┊ {piece}", style="dim italic") for line in lines for piece in _wrapped(line, room)]
        more = " …" if len(lines) > 1 else ""
        return [Text(f"┊ {shortened(lines[0], room - len(more))}{more}", style="dim italic")]

    # The live region.

    def _draw(self, *, soon: bool = False) -> None:
        """Draw the live region; with ``soon`` at most as often as the frame rate."""
        now = time.monotonic()
        if soon and now - self._drawn < 1 / FRAMES_PER_S:
            return
        self._drawn = now
        region = self._region()
        if region is None:
            self.close()
            return
        self._is_drawn = True
        self._live_region.show(region)

    def _region(self) -> RenderableType | None:
        rows = [row for item in self._items.values() for row in self._rows(item)]
        if self._wait is not None:
            left = max(0, self._wait.next / 1000 - time.time())
            rows.append(self._moving(f"trying again in {left:.0f} s: {one_line(self._wait.message)}"))
        elif self._turn is not None and not rows:
            waited = time.monotonic() - self._since
            rows.append(self._moving(f"{self._turn.model_id} {f'{waited:.0f} s' if waited >= 1 else ''}"))
        if self._notice:
            rows.append(Text(self._notice, style="yellow"))
        room = max(3, min(TAIL_LINES + 4, self._console.height - self._live_region.lines_below))
        return Group(Text(""), *rows[-room:]) if rows else None

    def _rows(self, item: PartialPart) -> "list[RenderableType]":
        match item.part:
            case ToolPart() as part:
                return [self._call(part), *self._last_output(part)]
            case TextPart():
                return list(self._tail(item.waiting, ""))
            case ReasoningPart():
                return list(self._tail(item.waiting, "dim italic", "┊ "))
        return []

    def _call(self, part: ToolPart) -> Text:
        about = ""
        if isinstance(part.state, ToolRunning):
            seconds = time.time() - part.state.time.start / 1000
            about = f"{seconds:.0f} s" if seconds >= 1 else "running"
        line = Text.from_ansi(head(self._screen, part, about, "yellow"))
        return Text.assemble((f"{self._frame()} ", "yellow"), line)

    def _last_output(self, part: ToolPart) -> "Iterable[Text]":
        """The last line of output of a running command."""
        state = part.state
        output = state.metadata.get("output") if isinstance(state, ToolRunning) and state.metadata else None
        lines = harmless(output.strip()).splitlines() if isinstance(output, str) else []
        room = min(self._console.width, WIDTH_MAX) - 8
        return [Text(f"    │ {shortened(line, room)}", style="dim", no_wrap=True) for line in lines[-1:]]

    def _tail(self, text: str, style: str, mark: str = "") -> "Iterable[Text]":
        room = min(self._console.width, WIDTH_MAX) - len(mark) - 1
        # Only the end is displayed, so only the end is wrapped.
        text = text[-TAIL_LINES * WIDTH_MAX :]
        lines = [piece for line in harmless(text.strip("\n")).splitlines() for piece in _wrapped(line, room)]
        return (Text(f"{mark}{line}", style=style, no_wrap=True) for line in lines[-TAIL_LINES:])

    def _moving(self, text: str) -> Text:
        return Text(f"{self._frame()} {text}".rstrip(), style="dim", no_wrap=True)

    def _frame(self) -> str:
        return FRAMES[int(time.monotonic() * FRAMES_PER_S) % len(FRAMES)]


def _wrapped(line: str, width: int) -> list[str]:
    import textwrap

    return textwrap.wrap(line, max(width, 1), replace_whitespace=False, drop_whitespace=False) or [""]

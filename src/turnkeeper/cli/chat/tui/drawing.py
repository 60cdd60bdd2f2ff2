"""Drawing of entries: each as a rich renderable, for a given width and time."""

import time

from rich.console import Group, RenderableType
from rich.text import Text

from turnkeeper.cli.chat.tui.entries import Entry
from turnkeeper.cli.part_lines import call_lines, head
from turnkeeper.cli.prose import Prose
from turnkeeper.cli.screen import Screen, harmless, plural, shortened
from turnkeeper.cli.terminal import PROMPT_MARK
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolRunning


def drawn(entry: Entry, screen: Screen) -> RenderableType:
    """An entry other than a text, which is drawn block by block."""
    match entry.kind:
        case "prompt":
            return _prompt(entry)
        case "head":
            return Text(f"> {entry.text}", style="dim")
        case "thought":
            return _thought(entry, screen)
        case "call" if entry.part is not None:
            return _call(entry, entry.part, screen)
        case "summary":
            return _summary(entry)
    return Text("\n").join(Text.from_ansi(line) for line in entry.text.splitlines())


def _prompt(entry: Entry) -> Text:
    first, *others = entry.text.splitlines() or [""]
    lines = [Text(f"{PROMPT_MARK} {first}", style="bold"), *(Text(f"  {line}", style="bold") for line in others)]
    lines += [Text(f"  {line}", style="dim") for line in entry.about.splitlines()]
    return Text("\n").join(lines)


def _thought(entry: Entry, screen: Screen) -> Text:
    lines = [line for line in harmless(entry.text.strip()).splitlines() if line.strip()]
    if entry.is_whole:
        return Text("\n").join(Text(f"┊ {line}", style="dim italic") for line in lines)
    # The end is shown while the text grows, and the beginning afterwards.
    shown = "" if not lines else lines[0] if entry.is_settled else lines[-1]
    more = " …" if len(lines) > 1 else ""
    return Text(f"┊ {shortened(shown, max((screen.width or 80) - 4, 10))}{more}", style="dim italic")


def _call(entry: Entry, part: ToolPart, screen: Screen) -> Text:
    if not entry.is_settled:
        return _running(part, screen, is_asked=entry.is_asked)
    return Text("\n").join(Text.from_ansi(line) for line in call_lines(screen, part, whole=entry.is_whole))


def _running(part: ToolPart, screen: Screen, *, is_asked: bool) -> Text:
    state, about, lines = part.state, "waiting for you" if is_asked else "", []
    if not is_asked and isinstance(state, ToolRunning):
        seconds = time.time() - state.time.start / 1000
        about = f"running {seconds:.0f} s" if seconds >= 1 else "running"
        output = state.metadata.get("output") if state.metadata else None
        lines = harmless(output.strip()).splitlines() if isinstance(output, str) else []
    line = Text.from_ansi(head(screen, part, about, "yellow"))
    last = [Text(f"    │ {shortened(one, max((screen.width or 80) - 8, 10))}", style="dim") for one in lines[-3:]]
    return Text("\n").join([line, *last])


def _summary(entry: Entry) -> RenderableType:
    lines = plural(len(entry.text.splitlines()), "line")
    line = Text(f"⋯ older history was summarised for the model: {lines}", style="dim")
    return Group(line, Prose(entry.text)) if entry.is_whole else line

"""The lines above and below a session: title, model, window, cost; what runs; the keys. Pure functions."""

from typing import NamedTuple

from rich.text import Text

from turnkeeper.cli.chat.keys import State, hints
from turnkeeper.cli.screen import cells, money, one_line, shortened
from turnkeeper.core.titles import is_default
from turnkeeper.model.session import Session, Tokens

GAP = " · "
BAR = 8
LEAST_TITLE = 8
"""Minimum width of the title; numbers are left out to make room for it."""
LEAST = 24
"""Minimum width of the current activity; keys are left out to make room for it."""
TRANSCRIPT_KEYS = "j k move · o unfold · c copy · f fork · Esc prompt"
FULL_PERCENT = 80
"""Percentage of the window from which its meter warns."""


class Facts(NamedTuple):
    """The values that the header shows."""

    session: Session | None
    agent: str
    model: str
    cost: float
    window: int
    """The context window of the model, in tokens; 0 if it is unknown."""
    tokens: Tokens | None


def header(facts: Facts, width: int) -> Text:
    """The header: title, agent and model at the left; window, cost and changed lines at the right; as much as fits."""
    ended = _numbers(facts, width - LEAST_TITLE - 2)
    session = facts.session
    title = "new session" if session is None or is_default(session.title) else one_line(session.title)
    left = [title, facts.agent, facts.model]
    while len(left) > 1 and sum(map(cells, left)) + len(GAP) * (len(left) - 1) + 2 + ended.cell_len > width:
        left.pop(1 if len(left) == 3 else -1)  # The agent is left out first, then the model.
    room = max(width - ended.cell_len - 2, LEAST_TITLE)
    begun = Text(shortened(GAP.join(filter(None, left)), room), style="bold")
    return Text.assemble(begun, " " * max(width - begun.cell_len - ended.cell_len, 2), ended)


def window_percent(tokens: Tokens | None, window: int) -> int | None:
    """Percentage of the context window in use after the last answer; None if it is not known."""
    if tokens is None or not window:
        return None
    used = tokens.input + tokens.cache.read + tokens.cache.write + tokens.output
    return min(round(100 * used / window), 100)


def _numbers(facts: Facts, room: int) -> Text:
    """Window, cost and changed lines. The bar is left out first, then the changed lines, then the window."""
    window, cost, changes = _window(facts, BAR), _cost(facts), _changes(facts)
    brief = _window(facts, 0)
    for parts in ((window, cost, changes), (brief, cost, changes), (brief, cost)):
        shown = Text(GAP).join(part for part in parts if part is not None)
        if shown.cell_len <= room:
            return shown
    return cost or Text()


def _window(facts: Facts, bar: int) -> Text | None:
    percent = window_percent(facts.tokens, facts.window)
    if percent is None:
        return None
    filled = round(bar * percent / 100)
    style = "yellow" if percent >= FULL_PERCENT else ""
    return Text(f"window {percent} % {'━' * filled}{'─' * (bar - filled)}".rstrip(), style=style)


def _cost(facts: Facts) -> Text | None:
    return Text(money(facts.cost)) if facts.session is not None else None


def _changes(facts: Facts) -> Text | None:
    session = facts.session
    if session is None or session.summary is None or not session.summary.files:
        return None
    changed = session.summary
    undone = "undone: " if session.revert is not None else ""
    return Text.assemble(undone, (f"+{changed.additions:,}", "green"), " ", (f"-{changed.deletions:,}", "red"))


def footer(state: State, doing: str, seconds: float, width: int, *, in_transcript: bool = False) -> Text:
    """The footer: current activity at the left; keys of the prompt or of the transcript at the right."""
    words = f"{state} {seconds:.0f} s  {doing}" if state != "idle" else doing
    known = TRANSCRIPT_KEYS if in_transcript else hints(state)
    for keys in (f"{known} · Ctrl-P commands · F1 keys", f"{known} · F1 keys", known, "F1 keys", ""):
        room = width - cells(keys) - 2
        if room >= min(cells(words), LEAST):
            break
    left = shortened(words, max(room, 0)) if words else ""
    gap = " " * max(width - cells(left) - cells(keys), 1)
    return Text.assemble((left, "yellow" if state != "idle" else "dim"), gap, (keys, "dim"))

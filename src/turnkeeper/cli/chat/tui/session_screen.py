"""The screen of a session: header, transcript, requests, prompt and footer, and what keys do in it."""

import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import ClassVar, Final

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.events import Key, Resize
from textual.screen import Screen as TextualScreen
from textual.widgets import Static
from textual.worker import WorkType

from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.keys import Key as PromptKey
from turnkeeper.cli.chat.keys import meaning
from turnkeeper.cli.chat.slash import KEYS, explained
from turnkeeper.cli.chat.tui.ask_card import AskCard
from turnkeeper.cli.chat.tui.asks import OpenAsks
from turnkeeper.cli.chat.tui.conversation import ScreenConversation
from turnkeeper.cli.chat.tui.dialogs import NEW, Choice, NextKey, Page, Picker
from turnkeeper.cli.chat.tui.prompt_box import CompletionMenu, PromptBox
from turnkeeper.cli.chat.tui.status import footer, header
from turnkeeper.cli.chat.tui.transcript_view import TranscriptView
from turnkeeper.cli.part_lines import subject
from turnkeeper.cli.screen import Screen, one_line

FRAMES_PER_S: Final = 15
TWICE_S: Final = 2.0
"""Maximum time between two Escapes that stop the turn."""
LEADER: Final = (
    ("l", "sessions"),
    ("n", "new"),
    ("f", "fork"),
    ("u", "undo"),
    ("r", "redo"),
    ("c", "compact"),
    ("m", "model"),
    ("a", "agent"),
    ("s", "share"),
    ("y", "copy the answer"),
    ("t", "theme"),
)
"""Key bindings after Ctrl-X: letters with their actions."""
NO_BREAK: Final = "\u00a0"
MORE_KEYS: Final = (
    ("Ctrl-J", "begins a new line, too"),
    ("Tab", "where nothing completes: to the transcript, and back"),
    ("j, k", "in the transcript: the next and the previous entry"),
    ("o, O", "in the transcript: all of a call or thought, or of every one"),
    ("c, f", "in the transcript: copy an entry; fork before it"),
    ("PgUp, PgDn, End", "scroll; at the beginning, older messages are read"),
    ("Esc Esc", "stops the turn"),
    ("y, a, n, e", "on a request: once, always, refuse, advice"),
    ("F2, F3, F4", "sessions, models, agents"),
    ("Ctrl-P", "every command, and the themes"),
    # A letter stays in one line with its action.
    ("Ctrl-X", f"then {', '.join(f'{key} {about}'.replace(' ', NO_BREAK) for key, about in LEADER)}"),
)


class SessionScreen(TextualScreen[None]):
    """The screen of one session, on the whole terminal."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1", "keys", "keys", priority=True),
        Binding("f2", "sessions", "sessions", priority=True),
        Binding("f3", "models", "models", priority=True),
        Binding("f4", "agents", "agents", priority=True),
        Binding("ctrl+r", "typed", "typed before", priority=True),
        Binding("ctrl+x", "leader", "more", priority=True),
        Binding("pageup", "page(-1)", show=False, priority=True),
        Binding("pagedown", "page(1)", show=False, priority=True),
        Binding("ctrl+end", "follow", show=False, priority=True),
        Binding("ctrl+c", "pressed('ctrl+c')", show=False),
        Binding("ctrl+d", "pressed('ctrl+d')", show=False),
        Binding("tab", "turn", show=False, priority=False),
        Binding("shift+tab", "turn", show=False),
        Binding("escape,i", "box", show=False),
    ]

    def __init__(self, desk: ScreenConversation, asks: OpenAsks, history: TypedLines) -> None:
        super().__init__()
        self.desk, self._asks = desk, asks
        self._menu = CompletionMenu()
        self.box = PromptBox(history, self._menu, self.pressed)
        self.view = TranscriptView(desk.transcript, self._plain_screen)
        self._head, self._foot = Static(id="head"), Static(id="foot")
        self._pill, self._notice = Static(id="pill"), Static(id="notice")
        self._dock = Vertical(id="dock")
        self._card: AskCard | None = None
        self._escaped_at = self._began_at = -TWICE_S
        self._ticked = 0
        self._lines: tuple[object, ...] = ()

    def compose(self) -> ComposeResult:
        """The widgets, from top to bottom."""
        yield self._head
        yield self.view
        yield self._pill
        with self._dock:
            yield self._notice
            yield self._menu
            yield self.box
        yield self._foot

    def on_mount(self) -> None:
        """Start the timer that draws changes, and open the list of sessions or continue unfinished work."""
        self._menu.offer([])
        self.box.focus()
        self.desk.transcript.is_replaced = True
        self.sync()
        self.set_interval(1 / FRAMES_PER_S, self.sync)
        if self.desk.offers:
            self.action_sessions()
        else:
            self.run_worker(self.desk.guarded(self.desk.take_up))

    # Drawing.

    def sync(self) -> None:
        """Draw the changes since the last call."""
        second = int(time.monotonic())
        is_tick, self._ticked = second != self._ticked, second
        self.view.sync(is_tick=is_tick)
        self._sync_asks()
        if self.desk.state == "idle":
            self._began_at = time.monotonic()
        width = self.size.width - 2
        if width < 1:
            return
        seconds = int(time.monotonic() - self._began_at)
        unseen = self.view.unseen if not self.view.is_following else 0
        notice = self._notice_text()
        doing = self._doing()
        is_asked = bool(self._asks.waiting)
        in_transcript = self.view.has_focus_within
        lines = (
            self.desk.facts,
            self.desk.state,
            doing,
            is_asked,
            in_transcript,
            seconds,
            unseen,
            self.view.is_following,
            notice,
            width,
        )
        if lines == self._lines:
            return
        self._lines = lines
        self._head.update(header(self.desk.facts, width))
        happens = "waiting for you" if is_asked else doing
        self._foot.update(footer(self.desk.state, happens, seconds, width, in_transcript=in_transcript))
        if self._pill.display == self.view.is_following:
            self._pill.display = not self.view.is_following
            # Textual loses the old position if the transcript scrolls at the same time, and would leave the pill there.
            self.call_after_refresh(self.refresh)
        self._pill.update(f"{unseen} new below · Ctrl-End" if unseen else "Ctrl-End follows")
        self._notice.display = bool(notice)
        self._notice.update(notice)

    def on_resize(self, event: Resize) -> None:
        """Draw all entries again, because lines are cut to the width."""
        self.view.redraw()

    def _notice_text(self) -> str:
        shown = self.desk.transcript
        if shown.waiting is not None:
            left = max(0, shown.waiting.next / 1000 - time.time())
            return one_line(f"trying again in {left:.0f} s: {shown.waiting.message}")
        if time.monotonic() - self._escaped_at < TWICE_S and self.desk.state == "running":
            return "Esc again stops the turn"
        return shown.notice_text

    def _doing(self) -> str:
        shown = self.desk.transcript
        for one in reversed(shown.entries.values()):
            if one.part is not None and not one.is_settled:
                return one_line(f"{one.part.tool} {subject(one.part)}")
        return one_line(shown.turn.model_id) if shown.turn is not None else ""

    def _plain_screen(self, width: int) -> Screen:
        here = Screen.of(sys.__stdout__ or sys.stdout)
        return Screen(width=width, has_colors=True, now=here.now, home=here.home)

    # Requests.

    def _sync_asks(self) -> None:
        self.desk.transcript.mark_asked({one.request.tool.call_id for one in self._asks.waiting})
        first = self._asks.waiting[0] if self._asks.waiting else None
        if (self._card.ask if self._card is not None else None) is first:
            return
        if self._card is not None:
            if self._card.has_focus_within:
                self.set_focus(self.box)  # Before the removal, or an entry of the transcript would get the focus.
            self._card.disabled = True  # The removal is asynchronous, and the card may not get the focus any more.
            self._card.remove()
            self._card = None
        if first is not None:
            tool = self.desk.transcript.tool_of(first.request.tool.call_id)
            self._card = AskCard(first, len(self._asks.waiting), tool)
            self.mount(self._card, before=self._dock)
            self.app.bell()
            if not self.box.text.strip():  # A card never takes the focus from a user who types.
                self.call_after_refresh(self._card.take_focus)

    # Keys.

    def before_key(self, event: Key) -> None:
        """Move the focus to the prompt for a letter without a key binding in the transcript."""
        if event.is_printable and self.view.has_focus_within and event.key not in self.active_bindings:
            self.set_focus(self.box)

    def pressed(self, key: PromptKey, text: str) -> None:
        """Handle a key of the prompt by its meaning in the current state of the chat."""
        match means := meaning(key, self.desk.state, has_text=bool(text.strip())):
            case "nothing":
                return
            case "clear":
                self.box.text = ""
            case "delete":
                self.box.action_delete_right()
            case "send" | "steer" | "queue":
                self.box.sent(text)
                self.view.action_follow()
                self.desk.heard(means, text)
            case _:
                self.desk.heard(means, "")

    def on_prompt_box_left_by_tab(self, event: PromptBox.LeftByTab) -> None:
        """Move the focus to the request or the transcript."""
        self.action_turn()

    def on_prompt_box_escaped(self, event: PromptBox.Escaped) -> None:
        """Stop the turn at the second Escape."""
        if self.desk.state != "running":
            return
        now = time.monotonic()
        if now - self._escaped_at < TWICE_S:
            self._escaped_at = -TWICE_S
            self.desk.heard("stop", "")
        else:
            self._escaped_at = now

    def on_prompt_box_wanted(self, event: PromptBox.Wanted) -> None:
        """Update the completions of the typed text."""
        self._work(partial(self._complete, event.before), "complete")

    def _work(self, work: WorkType[None], group: str) -> None:
        """Start work in the background; it replaces the running work of its group."""
        # A function and no coroutine: Python warns of a coroutine that is replaced before it is awaited.
        self.run_worker(work, exclusive=True, group=group)

    async def _complete(self, before: str) -> None:
        found = await self.desk.complete(before) if before.startswith("/") or "@" in before else []
        if before == self.box.before_cursor:
            self._menu.offer(found)

    def action_pressed(self, key: str) -> None:
        """Handle Ctrl-C or Ctrl-D while the focus is not in the prompt."""
        self.box.focus()
        if key == "ctrl+c":
            self.pressed("ctrl-c", self.box.text)
        elif not self.box.text:
            self.pressed("ctrl-d", "")

    def action_turn(self) -> None:
        """Move the focus from the prompt to a request, to the transcript, and back."""
        if self.box.has_focus and self._card is not None:
            self._card.take_focus()
        elif self.box.has_focus or (self._card is not None and self._card.has_focus_within):
            self.view.action_step(1)
        else:
            self.action_box()

    def action_box(self) -> None:
        """Move the focus to the prompt."""
        self.box.focus()

    def action_page(self, direction: int) -> None:
        """Scroll the transcript."""
        self.view.page(direction)

    def action_follow(self) -> None:
        """Go to the end of the transcript."""
        self.view.action_follow()

    def on_transcript_view_older_wanted(self, event: TranscriptView.OlderWanted) -> None:
        """Read older messages."""
        self._work(partial(self.desk.guarded, self._older), "older")

    async def _older(self) -> None:
        await self.desk.load_older()

    def on_transcript_view_chosen(self, event: TranscriptView.Chosen) -> None:
        """Copy an entry, or fork before it."""
        match event.key:
            case "copy":
                self.app.copy_to_clipboard(event.entry.text)
                self.app.notify("copied")
            case "fork" if event.entry.message_id:
                self.action_box()  # The next typed text is a prompt of the fork.
                self.command(f"/fork {event.entry.message_id}")

    # Dialogs.

    def command(self, line: str) -> None:
        """Run a slash command, as if it was typed."""
        self.view.action_follow()
        self.desk.heard("send", line)

    def action_keys(self) -> None:
        """Show the keys and the slash commands."""
        # As screen.tcss has it: 90 % of the width, less border, padding and scroll bar.
        screen = self._plain_screen(max(min(self.size.width * 9 // 10, 100) - 5, 20))
        commands = [(f"/{one.name} {one.argument}".rstrip(), one.about) for one in sorted(self.desk.commands.values())]
        lines = [*explained(screen, [*KEYS, *MORE_KEYS]), "", *explained(screen, commands)]
        self.app.push_screen(Page("keys and commands", lines))

    def action_sessions(self) -> None:
        """Choose a session."""
        self.app.push_screen(Picker("sessions", self._sessions, has_new=True), self._chose_session)

    def action_models(self) -> None:
        """Choose a model."""
        self._pick("models", self.desk.choices.models, lambda name: self.command(f"/model {name}"))

    def action_agents(self) -> None:
        """Choose an agent."""
        self._pick("agents", self.desk.choices.agents, lambda name: self.command(f"/agent {name}"))

    def action_typed(self) -> None:
        """Choose from the history of typed texts."""
        self._pick("typed before", dict.fromkeys(self.box.typed, ""), self.box.put)

    def action_leader(self) -> None:
        """Wait for the second key after Ctrl-X."""
        self.app.push_screen(NextKey(LEADER), self._led)

    def _led(self, key: str | None) -> None:
        match dict(LEADER).get(key or ""):
            case "sessions":
                self.action_sessions()
            case "model":
                self.action_models()
            case "agent":
                self.action_agents()
            case "theme":
                self.app.search_themes()
            case "copy the answer":
                self.app.copy_to_clipboard(self.desk.transcript.last_answer)
                self.app.notify("copied")
            case str() as name:
                self.command(f"/{name}")

    async def _sessions(self, words: str) -> Sequence[Choice]:
        screen = self._plain_screen(80)
        here = str(self.desk.directory) if self.desk.directory is not None else ""
        return [
            Choice(
                one.session.id,
                one_line(one.session.title),
                " · ".join(
                    filter(
                        None,
                        (
                            screen.ago(one.session.time.updated),
                            screen.path(one.session.directory) if one.session.directory != here else "",
                            one.excerpt,
                        ),
                    )
                ),
            )
            for one in await self.desk.find(words)
        ]

    def _chose_session(self, chosen: str | None) -> None:
        if chosen == NEW:
            self.command("/new")
        elif chosen is not None:
            self.command(f"/sessions {chosen}")

    def _pick(self, title: str, values: Mapping[str, str], take: Callable[[str], None]) -> None:
        async def find(words: str) -> Sequence[Choice]:
            wanted = words.lower().split()
            return [
                Choice(value, one_line(value), about)
                for value, about in values.items()
                if all(word in f"{value} {about}".lower() for word in wanted)
            ]

        self.app.push_screen(Picker(title, find), lambda value: take(value) if value else None)

"""The full screen as a typing place, and its textual application."""

import io
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, Final

import anyio
from textual.app import App, SystemCommand
from textual.events import Event, Key
from textual.screen import Screen

from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.tui.asks import OpenAsks
from turnkeeper.cli.chat.tui.conversation import ScreenConversation
from turnkeeper.cli.chat.tui.dialogs import Agreement
from turnkeeper.cli.chat.tui.driver import HangupDriver
from turnkeeper.cli.chat.tui.entries import Transcript
from turnkeeper.cli.chat.tui.preferences import Preferences
from turnkeeper.cli.chat.tui.session_screen import SessionScreen
from turnkeeper.cli.chat.tui.themes import DEFAULT, THEMES
from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.feed import Display

STYLES: Final = Path(__file__).with_name("screen.tcss")


class SessionApp(App[None]):
    """The textual application: themes and command palette. The rest is in the screen."""

    CSS_PATH = STYLES
    TITLE = "turnkeeper"

    def __init__(
        self, desk: ScreenConversation, asks: OpenAsks, history: TypedLines, environ: Mapping[str, str]
    ) -> None:
        super().__init__(driver_class=HangupDriver)
        self.desk, self._asks, self._history = desk, asks, history
        self._preferences = Preferences(environ)
        for one in THEMES:
            self.register_theme(one)
        chosen = self._preferences.theme
        self.theme = chosen if chosen in self.available_themes else DEFAULT

    def get_default_screen(self) -> Screen[None]:
        """The screen of the session."""
        return SessionScreen(self.desk, self._asks, self._history)

    def watch_theme(self, theme: str) -> None:
        """Remember the theme."""
        self._preferences.choose(theme)

    @property
    def session_screen(self) -> SessionScreen:
        """The screen of the session, also while a dialog is open."""
        return next(one for one in self.screen_stack if isinstance(one, SessionScreen))

    def get_system_commands(self, screen: Screen[Any]) -> Iterable[SystemCommand]:
        """The entries of the command palette: every slash command, themes and folding."""
        here = self.session_screen
        dialogs: dict[str, Callable[[], None]] = {
            "sessions": here.action_sessions,
            "model": here.action_models,
            "agent": here.action_agents,
            "help": here.action_keys,
        }
        for one in self.desk.commands.values():
            needs_words = bool(one.argument) and not one.argument.startswith("[")
            line = f"/{one.name}"
            said = partial(here.box.put, f"{line} ") if needs_words else partial(here.command, line)
            yield SystemCommand(line, one.about, dialogs.get(one.name, said))
        yield SystemCommand("theme", "choose the colours", self.search_themes)
        yield SystemCommand("fold", "show all of every call, or less", here.view.action_fold_all)

    @property
    def failure(self) -> Exception | None:
        """The exception that ended the application; None if it ended normally."""
        return self._exception

    def _handle_exception(self, error: Exception) -> None:
        super()._handle_exception(error)
        # `FullScreen.run` raises it. textual would print it with the values of local variables, which may be secrets.
        self._exit_renderables.clear()

    async def on_event(self, event: Event) -> None:
        """Move the focus before a key is sent to it, so that the keys that follow are sent to the same place."""
        if isinstance(event, Key) and not event.is_forwarded and isinstance(here := self.screen, SessionScreen):
            here.before_key(event)
        await super().on_event(event)

    async def action_quit(self) -> None:
        """Leave, as by Ctrl-D."""
        self.desk.heard("leave", "")


class FullScreen:
    """The typing place that uses the whole terminal."""

    def __init__(self, history: TypedLines, environ: Mapping[str, str], *, mouse: bool = True) -> None:
        self.transcript, self.asks = Transcript(), OpenAsks()
        self._history, self._environ, self._mouse = history, environ, mouse
        self.app: SessionApp | None = None

    def display(self, *, thinking: bool) -> Display:
        """The transcript, which the screen draws."""
        return self.transcript

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Redirect the output of a command to a remark in the transcript."""
        printed = io.StringIO()
        try:
            with redirect_stdout(printed), redirect_stderr(printed):
                yield
        finally:
            if text := printed.getvalue().rstrip():
                self.transcript.note(text)

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """A context without effect: requests have a card on the screen."""
        yield

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        """Ask in a dialog."""
        answered, agreed = anyio.Event(), False

        def take(is_yes: bool | None) -> None:
            nonlocal agreed
            agreed = bool(is_yes)
            answered.set()

        if self.app is None:
            return False
        self.app.call_later(self.app.push_screen, Agreement(lines, question), take)
        await answered.wait()
        return agreed

    async def run(self, desk: Desk) -> None:
        """Show the session until ``close``. An exception that ends the application is raised."""
        assert isinstance(desk, ScreenConversation), "the full screen shows whole sessions"
        app = self.app = SessionApp(desk, self.asks, self._history, self._environ)
        try:
            await app.run_async(mouse=self._mouse)
        finally:
            self.app = None
        if app.failure is not None:
            raise app.failure

    def ready(self) -> None:
        """Nothing: the screen polls the state."""

    def put_back(self, text: str) -> None:
        """Put a text into an empty prompt."""
        if self.app is not None and not (box := self.app.session_screen.box).text:
            box.put(text)

    def close(self) -> None:
        """End the application."""
        if self.app is not None:
            self.app.exit()

"""The full screen without a terminal: the real application, session and store, driven by textual's pilot."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
from textual._context import active_app
from textual.pilot import Pilot
from workshop import Shop

from turnkeeper.app import open_store
from turnkeeper.cli.chat.history import TypedLines
from turnkeeper.cli.chat.tui.app import FullScreen, SessionApp
from turnkeeper.cli.chat.tui.conversation import ScreenConversation
from turnkeeper.cli.chat.tui.session_screen import SessionScreen
from turnkeeper.cli.chat.typing_place import Desk
from turnkeeper.cli.live import Live

DEADLINE_S = 120


class PilotScreen(FullScreen):
    """The full screen, headless."""

    def __init__(self, shop: Shop, size: tuple[int, int]) -> None:
        super().__init__(TypedLines(None), shop.environ())
        self._size = size
        self.pilot: Pilot[None] | None = None
        self.is_ready, self.is_closed = anyio.Event(), anyio.Event()

    async def run(self, desk: Desk) -> None:
        assert isinstance(desk, ScreenConversation)
        self.app = SessionApp(desk, self.asks, self._history, self._environ)
        async with self.app.run_test(size=self._size) as self.pilot:
            self.is_ready.set()
            await self.is_closed.wait()
        self.app = None

    def close(self) -> None:
        self.is_closed.set()


class Driven:
    """What a test does with the screen, and sees on it."""

    def __init__(self, place: PilotScreen, desk: ScreenConversation) -> None:
        assert place.pilot is not None
        assert place.app is not None
        self.pilot, self.app, self.desk, self.place = place.pilot, place.app, desk, place

    @property
    def screen(self) -> SessionScreen:
        return self.app.session_screen

    async def says(self, text: str, *keys: str) -> None:
        """Type a text and press Enter, or other keys."""
        self.screen.box.text = text
        self.screen.box.focus()
        await self.pilot.press(*(keys or ("enter",)))

    async def until(self, holds: Callable[[], object]) -> None:
        """Wait until something holds."""
        with anyio.fail_after(DEADLINE_S):
            while not holds():
                await self.pilot.pause(0.02)

    async def rests(self) -> None:
        """Wait until nothing runs and everything is drawn."""
        await self.until(lambda: self.desk.state == "idle" and not self.desk.transcript.changed)
        await self.pilot.pause()

    def texts(self, kind: str) -> list[str]:
        """The texts of the entries of a kind."""
        return [one.text for one in self.desk.transcript.entries.values() if one.kind == kind]


@asynccontextmanager
async def driven(
    shop: Shop,
    *,
    size: tuple[int, int] = (100, 30),
    before: Callable[[ScreenConversation], Awaitable[None]] | None = None,
) -> AsyncIterator[Driven]:
    """The full screen on the store of a shop, with the offline model."""
    place = PilotScreen(shop, size)
    live = Live(as_json=False, thinking=False, auto=False, display=place.display(thinking=False), questioner=place.asks)
    url = f"sqlite:{shop.data / 'turnkeeper.db'}"
    directory = Path(shop.project)
    async with open_store(
        url, directory=directory, settings=live.settings(shop.environ()), environ=shop.environ()
    ) as tk:
        desk = ScreenConversation(tk, place, live, directory, place.transcript)
        if before is not None:
            await before(desk)
        await desk.prepare()
        async with anyio.create_task_group() as group:
            group.start_soon(desk.run)
            with anyio.fail_after(DEADLINE_S):
                await place.is_ready.wait()
            seen = Driven(place, desk)
            active_app.set(seen.app)  # The pilot lays out the screen in the task of the test.
            try:
                yield seen
            finally:
                desk.heard("leave", "")

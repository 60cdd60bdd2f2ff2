"""The conversation on the full screen: like that of the chat, with the whole history of the session."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.cli.chat import beginning
from turnkeeper.cli.chat.conversation import Conversation
from turnkeeper.cli.chat.tui.entries import Transcript
from turnkeeper.cli.chat.tui.status import Facts
from turnkeeper.cli.live import Live
from turnkeeper.cli.options import local_store
from turnkeeper.cli.reading import pending_undo
from turnkeeper.cli.screen import one_line
from turnkeeper.cli.search import by_session
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.refusal import NotFound, Refusal
from turnkeeper.run.coordinator import Outcome
from turnkeeper.sessions.search import Found
from turnkeeper.sessions.search import search as found_words

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.chat.typing_place import TypingPlace
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session

MESSAGES: Final = 60
"""Page size for reading messages."""
FOUND_MAX: Final = 40


class FoundSession(NamedTuple):
    """A session in the result of a search, with the text that was found in it."""

    session: "Session"
    excerpt: str


class ScreenConversation(Conversation):
    """A conversation whose display has the whole history."""

    def __init__(
        self, tk: "Turnkeeper | Client", place: "TypingPlace", live: Live, directory: Path | None, shown: Transcript
    ) -> None:
        super().__init__(tk, place, live, directory)
        self.transcript = shown
        self.older: str | None = None
        """The cursor of the messages before those on the screen."""
        self.offers = False
        """Whether the list of sessions is opened at the beginning."""
        self._on_screen: object = None
        self._reading = asyncio.Lock()

    @property
    def facts(self) -> Facts:
        """The values for the header."""
        session = self.session
        agent = self.agent or (session.agent if session is not None else None) or "build"
        window = self.choices.windows.get(self.model_name, 0)
        return Facts(session, agent, self.model_name, self.cost, window, self.transcript.tokens)

    async def refresh(self) -> None:
        """Reload, and show the history again if the session or its pending revert has changed."""
        await super().refresh()
        if self.state == "idle" and self._on_screen != self._key():
            await self._show()

    async def recap(self) -> None:
        """Show the session, and continue its unfinished work."""
        await self._show()
        if self._group is not None:
            await self.take_up()

    async def take_up(self) -> None:
        """Continue the unfinished work of the session, if the user agrees or it continues at once."""
        if self.session is None or self.state != "idle":
            return
        found = await beginning.unfinished(self.tk, self.session)
        if found is None:
            return
        self.note(found.said)
        if found.how == "ask" and not await self.place.confirms((found.said,), "Go on with it now?"):
            self.note("It stays as it is until your next prompt.")
            return
        self.start(await beginning.going_on(self.tk, self.session))
        self._on_screen = None  # The turn may have begun earlier: the history is read again when it has ended.

    def start(self, work: Callable[[], Awaitable[Outcome]], *, shows_summary: bool = False) -> None:
        """Run ``work`` and show the session meanwhile. The entries on the screen stay."""
        self._on_screen = self._key()
        super().start(work, shows_summary=shows_summary)

    async def load_older(self) -> bool:
        """Read the messages before those on the screen; returns whether there were any."""
        async with self._reading:
            if self.session is None or self.older is None:
                return False
            page = await self.tk.messages(self.session.id, limit=MESSAGES, before=self.older)
            self.older = page.older
            self.transcript.add_before(page.items)
            return bool(page.items)

    async def find(self, words: str) -> list[FoundSession]:
        """Search sessions by title, those of this directory first; in a store also by the text of messages."""
        where = Path(self.session.directory) if self.session is not None else self.directory
        found: dict[str, FoundSession] = {}
        for directory in (where, None):
            page = await self.tk.list(directory=directory, search=words or None, limit=FOUND_MAX)
            for one in page.items:
                found.setdefault(one.id, FoundSession(one, ""))
        if words.strip() and (store := local_store(self.tk)) is not None:
            hits: list[Found] = []
            with suppress(Refusal):  # There is no whole word yet, for example.
                hits = await found_words(store.store, words, limit=FOUND_MAX, damaged=[])
            for first, *more in by_session(hits):
                excerpt = next((one_line(hit.snippet) for hit in (first, *more) if hit.message_id), "")
                with suppress(NotFound):  # It was deleted after the search.
                    found.setdefault(first.session_id, FoundSession(await store.get(first.session_id), excerpt))
        return list(found.values())[:FOUND_MAX]

    async def _show(self) -> None:
        session, self._on_screen = self.session, self._key()
        items: tuple[MessageWithParts, ...] = ()
        self.older = None
        if session is not None:
            page = await self.tk.messages(session.id, limit=MESSAGES)
            undone, self.older = await pending_undo(self.tk, session), page.older
            items = tuple(one for one in page.items if undone is None or not undone.has(one.info))
        self.transcript.replace(items)

    def _key(self) -> object:
        """Key of the shown history: the session and its pending revert."""
        session = self.session
        return (session.id, session.revert and session.revert.message_id) if session is not None else None

"""Beginning of a chat: the choice of the session, and the continuation of its unfinished work."""

from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import anyio

from turnkeeper.cli.left_open import found_open
from turnkeeper.cli.options import local_store
from turnkeeper.cli.output import agrees
from turnkeeper.cli.request_lines import open_requests
from turnkeeper.cli.screen import Screen, one_line, plural, shortened
from turnkeeper.cli.status_word import running_owner
from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.model.status import IDLE
from turnkeeper.run.coordinator import Outcome
from turnkeeper.workspace.owner import is_alive

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session

POLL_S: Final = 0.5
TITLE_SHOWN: Final = 48

Work: TypeAlias = Callable[[], Awaitable[Outcome]]


class Unfinished(NamedTuple):
    """Unfinished work of a session, as a sentence, and whether it continues at once or after a question."""

    said: str
    how: Literal["ask", "at once"]


class Elsewhere:
    """A session that another process runs. A call waits until no process runs it, and publishes its new events."""

    def __init__(self, store: "Turnkeeper", session: "Session") -> None:
        self._store, self._session = store, session

    async def __call__(self) -> Outcome:
        """Wait until no process runs the session."""
        journal = self._store.store.journal
        while (owner := (await journal.view(self._session.id)).owner) is not None and is_alive(owner):
            for child in await self._store.children(self._session.id, recursive=True):
                await journal.view(child.id)  # Reading a session publishes the events that the other process recorded.
            await anyio.sleep(TAIL_POLL_S)
        return Outcome(kind="rested", reason="done", is_busy=True)


async def offered(tk: "Turnkeeper | Client", directory: Path | None, screen: Screen) -> "Session | None":
    """The newest session of a directory, if the user agrees to continue it; else None."""
    found = (await tk.list(directory=directory, limit=1)).items
    if not found:
        return None
    [session] = found
    title = shortened(one_line(session.title), TITLE_SHOWN)
    when = screen.ago(session.time.updated)
    return session if agrees(f'Continue "{title}" ({session.slug}, {when})?') else None


async def unfinished(tk: "Turnkeeper | Client", session: "Session") -> Unfinished | None:
    """The unfinished work of a session; None if there is none."""
    if (store := local_store(tk)) is not None:
        return await _in_store(store, session)
    if await tk.status(session.id) != IDLE:
        return Unfinished("The server runs this session. Its answer is shown from here on.", "at once")
    return Unfinished("A call waits for your answer.", "at once") if await _asks(tk, session) else None


async def _in_store(store: "Turnkeeper", session: "Session") -> Unfinished | None:
    view = await store.store.journal.view(session.id)
    if view.owner is not None and is_alive(view.owner):
        return Unfinished(
            f"Process {view.owner.pid} on {view.owner.host} runs this session now. What it does is shown here, too, "
            "and it reads what you send.",
            "at once",
        )
    left = found_open(view)
    if any(ask.reply is None for ask in view.asks):
        return Unfinished(left or "A call waits for your answer.", "at once")
    if left is not None and (view.turn is not None or view.inbox):
        return Unfinished(left, "ask")
    if view.inbox:
        return Unfinished(f"{plural(len(view.inbox), 'prompt was', 'prompts were')} not answered yet.", "ask")
    return None


async def going_on(tk: "Turnkeeper | Client", session: "Session") -> Work:
    """The work that continues a session: waiting for a server or another process, or running it here."""
    if (store := local_store(tk)) is None:
        return partial(_served, tk, session)
    if await running_owner(store, session.id) is not None:
        return Elsewhere(store, session)
    return partial(store.run, session.id, resume=True)


async def _served(tk: "Turnkeeper | Client", session: "Session") -> Outcome:
    """Wait until no request of a server's session is open, and then until the session rests."""
    while True:
        if not await _asks(tk, session):
            break
        await anyio.sleep(POLL_S)
    await tk.wait(session.id)
    return Outcome(kind="rested", reason="done")


async def _asks(tk: "Turnkeeper | Client", session: "Session") -> bool:
    """Whether a session, or one of its Child Sessions, waits for the user."""
    family = {session.id, *(one.id for one in await tk.children(session.id, recursive=True))}
    return any(one.session_id in family for one in await open_requests(tk, session.directory))

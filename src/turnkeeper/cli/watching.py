"""The command that shows a session that another process runs, as ``run`` shows its own, and changes nothing."""

from collections.abc import AsyncIterator
from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Final

import anyio
from cyclopts import Parameter

from turnkeeper.cli import names
from turnkeeper.cli.failures import OK, REFUSED
from turnkeeper.cli.feed import Display, Feed, FinishedParts
from turnkeeper.cli.live import QUEUE_MAX, TICK_S, make_display
from turnkeeper.cli.options import Options, local_store
from turnkeeper.cli.plain import failure_text
from turnkeeper.cli.run_options import Thinking
from turnkeeper.cli.stopping import until_stopped
from turnkeeper.core.limits import TAIL_POLL_S
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.notification import Notification
from turnkeeper.model.refusal import NotFound
from turnkeeper.model.status import IDLE
from turnkeeper.workspace.owner import is_alive

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.notification import Delta

SERVER_POLL_S: Final = 1.0
"""How often a server is asked whether a session still runs."""


async def watch(
    id: names.SessionName,
    /,
    *,
    follow: Annotated[
        bool, Parameter(name=("--follow", "-f"), help="Go on when the session is idle, until Ctrl-C.")
    ] = False,
    thinking: Thinking = False,
    options: Options,
) -> int:
    """Show a session that another process or a server runs, live. Nothing is changed.

    The output is that of `run`: the turn that is open from its beginning, and
    all that follows until the session is idle. Text of another process comes in
    pieces, as it is saved; that of a server as it is written. Ctrl-C ends the
    watching and not the session; `session abort` and the process itself stop it.

    --json prints one object per line, as `run --json`. The exit code is 1 if the
    last turn failed or its process is gone.

    For example:
      turnkeeper session watch calm-otter
      turnkeeper session watch calm-otter --follow --server http://127.0.0.1:4096
    """
    display = make_display(as_json=options.json, thinking=thinking)
    async with options.sessions(read_only=True) as tk:
        watching = _Watching(tk, await names.session(tk, id), display, follows=follow)
        with until_stopped(), closing(display):
            await watching.run()
    return watching.code


class _Watching:
    """Shows one session."""

    def __init__(self, tk: "Turnkeeper | Client", session_id: str, display: Display, *, follows: bool) -> None:
        self._tk, self._session_id, self._display, self._follows = tk, session_id, display, follows
        self._feed = Feed(display)
        self._finished = FinishedParts()
        self._is_told_waiting = False
        self.code = OK

    async def run(self) -> None:
        """Show the session until it is idle or deleted."""
        async with (
            self._tk.subscribe(session_id=self._session_id, size=QUEUE_MAX) as notifications,
            anyio.create_task_group() as beside,
        ):
            beside.start_soon(self._tick)
            async with anyio.create_task_group() as group:
                try:
                    await self._show_open_turn()
                    group.start_soon(self._pump, notifications)
                    await self._wait()
                except NotFound:
                    self._display.note(f"{self._session_id} was deleted.")
                notifications.close()
            beside.cancel_scope.cancel()
        if self._feed.failure is not None:
            self._display.note(f"✗ {failure_text(self._feed.failure)}")
            self.code = REFUSED

    async def _show_open_turn(self) -> None:
        """Show what was said of the turn that is open already."""
        if (store := local_store(self._tk)) is not None:
            # From here on the events of other processes are published.
            await store.store.journal.view(self._session_id)
        page = await self._tk.messages(self._session_id, limit=4)
        for message in page.items:
            if isinstance(message.info, AssistantMessage) and message.info.time.completed is None:
                self._take(self._told("message.updated", info=message.info))
                for part in message.parts:
                    self._take(self._told("message.part.updated", part=part))

    def _told(self, kind: str, **properties: object) -> Notification:
        return Notification(type=kind, session_id=self._session_id, directory="", seq=0, properties=properties)

    async def _pump(self, notifications: "AsyncIterator[Notification | Delta]") -> None:
        async for one in notifications:
            self._take(one)

    def _take(self, one: "Notification | Delta") -> None:
        """Show a notification, unless what it tells was shown with the open turn."""
        if not self._finished.is_repeated(one):
            self._feed.take(one)

    async def _wait(self) -> None:
        """Wait until no process runs the session. Raises NotFound once it is deleted."""
        from turnkeeper.api import Turnkeeper

        tk, is_first = self._tk, True
        while True:
            is_over = await (self._is_over(tk) if isinstance(tk, Turnkeeper) else self._is_idle(tk))
            if is_over and not self._follows:
                if is_first and not self.code:
                    self._display.note("The session is idle; --follow waits for its next run.")
                return
            is_first = False
            await anyio.sleep(TAIL_POLL_S if isinstance(tk, Turnkeeper) else SERVER_POLL_S)

    async def _is_over(self, tk: "Turnkeeper") -> bool:
        """Whether no process runs the session. What others wrote is published by reading the view."""
        view = await tk.store.journal.view(self._session_id)
        if any(one.reply is None for one in view.asks):
            self._tell_waiting()
        if view.owner is not None and not is_alive(view.owner):
            self.code = REFUSED
            self._display.note(
                f"Process {view.owner.pid}, which ran the session, is gone; "
                f"`turnkeeper session resume {self._session_id}` goes on."
            )
            self._follows = False
            return True
        return view.owner is None

    async def _is_idle(self, client: "Client") -> bool:
        return await client.status(self._session_id) == IDLE

    def _tell_waiting(self) -> None:
        if not self._is_told_waiting:
            self._is_told_waiting = True
            self._display.note("■ a call waits for an answer; `turnkeeper permission list` and `question list` show it")

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            self._display.tick()

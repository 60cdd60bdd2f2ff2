"""Run a session and display it until it is idle. Ctrl-C once stops the turn, twice exits at once."""

import asyncio
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Final

import anyio
from anyio.abc import TaskGroup

from turnkeeper.cli import failures
from turnkeeper.cli.feed import Display, Feed, Lack
from turnkeeper.cli.json_lines import JsonLines
from turnkeeper.cli.options import local_store
from turnkeeper.cli.permission_prompt import Alone, NoTerminal, Questioner, TerminalPrompt
from turnkeeper.cli.plain import CUT_OFF, Plain, failure_text
from turnkeeper.cli.remote_requests import RemoteRequests
from turnkeeper.cli.screen import Screen, money, one_line, plural
from turnkeeper.cli.stopping import at_signals
from turnkeeper.core.family import total_cost
from turnkeeper.core.next_action import REFUSED, WAITS
from turnkeeper.core.prefix import reuse_percent
from turnkeeper.core.usage import add_costs
from turnkeeper.model.event import TurnStarted
from turnkeeper.model.failure import AbortedFailure, UnknownData, UnknownFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.refusal import Busy
from turnkeeper.run.permission import Asker, QuestionAsker, allow_all, dismiss_all

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.message_with_parts import MessageWithParts
    from turnkeeper.model.notification import Delta, Notification
    from turnkeeper.model.session import Session
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.run.runtime import Settings

QUEUE_MAX: Final = 65_536
"""How many notifications are queued while a question waits for its answer."""
LOST_S: Final = 1.0
"""How long a server may be unreachable before that is displayed."""
INSIST_S, INSIST_MAX_S = 0.1, 1.0
"""Seconds between repeated stop requests to a server, at first and at most."""
TICK_S: Final = 0.08
LACKS: Final[Mapping[Lack, str]] = {
    "cut off": f"{CUT_OFF}; ask for the rest, or for a shorter answer",
    "empty": "the model gave an empty answer; ask again, or choose another model with -m",
}
"""The messages about defects of an answer whose turn did not fail."""
UPKEEP_S: Final = 5.0
"""How long the process waits at its end for a title."""


class Live:
    """One run of one session, on the display for this output."""

    def __init__(
        self,
        *,
        as_json: bool,
        thinking: bool,
        auto: bool,
        display: Display | None = None,
        alone: Alone = nullcontext,
        questioner: "Questioner | None" = None,
        program: str = "tk",
    ) -> None:
        """``display`` is by default that of the output; ``alone`` is a context with exclusive use of the terminal.

        ``questioner`` asks the user, by default on the terminal. ``program`` begins the command line that goes on.
        """
        self._program = program
        self.display = display or make_display(as_json=as_json, thinking=thinking)
        self._as_json = as_json
        is_terminal = sys.stdin.isatty() and sys.stderr.isatty()
        self.can_ask = (is_terminal or questioner is not None) and not as_json
        asker = questioner or TerminalPrompt(self.display, alone)
        self._prompt: Questioner | None = asker if self.can_ask and not auto else None
        self.ask: Asker = allow_all if auto else self._prompt.ask if self._prompt else NoTerminal(self.display).ask
        self.question: QuestionAsker = self._prompt.answer if self._prompt else dismiss_all
        self.is_attended = auto or self.can_ask
        """Whether requests that wait already are answered here; if not, they go on waiting."""
        self._session_id = ""
        self._is_single = True
        """Whether this run is all that the program does."""
        self.is_stopped = False
        """Whether the user has stopped the run."""

    def settings(self, environ: Mapping[str, str]) -> "Settings":
        """How sessions are run whose requests are asked here."""
        from turnkeeper.run.runtime import Settings

        return Settings(ask=self.ask, question=self.question, is_attended=self.is_attended, environ=environ)

    async def run(
        self,
        tk: "Turnkeeper | Client",
        session_id: str,
        work: "Callable[[], Awaitable[Outcome]]",
        *,
        shows_summary: bool = False,
        stop: asyncio.Event | None = None,
        insists: Callable[[], bool] = lambda: True,
        told: "Callable[[Notification | Delta], None]" = lambda _: None,
        runs_elsewhere: bool = False,
    ) -> int:
        """Display the session while ``work`` runs; the exit code. ``shows_summary`` if the user asked for a Summary.

        ``stop`` stops the turn when it is set. Without it signals do, and the end says how to go on. ``insists`` says
        whether a server is told again to stop, until the work ends. ``told`` hears each
        notification. ``runs_elsewhere``: another process runs the session, so its requests are answered in the log.
        """
        self._session_id, self.is_stopped, self._is_single = session_id, False, stop is None
        before, start = await tk.get(session_id), time.monotonic()
        spent = await family_cost(tk, before)
        if self._prompt is not None:
            self._prompt.sessions = tk.get
        store = local_store(tk)
        seq = (await store.store.queries.state(session_id)).seq if store is not None else 0
        feed = Feed(self.display, shows_summary=shows_summary)
        try:
            outcome = await self._done(tk, work, feed, stop, insists, told, runs_elsewhere=runs_elsewhere)
        finally:  # A live region hides the cursor.
            self.display.notice("")
            self.display.close()
        if outcome is None:
            return await self._stopped_early(tk)
        code = self._verdict(feed, outcome)
        if code == failures.OK and not feed.turns and not outcome.is_busy:
            self.display.note(f"Nothing to do: {outcome.reason}.")
        if not self._as_json:
            reuse = await _reuse(store, session_id, seq) if store is not None else []
            after = await tk.get(session_id)
            cost = add_costs(await family_cost(tk, after), -spent)
            self._summary(before, after, feed, cost, reuse, time.monotonic() - start)
        return code

    async def _done(
        self,
        tk: "Turnkeeper | Client",
        work: "Callable[[], Awaitable[Outcome]]",
        feed: Feed,
        stop: asyncio.Event | None,
        insists: Callable[[], bool],
        told: "Callable[[Notification | Delta], None]",
        *,
        runs_elsewhere: bool,
    ) -> "Outcome | None":
        """Display the session until the work is done; None if it was stopped before the work began."""
        store, outcome = local_store(tk), None
        async with (
            tk.subscribe(session_id=self._session_id, size=QUEUE_MAX) as notifications,
            anyio.create_task_group() as beside,
        ):
            beside.start_soon(self._tick)
            if self._is_single:  # A chat watches its server all the time.
                beside.start_soon(self.watch, tk)
            if runs_elsewhere and (open_turn := await _open_turn(tk, self._session_id)) is not None:
                feed.resume(open_turn)
            remote = await self._remote_requests(tk, beside, runs_elsewhere=runs_elsewhere)
            with self._signals() if stop is None else nullcontext(stop) as pressed:
                beside.start_soon(self._stop, tk, pressed, insists, remote, beside)
                async with anyio.create_task_group() as group:
                    group.start_soon(self._pump, feed, notifications, remote, told)
                    if not pressed.is_set():
                        outcome = await work()
                    if remote is not None and store is None:
                        await remote.wait_answered()
                    if store is not None and outcome is not None and outcome.kind == "rested" and not outcome.is_busy:
                        outcome = await _with_background(store, self._session_id, outcome)
                    notifications.close()
                    if store is not None and self._is_single:
                        with anyio.move_on_after(UPKEEP_S):
                            await store.wait_upkeep(self._session_id)
            beside.cancel_scope.cancel()
        return outcome

    async def _remote_requests(
        self, tk: "Turnkeeper | Client", group: TaskGroup, *, runs_elsewhere: bool
    ) -> RemoteRequests | None:
        """Ask the requests of a server or of another process here. A session that runs here calls ``ask`` itself."""
        if local_store(tk) is not None and not runs_elsewhere:
            return None
        remote = RemoteRequests(tk, self._session_id, self.ask, self.question, group)
        group.start_soon(self._follow_family, tk, remote)
        await remote.begin(is_attended=self.is_attended)
        return remote

    async def _follow_family(self, tk: "Turnkeeper | Client", remote: RemoteRequests) -> None:
        """Ask what Child Sessions ask."""
        async with tk.subscribe() as notifications:
            await remote.follow(notifications)

    async def _pump(
        self,
        feed: Feed,
        notifications: "AsyncIterator[Notification | Delta]",
        remote: RemoteRequests | None,
        told: "Callable[[Notification | Delta], None]",
    ) -> None:
        async for one in notifications:
            told(one)
            if remote is not None:
                remote.take(one)
            if self._prompt is None:
                feed.take(one)
            else:
                async with self._prompt.lock:  # Nothing is printed while a question is on the screen.
                    feed.take(one)

    async def watch(self, tk: "Turnkeeper | Client") -> None:
        """Display while a server does not answer and is asked again. It ends when it is cancelled."""
        from turnkeeper.api import Turnkeeper

        if isinstance(tk, Turnkeeper):
            return
        was_lost = False
        while True:
            await anyio.sleep(LOST_S)
            if tk.is_lost != was_lost:
                was_lost = tk.is_lost
                self.display.notice("the server does not answer; trying again" if was_lost else "")

    async def _tick(self) -> None:
        while True:
            await anyio.sleep(TICK_S)
            if self._prompt is None or not self._prompt.lock.locked():
                self.display.tick()

    # Stopping.

    @contextmanager
    def _signals(self) -> Iterator[asyncio.Event]:
        """Handle signals: the first sets the event, the second exits."""
        pressed = asyncio.Event()

        def press() -> None:
            if pressed.is_set():
                self._quit()
            pressed.set()

        with at_signals(press):
            yield pressed

    async def _stop(
        self,
        tk: "Turnkeeper | Client",
        pressed: asyncio.Event,
        insists: Callable[[], bool],
        remote: RemoteRequests | None,
        beside: TaskGroup,
    ) -> None:
        await pressed.wait()
        self.is_stopped = True
        self.display.notice("■ stopping; Ctrl-C again quits at once" if self._is_single else "■ stopping")
        try:
            is_stopped = await tk.stop(self._session_id)
            if remote is not None:
                remote.withdraw()
            pause_s = INSIST_S
            while local_store(tk) is None:
                # The prompt may still be on its way to the server. What was sent cannot be called back, and the answer
                # to it is the end of this run, so the session is stopped until then.
                await anyio.sleep(pause_s)
                pause_s = min(2 * pause_s, INSIST_MAX_S)
                if insists():
                    await tk.stop(self._session_id)
        except Busy:
            is_stopped = False  # Another process runs it.
        if not is_stopped:
            beside.cancel_scope.cancel()  # It is not running here, so there is nothing to wait for.

    async def _stopped_early(self, tk: "Turnkeeper | Client") -> int:
        """The end of a run that was stopped before its work began, or in that moment: then the session may run on."""
        with suppress(Busy):
            await tk.stop(self._session_id)
        self.display.note("■ stopped")
        return failures.INTERRUPTED

    def _quit(self) -> None:
        self.display.close()
        print(
            f"\nturnkeeper: quit; `turnkeeper session resume {self._session_id}` continues from what was recorded",
            file=sys.stderr,
            flush=True,
        )
        os._exit(failures.INTERRUPTED)

    # The end of the run.

    def _verdict(self, feed: Feed, outcome: "Outcome") -> int:
        """The exit code, after displaying a failure."""
        if outcome.kind in ("refused", "crashed"):
            self._failed(outcome.reason)
            return failures.REFUSED
        if outcome.kind == "interrupted" or isinstance(feed.failure, AbortedFailure):
            self._say("■ stopped; everything so far is kept", "yellow")
            return failures.INTERRUPTED
        if feed.failure is not None:
            self._say(f"✗ {failure_text(feed.failure)}", "red")
            return failures.REFUSED
        if outcome.reason == REFUSED:
            self._say("■ stopped, because a call was refused", "yellow")
            return failures.REFUSED
        if outcome.reason == WAITS:
            self._say("■ a call waits for an answer; `turnkeeper permission list` shows it", "yellow")
            return failures.REFUSED
        if outcome.kind == "abandoned":
            self._say(f"■ {one_line(outcome.reason)}", "yellow")
        if feed.lack is not None:
            self._say(f"✗ {LACKS[feed.lack]}", "red")
            return failures.REFUSED
        return failures.OK

    def _failed(self, reason: str) -> None:
        if isinstance(self.display, JsonLines):
            self.display.failed(self._session_id, UnknownFailure(data=UnknownData(message=reason)))
        else:
            self._say(f"✗ {one_line(reason)}", "red")

    def _say(self, text: str, style: str) -> None:
        self.display.note(Screen.of(sys.stderr).paint(text, style))

    def _summary(
        self, before: "Session", after: "Session", feed: Feed, cost: float, reuse: list[str], seconds: float
    ) -> None:
        """Display the tokens of the session, the cost with its Child Sessions, and the time of the run."""
        if not feed.turns:
            return
        used, had = after.tokens, before.tokens
        model = f"{after.model.provider_id}/{after.model.id}" if after.model else ""
        facts = [
            model,
            plural(feed.turns, "turn"),
            f"{used.input + used.cache.write - had.input - had.cache.write:,} in",
            f"{used.output + used.reasoning - had.output - had.reasoning:,} out",
            f"{used.cache.read - had.cache.read:,} cached",
            spent_words(cost, add_costs(after.cost, -before.cost)),
            *reuse,
            f"{seconds:.1f} s",
        ]
        screen = Screen.of(sys.stderr)
        which = "-c" if works_here(after) else f"-s {after.id}"
        more = screen.paint(f'go on with: {self._program} run {which} "…"', "dim")
        how = f"\n{screen.paint(after.id, 'cyan')}  {more}" if self._is_single else ""
        self.display.note(f"{screen.paint(' · '.join(facts), 'dim')}{how}")


async def _open_turn(tk: "Turnkeeper | Client", session_id: str) -> "MessageWithParts | None":
    """The newest message of a session, if it is a turn that has not ended."""
    for one in (await tk.messages(session_id, limit=1)).items:
        if isinstance(one.info, AssistantMessage) and one.info.time.completed is None:
            return one
    return None


def works_here(session: "Session") -> bool:
    """Whether a session works in the current directory, so that `--continue` finds it."""
    return os.path.realpath(session.directory) == os.path.realpath(".")


async def family_cost(tk: "Turnkeeper | Client", session: "Session") -> float:
    """The cost of a session and of all below it."""
    return total_cost(session, await tk.children(session.id, recursive=True))


def spent_words(total: float, own: float) -> str:
    """A cost with Child Sessions; without them, too, if that is another."""
    return money(total) if total == own else f"{money(total)} ({money(own)} without child sessions)"


async def _with_background(tk: "Turnkeeper", session_id: str, outcome: "Outcome") -> "Outcome":
    """The outcome once no Child Session works in the background, which would be cut off with this process."""
    later = await tk.wait_family(session_id)
    return later if later.reason or later.kind != "rested" else outcome


async def _reuse(tk: "Turnkeeper", session_id: str, after: int) -> list[str]:
    """How much of the previous request the provider could reuse; nothing after a first request."""
    events = [recorded.event for recorded in await tk.store.journal.read(session_id, after=after)]
    percent = reuse_percent(*(one.prefix for one in events if isinstance(one, TurnStarted) and one.prefix is not None))
    return [f"{percent} % prefix reuse"] if percent is not None else []


def make_display(*, as_json: bool, thinking: bool) -> Display:
    """The display for this output."""
    if as_json:
        return JsonLines(thinking=thinking)
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return Plain(thinking=thinking)
    # rich is imported only for a terminal.
    from rich.console import Console

    from turnkeeper.cli.terminal import Terminal

    return Terminal(Console(file=sys.stdout, highlight=False), Screen.of(sys.stdout), thinking=thinking)

"""The conversation: handles typed lines and keys, runs turns in the background, and steers, queues and stops them."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import anyio
from anyio.abc import TaskGroup

from turnkeeper.cli import failures
from turnkeeper.cli.attachments import note_missing
from turnkeeper.cli.chat import completion
from turnkeeper.cli.chat.beginning import Elsewhere
from turnkeeper.cli.chat.chat import Chat, SlashCommand
from turnkeeper.cli.chat.keys import HINT, PATIENCE, Meaning
from turnkeeper.cli.chat.lines import PromptLine, ShellLine, SlashLine, UnknownSlash, parse
from turnkeeper.cli.chat.slash import slash_commands
from turnkeeper.cli.chat.typing_place import TypingPlace
from turnkeeper.cli.live import QUEUE_MAX, Live
from turnkeeper.cli.options import local_store
from turnkeeper.cli.prompt_model import model_of_prompt
from turnkeeper.cli.screen import one_line, plural
from turnkeeper.cli.sending import is_empty, send, shell
from turnkeeper.cli.slash import CalledCommand, not_trusted
from turnkeeper.core.admission import handed_over_by
from turnkeeper.core.usage import add_costs
from turnkeeper.model.event import Delivery
from turnkeeper.model.notification import Delta, Notification, PartUpdated, SessionUpdated
from turnkeeper.model.prompt import Prompt
from turnkeeper.model.refusal import Forbidden, Invalid
from turnkeeper.model.status import IDLE
from turnkeeper.run.coordinator import Outcome

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.client import Client
    from turnkeeper.model.session import Session

HEARD_MAX: Final = 256
"""Size of the queue of keys while a command runs. Further keys are dropped."""
WAITS: Final = {
    "steer": "steers: the model reads it before its next step",
    "queue": "queued: sent when this answer is complete",
}


class Conversation(Chat):
    """One chat: its session, the options of the next prompt, and the running turn."""

    def __init__(self, tk: "Turnkeeper | Client", place: TypingPlace, live: Live, directory: Path | None) -> None:
        super().__init__(tk, place, live, directory)
        self._commands: Mapping[str, SlashCommand] = {}
        self._heard = asyncio.Queue[tuple[Meaning, str]](HEARD_MAX)
        self._group: TaskGroup | None = None
        self._stop, self._place_is_closed = asyncio.Event(), asyncio.Event()
        self._is_prompted_meanwhile = self._runs_elsewhere = False
        self.is_left = False
        """Whether the user leaves."""
        self._following, self._watching = anyio.CancelScope(), anyio.CancelScope()
        self._hearing = anyio.CancelScope()
        """Cancel scope of the current command, which may wait for the user without a time limit."""

    @property
    def commands(self) -> Mapping[str, SlashCommand]:
        """The slash commands, by name."""
        return self._commands

    # Interface of the typing place (``Desk``).

    def heard(self, meaning: Meaning, text: str) -> None:
        """Queue the meaning of a key, and the typed text."""
        try:
            self._heard.put_nowait((meaning, text))
        except asyncio.QueueFull:
            self.place.put_back(text)

    async def complete(self, before: str) -> list[completion.Candidate]:
        """The completions of the text before the cursor."""
        if completion.is_mention(before):
            await self.files.look()
        return self.complete_now(before)

    def complete_now(self, before: str) -> list[completion.Candidate]:
        """The completions that need no waiting, with the files of the last listing."""
        known = completion.Known(
            commands={name: one.about for name, one in self._commands.items()},
            arguments={name: one.completes for name, one in self._commands.items() if one.completes is not None},
            models=self.choices.models,
            agents=self.choices.agents,
            sessions={one.slug: one_line(one.title) for one in self.sessions},
            mentionable=self.choices.mentionable,
        )
        file = completion.file_of_symbol(before)
        return completion.candidates(before, known, self.files.names, self.files.symbols(file) if file else ())

    # The loop.

    async def prepare(self) -> None:
        """Load the choices, check the chosen model and agent, and show the session."""
        await self.refresh()
        self._commands = await slash_commands(self)
        await self.files.look()  # For the first Tab.
        if self.model is not None and self.model_name not in self.choices.models:
            raise Invalid(f"no model {self.model_name!r} can be used here; `turnkeeper models` lists those that can")
        if self.agent is not None and self.agent not in self.choices.agents:
            raise Invalid(f"no agent {self.agent!r} can answer here; there are: {', '.join(self.choices.agents)}")
        await self.find_model()
        if self.session is not None:
            await self.recap()

    async def run(self, work: Callable[[], Awaitable[Outcome]] | None = None) -> None:
        """Handle typed lines and keys until the user leaves. ``work`` is started first."""
        async with anyio.create_task_group() as group:
            self._group = group
            group.start_soon(self._read)
            group.start_soon(self.guarded, self._follow)
            group.start_soon(self._watch)
            if work is not None:
                self.start(work)
            self.place.ready()
            meaning: Meaning = "nothing"
            while not self.is_left:
                meaning, text = await self._heard.get()
                with anyio.CancelScope() as self._hearing:
                    await self._hear(meaning, text)
                self.place.ready()
            self._following.cancel()
            self._watching.cancel()
            self.place.close()
            await self._place_is_closed.wait()
            if self.state != "idle" and not self._runs_here:
                self.note(f"The {'other process' if self._runs_elsewhere else 'server'} goes on with this answer.")
                group.cancel_scope.cancel()
            elif meaning == "leave at once":
                quit_at_once(self.session)

    async def _read(self) -> None:
        try:
            await self.place.run(self)
        finally:
            self._place_is_closed.set()

    def interrupted(self) -> None:
        """Ctrl-C while the terminal belongs to a question or a command, or after the user has left."""
        if self.is_left:
            quit_at_once(self.session)
        self.heard("stop", "")

    async def _hear(self, meaning: Meaning, text: str) -> None:
        match meaning:
            case "send" | "steer":
                await self.guarded(partial(self._typed, text, "steer"), text)
            case "queue":
                await self.guarded(partial(self._typed, text, "queue"), text)
            case "hint" | "patience" | "stop":
                # ``stop`` checks the current state: a prompt sent before the key may have started a turn since.
                self.stop()
            case "leave" | "leave at once":
                self.leave()

    async def guarded(self, work: Callable[[], Awaitable[None]], text: str = "") -> None:
        """Run work whose refusal is shown and does not end the chat. A refused prompt can be edited again."""
        try:
            await work()
        except (Exception, KeyboardInterrupt) as error:
            found = failures.problem(error)
            if found is None:
                raise
            self.note(f"✗ {found.message}")
            if not text.startswith("/"):
                self.place.put_back(text)

    async def _typed(self, text: str, delivery: Delivery) -> None:
        await self.refresh()
        self._commands = await slash_commands(self)
        left_out = await not_trusted(self.tk, self.directory_here) if text.startswith("/") else ()
        match parse(text, self._commands, left_out):
            case None:
                return
            case UnknownSlash() as unknown:
                self.live.display.prompted(text)
                self.note(unknown.message)
            case SlashLine(name, argument):
                command = self._commands[name]
                self.live.display.prompted(text)
                if self.state != "idle" and not command.while_running:
                    self.note(f"/{name} can be used when the answer is complete; Ctrl-C stops it.")
                else:
                    await command.do(self, argument)
            case ShellLine(command):
                self.live.display.prompted(text)
                await self._shell(command)
            case PromptLine(said):
                await self.say(said, delivery)

    # Prompts.

    async def say(self, text: str, delivery: Delivery = "steer") -> None:
        """Send a prompt; while a turn runs, steer it or queue."""
        given = self.prompt(text, delivery)
        if self.state != "idle" and self.session is not None:
            await self._admit(self.session.id, given, text)
            await note_missing(self.tk, text, self.directory_here, self.note)
            return
        self.live.display.prompted(text)
        await note_missing(self.tk, text, self.directory_here, self.note)
        await self._begin(given)

    async def command(self, called: CalledCommand) -> None:
        """Send a command of the directory to the idle session. The agent of the command answers only this command."""
        await note_missing(self.tk, called.arguments, self.directory_here, self.note)
        await self._begin(called.prompt(Prompt(parts=(), agent=self.agent, model=self.model)), called)

    async def _begin(self, given: Prompt, called: CalledCommand | None = None) -> None:
        """Send a prompt or a command to an idle session, which is created if there is none."""
        if (store := local_store(self.tk)) is not None:
            directory = self.directory or Path.cwd()
            model = await model_of_prompt(store, self.tell_once, given, self.session, directory, is_asked=True)
            given = given.but(model=model)
        is_new = self.session is None
        session = self.session or await self._created()
        self.session = session
        self.start(partial(self._sent, session, given, called, is_new))

    async def _created(self) -> "Session":
        """Create a session, and show its link if the settings share every session."""
        from turnkeeper.cli.sharing import shared_by_itself

        made = await self.tk.create()
        if (link := await shared_by_itself(self.tk, made)) is not None:
            self.note(f"Shared: {link}")
        return made

    async def _sent(self, session: "Session", given: Prompt, called: CalledCommand | None, is_new: bool) -> Outcome:
        try:
            return await send(self.tk, self.live, session.id, given, called)
        except (Forbidden, Invalid):  # A server refuses a model without a key only now, and so is a denied program.
            if is_new and await is_empty(self.tk, session.id):
                await self.tk.remove(session.id)
                self.session = None
            raise

    async def _admit(self, session_id: str, given: Prompt, text: str) -> None:
        """Admit a prompt to the running session, and show it as waiting."""
        from turnkeeper.api import Turnkeeper

        self._is_prompted_meanwhile = self._is_prompted_meanwhile or self.state == "stopping"
        if isinstance(self.tk, Turnkeeper):
            message_id = (await self.tk.prompt(session_id, given, resume=False)).message_id
        else:
            message_id = await self.tk.prompt_async(session_id, given)
        self.live.display.prompted(text, WAITS[given.delivery], message_id=message_id)

    async def _shell(self, command: str) -> None:
        if self.state != "idle":
            self.note("A command runs only while no turn does; press Ctrl-C first, or ask for it.")
            return
        session = self.session = self.session or await self._created()
        self.start(partial(shell, self.tk, session.id, command, self.prompt(command)))

    # Turns.

    def start(self, work: Callable[[], Awaitable[Outcome]], *, shows_summary: bool = False) -> None:
        """Run ``work`` in the background and show the session meanwhile; the user can type."""
        assert self._group is not None
        assert self.state == "idle", "one turn at a time"
        self.state, self._stop, self._is_prompted_meanwhile = "running", asyncio.Event(), False
        self._runs_elsewhere = isinstance(work, Elsewhere)
        self._group.start_soon(self._run, work, shows_summary)

    async def _run(self, work: Callable[[], Awaitable[Outcome]], shows_summary: bool) -> None:
        try:
            await self.guarded(partial(self._shown, work, shows_summary))
            await self.guarded(self._finish)
        finally:
            self.state = "idle"
            self.live.display.close()
        await self.guarded(self.refresh)
        self.place.ready()

    async def _finish(self) -> None:
        """Run the session again while prompts wait."""
        while not self.is_left and await self._goes_on():
            self.state, self._stop, self._is_prompted_meanwhile = "running", asyncio.Event(), False
            self._runs_elsewhere = False
            await self._shown(self._rest, False)

    async def _shown(self, work: Callable[[], Awaitable[Outcome]], shows_summary: bool) -> None:
        assert self.session is not None
        await self.live.run(
            self.tk,
            self.session.id,
            work,
            shows_summary=shows_summary,
            stop=self._stop,
            insists=lambda: not self._is_prompted_meanwhile,  # The later prompt must be answered.
            told=self._told,
            runs_elsewhere=self._runs_elsewhere,
        )

    def _told(self, one: Notification | Delta) -> None:
        """Handle a notification: an agent may hand the session over."""
        if isinstance(one, PartUpdated) and (by := handed_over_by(one.properties.get("part"))) is not None:
            self.handed_over(by)

    async def _follow(self) -> None:
        """Follow updates of the session's title, cost and changed lines: some are recorded after the answer."""
        with self._following:
            async with self.tk.subscribe(size=QUEUE_MAX) as notifications:
                async for one in notifications:
                    if isinstance(one, SessionUpdated) and self.session and one.session_id == self.session.id:
                        self.cost = add_costs(self.cost, one.session.cost, -self.session.cost)
                        self.session = one.session

    async def _watch(self) -> None:
        """Show a lost connection to the server, also before a turn begins: other requests precede a prompt."""
        with self._watching:
            await self.live.watch(self.tk)

    async def _goes_on(self) -> bool:
        """Whether prompts wait that the turn did not answer: they were admitted while it ended."""
        if self.session is None:
            return False
        if (store := local_store(self.tk)) is None:
            is_over = self.live.is_stopped and not self._is_prompted_meanwhile
            return not is_over and await self.tk.status(self.session.id) != IDLE
        view = await store.store.journal.view(self.session.id)
        if not view.inbox or view.owner is not None:
            return False
        if self.live.is_stopped and not self._is_prompted_meanwhile:
            waiting = plural(len(view.inbox), "prompt waits", "prompts wait")
            self.note(f"{waiting} and will be read with your next one.")
            return False
        return True

    async def _rest(self) -> Outcome:
        """Run the session until it rests; on a server, wait until it rests."""
        assert self.session is not None
        if (store := local_store(self.tk)) is not None:
            return await store.run(self.session.id)
        await self.tk.wait(self.session.id)
        return Outcome(kind="rested", reason="done")

    def stop(self) -> None:
        """Stop the running turn, or show why nothing is stopped. The session and the chat go on."""
        if self.state == "running":
            self.state = "stopping"
            self._stop.set()
        elif self.state == "idle":
            self.note(HINT)
        else:
            self.note(PATIENCE)

    def leave(self) -> None:
        """Leave the chat. A turn that runs here is stopped first; a server or another process goes on with it."""
        self.is_left = True
        if self.state == "running" and self._runs_here:
            self.stop()

    def end(self) -> None:
        """Leave because the process must end, or its terminal is gone: questions can no longer be answered."""
        self.leave()
        self._hearing.cancel()
        self.heard("leave", "")

    @property
    def _runs_here(self) -> bool:
        """Whether the turn runs in this process."""
        return local_store(self.tk) is not None and not self._runs_elsewhere


def quit_at_once(session: "Session | None") -> NoReturn:
    """End the process without waiting for the turn. The next chat finds the recorded events."""
    name = f" {session.id}" if session is not None else ""
    print(f"\nturnkeeper: quit; `turnkeeper` continues{name} from what was recorded", file=sys.stderr, flush=True)
    os._exit(failures.INTERRUPTED)

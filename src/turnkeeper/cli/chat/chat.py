"""State of a chat: its session, the agent and model of the next prompt, and the available choices."""

import sys
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from turnkeeper.cli import choices
from turnkeeper.cli.chat.completion import Kind
from turnkeeper.cli.chat.keys import State
from turnkeeper.cli.chat.typing_place import TypingPlace
from turnkeeper.cli.live import Live, family_cost
from turnkeeper.cli.options import local_store
from turnkeeper.cli.prompt_model import OFFLINE_ANSWERS, model_of_prompt
from turnkeeper.cli.reading import pending_undo
from turnkeeper.cli.screen import Screen, harmless, money, one_line, shortened
from turnkeeper.core.mentions import mentions
from turnkeeper.model.event import Delivery
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import TextPart
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.run.coordinator import Outcome

if TYPE_CHECKING:
    from turnkeeper.app import Turnkeeper
    from turnkeeper.cli.slash import CalledCommand
    from turnkeeper.client import Client
    from turnkeeper.model.message import ModelChoice
    from turnkeeper.model.session import Session

STATUS_NAME: Final = 28
RECAP_MESSAGES: Final = 12
RECAP_LINES: Final = 8
RECAP_PROMPT_LINES: Final = 3
SESSIONS_MAX: Final = 20
"""Maximum number of sessions of the directory that are offered."""


class Chat(ABC):
    """Interface of a chat for slash commands."""

    def __init__(self, tk: "Turnkeeper | Client", place: TypingPlace, live: Live, directory: Path | None) -> None:
        """``directory`` is that of new sessions; None for the directory of a server on another machine."""
        self.tk, self.place, self.live, self.directory = tk, place, live, directory
        self.session: Session | None = None
        """The session that is shown; None until the first prompt creates a new one."""
        self.agent: str | None = None
        """The agent chosen in this chat; None for the agent of the session."""
        self.model: ModelChoice | None = None
        self.choices = choices.Choices()
        self.state: State = "idle"
        self.cost = 0.0
        """The cost of the session and its Child Sessions."""
        self.sessions: list[Session] = []
        """The newest sessions of the directory."""
        self.files = choices.ProjectFiles(None)
        self._default: tuple[str | None, ModelChoice | None] = None, None
        """An agent, and the default model of its new sessions."""
        self._said: set[str] = set()

    @abstractmethod
    def start(self, work: Callable[[], Awaitable[Outcome]], *, shows_summary: bool = False) -> None:
        """Run ``work`` and show the session meanwhile; the user can type."""

    @abstractmethod
    async def say(self, text: str, delivery: Delivery = "steer") -> None:
        """Send a prompt; while a turn runs, the prompt steers it or is queued."""

    @abstractmethod
    async def command(self, called: "CalledCommand") -> None:
        """Send a command of the directory to the idle session."""

    @abstractmethod
    def leave(self) -> None:
        """Leave the chat."""

    @property
    @abstractmethod
    def commands(self) -> "Mapping[str, SlashCommand]":
        """The slash commands, by name."""

    @property
    def status(self) -> str:
        """Text of the status line: agent, model, session and cost."""
        session, model = self.session, self.model_name
        name = shortened(one_line(session.title), STATUS_NAME) if session is not None else "new session"
        agent = self.agent or (session.agent if session is not None else None) or "build"
        return " · ".join(filter(None, [agent, model, name, money(self.cost) if self.cost else ""]))

    @property
    def model_name(self) -> str:
        """The name of the model that answers; empty if it is not known yet."""
        if self.model is not None:
            return f"{self.model.provider_id}/{self.model.model_id}"
        if (used := self.session.model if self.session is not None else None) is not None:
            return f"{used.provider_id}/{used.id}"
        agent, default = self._default
        if default is None or agent != self.agent or self.session is not None:
            return ""
        return f"{default.provider_id}/{default.model_id}"

    async def recap(self) -> None:
        """Show the title of the session, and its last prompt and answer."""
        assert self.session is not None
        screen, session = Screen.of(sys.stdout), self.session
        facts = [one_line(session.title), session.slug, screen.ago(session.time.updated)]
        self.note(screen.paint(" · ".join(facts), "dim"))
        page, undone = await self.tk.messages(session.id, limit=RECAP_MESSAGES), await pending_undo(self.tk, session)
        items = [one for one in reversed(page.items) if undone is None or not undone.has(one.info)]
        asked = next((one for one in items if isinstance(one.info, UserMessage) and said_text(one)), None)
        said = next((one for one in items if isinstance(one.info, AssistantMessage) and said_text(one)), None)
        if asked is not None:
            self.live.display.prompted("\n".join(_cut(said_text(asked), RECAP_PROMPT_LINES)))
        if said is not None and (asked is None or said.info.seq >= asked.info.seq):
            self.note("\n".join(_cut(said_text(said), RECAP_LINES)))
        if undone is not None:
            self.note(screen.paint("What came after it is undone. /redo brings it back, until the next prompt.", "dim"))

    def note(self, text: str) -> None:
        """Show a remark."""
        self.live.display.note(text)

    def tell_once(self, text: str) -> None:
        """Show a remark, unless it was shown already."""
        if text not in self._said:
            self._said.add(text)
            self.note(text)

    async def refresh(self) -> None:
        """Reload the session, its cost and the available choices."""
        if self.session is not None:
            self.session = await self.tk.get(self.session.id)
            self.cost = await family_cost(self.tk, self.session)
        else:
            self.cost = 0.0
        here = self.directory_here
        if not self.files.is_of(here):
            self.files = choices.ProjectFiles(here)
        where = Path(self.session.directory) if self.session is not None else self.directory
        self.choices = await choices.load(self.tk, where)
        self.sessions = list((await self.tk.list(directory=where, limit=SESSIONS_MAX)).items)

    def handed_over(self, by: str) -> None:
        """Clear the chosen agent when it hands the session over, as plan does to build after approval.

        Prompts of other clients do not change the agent of this chat: each prompt names its agent.
        """
        if by == self.agent:
            self.agent = None

    def prompt(self, text: str, delivery: Delivery = "steer") -> Prompt:
        """The prompt for a typed text. The session attaches the files and agents that are mentioned after ``@``.

        A name after ``@`` that is neither a file nor an agent stays text: it may be an address.
        """
        said = TextInput(text=text, mentions=bool(mentions(text)))
        return Prompt(parts=(said,), agent=self.agent, model=self.model, delivery=delivery)

    async def find_model(self) -> None:
        """Find the model that will answer, and say once if no model has a key, before anything is asked."""
        if (store := local_store(self.tk)) is None:
            if self.choices.models and all(name.startswith("offline/") for name in self.choices.models):
                self.tell_once(OFFLINE_ANSWERS)
            return
        directory = self.directory or Path.cwd()
        found = await model_of_prompt(store, self.tell_once, self.prompt("-"), self.session, directory, is_asked=False)
        self._default = self.agent, found

    @property
    def directory_here(self) -> Path | None:
        """The directory of the session; None if its files are on another machine."""
        if self.directory is None:
            return None
        return Path(self.session.directory) if self.session is not None else self.directory


def said_text(message: MessageWithParts) -> str:
    """The text of a message, without synthetic parts."""
    texts = (part.text for part in message.parts if isinstance(part, TextPart) and not part.synthetic)
    return harmless("\n".join(texts).strip())


def _cut(text: str, lines_max: int) -> list[str]:
    lines = text.splitlines()
    return lines if len(lines) <= lines_max else [*lines[: lines_max - 1], "…"]


class SlashCommand(NamedTuple):
    """A command of the chat: a line that begins with ``/`` and is not sent to the model as it is."""

    name: str
    about: str
    do: Callable[[Chat, str], Awaitable[None]]
    argument: str = ""
    """The argument as help shows it; in brackets if it is optional."""
    completes: Kind | None = None
    while_running: bool = False
    """Whether it can be used while a turn runs."""

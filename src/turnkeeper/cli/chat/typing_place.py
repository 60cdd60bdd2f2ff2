"""Where a user types: a line editor, or the plain lines of a terminal that cannot move its cursor."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from turnkeeper.cli.chat.completion import Candidate
from turnkeeper.cli.chat.keys import Meaning, State
from turnkeeper.cli.feed import Display


class Desk(Protocol):
    """What the place where a user types is told and asks."""

    @property
    def state(self) -> State:
        """What the chat is doing."""

    @property
    def status(self) -> str:
        """What stands below the prompt: agent, model, session and cost."""

    def heard(self, meaning: Meaning, text: str) -> None:
        """A key was pressed that means something."""

    async def complete(self, before: str) -> list[Candidate]:
        """What can complete the text before the cursor."""

    def complete_now(self, before: str) -> list[Candidate]:
        """The completions that are known without waiting."""


class TypingPlace(Protocol):
    """Reads what a user types while the chat does other things."""

    def display(self, *, thinking: bool) -> Display:
        """The display whose output does not disturb what is being typed."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """The terminal, for the exclusive use of a command."""

    def asking(self) -> AbstractAsyncContextManager[None]:
        """The terminal, for a question to the user, who may be typing something else."""

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        """Show lines and ask about them. Called inside of ``alone``."""

    async def run(self, desk: Desk) -> None:
        """Read until ``close`` is called."""

    def ready(self) -> None:
        """The chat has done what it was told, or begins or ends a turn."""

    def put_back(self, text: str) -> None:
        """Let the user edit a text again that was refused, unless another one is being typed."""

    def close(self) -> None:
        """End ``run``."""

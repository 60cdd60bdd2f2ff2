"""Interfaces between a chat and the place where a user types: full screen, line editor or plain lines."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from turnkeeper.cli.chat.completion import Candidate
from turnkeeper.cli.chat.keys import Meaning, State
from turnkeeper.cli.feed import Display


class Desk(Protocol):
    """Interface of the chat for a typing place: its state and completions, and the keys that it receives."""

    @property
    def state(self) -> State:
        """The state of the chat."""

    @property
    def status(self) -> str:
        """The status line below the prompt: agent, model, session and cost."""

    def heard(self, meaning: Meaning, text: str) -> None:
        """Receive the meaning of a pressed key, and the typed text."""

    async def complete(self, before: str) -> list[Candidate]:
        """The completions of the text before the cursor."""

    def complete_now(self, before: str) -> list[Candidate]:
        """The completions that are known without waiting."""


class TypingPlace(Protocol):
    """Reads typed text while the chat does other work."""

    def display(self, *, thinking: bool) -> Display:
        """The display whose output does not disturb the text that is being typed."""

    def alone(self) -> AbstractAsyncContextManager[None]:
        """The terminal, for the exclusive use of a command."""

    def asking(self) -> AbstractAsyncContextManager[None]:
        """The terminal, for a question to the user, who may be typing something else."""

    async def confirms(self, lines: Sequence[str], question: str) -> bool:
        """Show lines and a question; whether the user agrees. Called inside of ``alone``."""

    async def run(self, desk: Desk) -> None:
        """Read until ``close`` is called."""

    def ready(self) -> None:
        """Called when the chat has handled a key, and when a turn ends."""

    def put_back(self, text: str) -> None:
        """Put a refused text, or one to be sent anew, into the prompt, unless another text is being typed."""

    def close(self) -> None:
        """End ``run``."""

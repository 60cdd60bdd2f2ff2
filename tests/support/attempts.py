"""Sessions that change files of a real project: what a scripted model calls, turn by turn, with snapshots."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeAlias

import anyio
import msgspec
from snapshot_project import SnapshotProject

import turnkeeper
from turnkeeper.api import Turnkeeper
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import allow_all
from turnkeeper.run.runtime import Settings

DEADLINE_S = 120

Call: TypeAlias = tuple[str, dict[str, object]]
"""A tool and its input."""
Turn: TypeAlias = Sequence[Call]
"""The calls of one turn."""


def write(name: str, content: str) -> Call:
    return "write", {"filePath": name, "content": content}


def bash(command: str) -> Call:
    return "bash", {"command": command}


class AttemptProject(SnapshotProject):
    """A project in which a scripted model works. The store is in the data directory, where commands find it."""

    @property
    def data(self) -> Path:
        return self.home / "data"

    @asynccontextmanager
    async def opened(self, *prompts: Sequence[Turn]) -> AsyncIterator[Turnkeeper]:
        """The store, with a model that answers each prompt by these turns and then a word."""
        script = Scripted()
        for prompt in prompts:
            for turn in prompt:
                for name, input in turn:
                    script = script.calls_raw(name, msgspec.json.encode(input).decode())
                script = script.then()
            script = script.says("Done.").then()
        self.data.mkdir(exist_ok=True)
        environ = {**self.environ, "TURNKEEPER_TRUST": "1", "PATH": os.environ["PATH"]}
        settings = Settings(transport=lambda endpoint: script, titles=False, environ=environ, ask=allow_all)
        with anyio.fail_after(DEADLINE_S):
            store = f"sqlite:{self.data / 'turnkeeper.db'}"
            async with turnkeeper.open(store, directory=self.top, settings=settings) as tk:
                yield tk

    async def live(self, *prompts: Sequence[Turn]) -> str:
        """A session that has answered these prompts; its id."""
        async with self.opened(*prompts) as tk:
            session_id = (await tk.create()).id
            for _ in prompts:
                await ask(tk, session_id)
        return session_id


async def ask(tk: Turnkeeper, session_id: str) -> None:
    """Send the next prompt and wait for what comes of it."""
    await tk.prompt(session_id, "go")
    await tk.wait(session_id)
    await tk.wait_upkeep(session_id)


async def history(tk: Turnkeeper, session_id: str) -> list[MessageWithParts]:
    return [one async for one in tk.iter_messages(session_id, reverse=False)]


async def prompts(tk: Turnkeeper, session_id: str) -> list[UserMessage]:
    return [one.info for one in await history(tk, session_id) if isinstance(one.info, UserMessage)]


async def turns(tk: Turnkeeper, session_id: str) -> list[MessageWithParts]:
    return [one for one in await history(tk, session_id) if isinstance(one.info, AssistantMessage)]

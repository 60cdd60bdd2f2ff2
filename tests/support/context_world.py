"""What the tests of the System Context share: facts that change when told, and ways to see what a model was told."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from turnkeeper.context.component import ContextComponent, Loaded, Sample, Sampling
from turnkeeper.mint import FixedMint
from turnkeeper.model.context import Epoch, Prefix
from turnkeeper.model.event import ContextAdmitted, EpochStarted, MessageRecorded, TurnStarted
from turnkeeper.model.message import AssistantMessage, SystemMessage, UserMessage
from turnkeeper.model.parts import CompactionPart, TextPart
from turnkeeper.model.request import ModelRequest, SystemTurn
from turnkeeper.providers.provider import Provider
from turnkeeper.testing.harness import TOOLS, Stage, StageOptions, stage
from turnkeeper.tools.read import READ

DAY_MS = 24 * 60 * 60 * 1000


class Fact:
    """A plugin-defined component whose value a test sets. It counts how often it was sampled."""

    def __init__(self, key: str, value: str = "") -> None:
        self.key, self.loads = key, 0
        self.sample: Sample = Loaded(baseline="", update="")
        self.is_now(value)

    def is_now(self, value: str) -> None:
        """From the next sample on, this is the fact."""
        self.sample = Loaded(baseline=f"{self.key}: {value}", update=f"{self.key} is now {value}")

    @property
    def component(self) -> ContextComponent:
        """The component as a plugin would register it."""

        async def load(_: Sampling) -> Sample:
            self.loads += 1
            return self.sample

        return ContextComponent(self.key, load)


@asynccontextmanager
async def world(
    place: Path, provider: Provider, *, url: str = "memory:", mint: FixedMint | None = None, **options: Any
) -> AsyncIterator[Stage]:
    """A runtime in a place, with the read tool among its tools."""
    given = StageOptions(**{"tools": (*TOOLS, READ), **options})
    async with stage(url, place, provider, given, mint=mint) as opened:
        yield opened


def news(request: ModelRequest) -> list[str]:
    """What the model was told in the middle of a conversation."""
    return [message.text for message in request.messages if isinstance(message, SystemTurn)]


def roles(request: ModelRequest) -> list[str]:
    """Who speaks, in order."""
    return [type(message).__name__.removesuffix("Turn").lower() for message in request.messages]


async def epoch(stage: Stage, session: str) -> Epoch:
    """The epoch as the session's view has it."""
    found = (await stage.tk.store.journal.view(session)).epoch
    assert found is not None
    return found


async def epochs(stage: Stage, session: str) -> list[Epoch]:
    """Every epoch that began."""
    return [event.epoch for event in await stage.events(session) if isinstance(event, EpochStarted)]


async def admitted(stage: Stage, session: str) -> list[SystemMessage]:
    """Every Mid-Conversation System Message."""
    return [event.message for event in await stage.events(session) if isinstance(event, ContextAdmitted)]


async def prefixes(stage: Stage, session: str) -> list[Prefix]:
    """How each request related to the one before it."""
    started = [event for event in await stage.events(session) if isinstance(event, TurnStarted)]
    return [event.prefix for event in started if event.prefix is not None]


async def compact(stage: Stage, session: str, summary: str = "They talked.") -> None:
    """Record what a compaction leaves behind: the mark, and the Summary that stands for what came before."""
    mint = stage.mint
    messages = [message.info for message in await stage.messages(session)]
    user = next(one for one in reversed(messages) if isinstance(one, UserMessage))
    answer = next(one for one in reversed(messages) if isinstance(one, AssistantMessage))
    mark = user.but(id=mint.message_id(), seq=0, format=None, system=None)
    said = answer.but(id=mint.message_id(), seq=0, parent_id=mark.id, summary=True, finish="stop", error=None)
    marked = CompactionPart(id=mint.part_id(), session_id=session, message_id=mark.id, auto=True)
    text = TextPart(id=mint.part_id(), session_id=session, message_id=said.id, text=summary)
    await stage.tk.store.journal.append(
        session, MessageRecorded(message=mark, parts=(marked,)), MessageRecorded(message=said, parts=(text,))
    )


def write(path: Path, text: str) -> Path:
    """Write a file as an editor does: at once."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.draft")
    draft.write_text(text)
    os.replace(draft, path)
    return path

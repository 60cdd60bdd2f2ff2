"""Harness: a complete runtime for tests, with a scripted model, test tools and a manual clock."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import anyio
import anyio.lowlevel
import msgspec

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.core.labels import ANY_HOST, HostLabels
from turnkeeper.core.lease import Terms
from turnkeeper.mint import FixedMint, Mint
from turnkeeper.model.event import Event
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.parts import Part
from turnkeeper.model.prompt import Prompt, Receipt, TextInput
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.plugins.plugin import Limits
from turnkeeper.providers.provider import Provider
from turnkeeper.run.coordinator import Outcome
from turnkeeper.run.leases import Pace
from turnkeeper.run.permission import Asker, QuestionAsker, allow_all, dismiss_all
from turnkeeper.run.runtime import Settings
from turnkeeper.run.summarise import Hooks
from turnkeeper.store.engine import Engine
from turnkeeper.tools.tool import AnyTool, Tool, ToolContext, ToolOutput

MODEL: JsonObject = {
    "limit": {"context": 200_000, "output": 32_000},
    "cost": {"input": 3, "output": 15, "cache_read": 0.3, "cache_write": 3.75},
}
CONFIG: JsonObject = {
    "model": "acme/large",
    "provider": {
        "acme": {
            "protocol": "openai-chat",
            "options": {"baseURL": "http://localhost:1/v1"},
            "models": {"large": MODEL, "other": MODEL},
        }
    },
}
"""The configuration of a Stage: one provider, which plays the script."""


class VirtualTime:
    """A clock that a test advances. A sleep ends when the clock reaches its time.

    With ``in_a_hurry`` a sleep advances the clock itself and only yields to other tasks.
    """

    def __init__(self, mint: FixedMint, *, in_a_hurry: bool = False) -> None:
        self._mint, self._is_hurried = mint, in_a_hurry
        self._sleepers: list[tuple[int, float, anyio.Event]] = []
        self._fallen_asleep = anyio.Event()
        self.slept: list[float] = []
        """The seconds of each sleep, in order."""

    async def sleep(self, seconds: float) -> None:
        """Wait until the clock has advanced by these seconds."""
        sleeper = (self._mint.now() + round(seconds * 1000), seconds, anyio.Event())
        self._sleepers.append(sleeper)
        self.slept.append(seconds)
        self._fallen_asleep.set()
        self._fallen_asleep = anyio.Event()
        if self._is_hurried:
            self.advance(round(seconds * 1000))
        try:
            await anyio.lowlevel.checkpoint()
            await sleeper[2].wait()
        finally:
            self._sleepers.remove(sleeper)

    def advance(self, ms: int) -> None:
        """Advance the clock, and end the sleeps whose time has come."""
        self._mint.advance(ms)
        for due, _, woken in self._sleepers:
            if due <= self._mint.now():
                woken.set()

    async def asleep(self, seconds: float) -> None:
        """Wait until a task sleeps for at least these seconds."""
        while not any(each >= seconds and not woken.is_set() for _, each, woken in self._sleepers):
            await self._fallen_asleep.wait()


class Words(msgspec.Struct):
    """The arguments of the tools of ``a_tool``."""

    text: str = ""


def a_tool(
    name: str, run: Callable[[str, ToolContext], Awaitable[str | ToolOutput]], *, permission: str | None = None
) -> AnyTool:
    """A tool with one argument, ``text``, that calls a function."""

    async def execute(given: Words, context: ToolContext) -> ToolOutput:
        output = await run(given.text, context)
        return output if isinstance(output, ToolOutput) else ToolOutput(title=name, output=output)

    return Tool(
        name=name, description=f"Does {name}.", parameters=Words, execute=execute, permission=permission or name
    )


async def echo(text: str, context: ToolContext) -> str:
    """Return the argument."""
    return text


async def asks(text: str, context: ToolContext) -> str:
    """Ask for permission and return the argument."""
    await context.ask("asks", [text], always=[text], metadata={"text": text})
    return text


TOOLS: tuple[AnyTool, ...] = (a_tool("echo", echo), a_tool("asks", asks))


@dataclass
class Stage:
    """A runtime under test and its parts."""

    tk: Turnkeeper
    provider: Provider
    time: VirtualTime
    mint: FixedMint
    directory: Path

    async def session(self, **given: object) -> str:
        """Create a session; its id."""
        return (await self.tk.create(**given)).id  # type: ignore[arg-type] # The keywords of ``create``.

    async def say(self, session_id: str, text: str, *, resume: bool = True, **given: object) -> Receipt:
        """Admit a prompt."""
        prompt = Prompt(parts=(TextInput(text=text),)).but(**given)
        return await self.tk.prompt(session_id, prompt, resume=resume)

    async def ask(self, session_id: str, text: str, **given: object) -> Outcome:
        """Admit a prompt and wait until the session rests."""
        await self.say(session_id, text, resume=True, **given)
        return await self.tk.wait(session_id)

    async def messages(self, session_id: str) -> list[MessageWithParts]:
        """The history, oldest message first."""
        return [message async for message in self.tk.iter_messages(session_id, reverse=False)]

    async def turns(self, session_id: str) -> list[tuple[AssistantMessage, tuple[Part, ...]]]:
        """The messages of the assistant with their parts, oldest first."""
        messages = await self.messages(session_id)
        return [(one.info, one.parts) for one in messages if isinstance(one.info, AssistantMessage)]

    async def events(self, session_id: str) -> list[Event]:
        """The events of a session."""
        return [recorded.event for recorded in await self.tk.store.journal.read(session_id)]

    async def is_sound(self, session_id: str) -> bool:
        """Whether no turn is open and the doctor finds no problem."""
        view = await self.tk.store.journal.view(session_id)
        return view.turn is None and view.owner is None and not (await self.tk.doctor()).problems


Play: TypeAlias = Callable[..., AbstractAsyncContextManager[Stage]]
"""Opens a Stage for a provider. The keywords are those of ``StageOptions``."""


@dataclass
class StageOptions:
    """The options of a Stage, besides the store and the script."""

    ask: Asker | None = allow_all
    question: QuestionAsker | None = dismiss_all
    tools: Sequence[AnyTool] = TOOLS
    titles: bool = False
    snapshots: bool = False
    config: JsonObject = field(default_factory=dict)
    in_a_hurry: bool = False
    environ: Mapping[str, str] = field(default_factory=dict)
    hooks: Hooks = field(default_factory=Hooks)
    plugin_limits: Limits = field(default_factory=Limits)
    runs: bool = True
    labels: HostLabels = ANY_HOST
    needs_directory: bool = False
    delegates: bool = False
    lease: Terms | None = None
    pace: Pace = field(default_factory=Pace)


@asynccontextmanager
async def stage(
    store: str | Engine,
    directory: Path,
    provider: Provider,
    options: StageOptions | None = None,
    *,
    mint: FixedMint | None = None,
) -> AsyncIterator[Stage]:
    """Open a runtime on a store, with a provider as its model. The configuration of this machine is not read."""
    given = options or StageOptions()
    mint = mint or Mint.fixed()
    time = VirtualTime(mint, in_a_hurry=given.in_a_hurry)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "turnkeeper.json").write_bytes(encode({**CONFIG, **given.config}))
    settings = Settings(
        ask=given.ask,
        question=given.question,
        transport=lambda endpoint: provider,
        sleep=time.sleep,
        random=lambda: 0.0,
        titles=given.titles,
        snapshots=given.snapshots,
        hooks=given.hooks,
        plugin_limits=given.plugin_limits,
        runs=given.runs,
        labels=given.labels,
        needs_directory=given.needs_directory,
        delegates=given.delegates,
        lease=given.lease,
        pace=given.pace,
        tools=lambda: given.tools,
        environ={
            "HOME": str(directory),
            "TURNKEEPER_TRUST": "1",
            "PATH": os.environ.get("PATH", os.defpath),
            **given.environ,
        },
        started_ns=2**63,  # Tests change the configuration while the runtime runs.
    )
    async with open_store(store, directory=directory, mint=mint, settings=settings) as tk:
        yield Stage(tk, provider, time, mint, directory)


class Told:
    """A provider that streams these batches of events, for streams that a Script cannot express."""

    def __init__(self, *answers: Sequence[Sequence[StreamEvent]]) -> None:
        self._answers = list(answers)
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream the next answer."""
        self.requests.append(request)
        for batch in self._answers.pop(0):
            await anyio.lowlevel.checkpoint()
            yield batch


class EachSession:
    """A provider that plays a separate script for each session."""

    def __init__(self, script: Callable[[], Provider]) -> None:
        self._script = script
        self.scripts: dict[str, Provider] = {}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream the next answer of the script of the session."""
        if request.session_id not in self.scripts:
            self.scripts[request.session_id] = self._script()
        async with aclosing(self.scripts[request.session_id].stream(request)) as answer:
            async for batch in answer:
                yield batch

"""A session with three children, for tests that kill its process: it waits for two, one runs in the background."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio.lowlevel

from turnkeeper.mint import FIXED_START_MS, FixedMint, Mint
from turnkeeper.model import stream as s
from turnkeeper.model.prompt import Prompt, SubtaskInput
from turnkeeper.model.request import ModelRequest, Text, ToolTurn, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.model.value import JsonObject, encode
from turnkeeper.run.recover import Recovery
from turnkeeper.testing.appended import EFFECTS, note
from turnkeeper.testing.harness import Stage, StageOptions, a_tool, stage
from turnkeeper.tools import load
from turnkeeper.tools.tool import ToolContext

ROOT = "ses_e1f84e8c5ffeJ7iU4nZamE9866"
PROMPT = "msg_1e07b173a001AAAAAAAAAAAAAA"
WAITED_FOR, BACKGROUND = ("a", "b"), "c"
USED = s.Usage(input=1_000, output=0)
"""The usage of each answer."""


class FamilyModel:
    """A model whose answer depends only on the request, so that it is equal before and after a crash."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream an answer: calls that hand on the work, a call that does a task, or a report."""
        yield [s.Start(), s.StartStep()]
        for _ in range(4):
            await anyio.lowlevel.checkpoint()  # Other tasks may run here.
        last = request.messages[-1]
        said = _words(last)
        if said == "hand it on":
            for name in (*WAITED_FOR, BACKGROUND):
                yield _call(name, "task", task(name, background=name == BACKGROUND))
        elif said.startswith("do "):
            yield _call("work", "works", {"text": said.removeprefix("do ")})
        else:
            words = "It is done." if isinstance(last, ToolTurn) else "I see."
            yield [s.TextDelta(id="t", text=words), s.TextEnd(id="t")]
        is_calling = said == "hand it on" or said.startswith("do ")
        yield [s.FinishStep(reason="tool-calls" if is_calling else "stop", usage=USED), s.Finish()]


def task(name: str, *, background: bool = False) -> JsonObject:
    """The arguments of a task."""
    given: dict[str, object] = {"description": f"Do {name}", "prompt": f"do {name}", "subagent_type": "helper"}
    return {**given, "background": True} if background else given


def _words(message: object) -> str:
    if not isinstance(message, UserTurn):
        return ""
    return " ".join(part.text for part in message.content if isinstance(part, Text))


def _call(call_id: str, name: str, given: JsonObject) -> Sequence[StreamEvent]:
    raw = encode(given).decode()
    return [s.ToolInputStart(id=call_id, name=name), s.ToolCall(id=call_id, name=name, input=given, raw=raw)]


def opened(url: str, directory: Path, *, mint: FixedMint | None = None) -> AbstractAsyncContextManager[Stage]:
    """The runtime, with a tool whose effects can be counted."""

    async def works(text: str, context: ToolContext) -> str:
        note(directory / EFFECTS, text)
        return f"did {text}"

    config = {"agent": {"helper": {"mode": "subagent", "description": "Helps."}}}
    options = StageOptions(tools=(a_tool("works", works), *load(["task"])), in_a_hurry=True, config=config)
    return stage(url, directory / "place", FamilyModel(), options, mint=mint)


async def send(runtime: Stage) -> None:
    """Send the prompt, like a client that does not know whether it was admitted."""
    await runtime.session(id=ROOT)
    await runtime.say(ROOT, "hand it on", message_id=PROMPT)


async def send_subtasks(runtime: Stage) -> None:
    """Send a prompt with two subtasks; the second is that of a command."""
    await runtime.session(id=ROOT)
    parts = tuple(
        SubtaskInput(prompt=f"do {name}", description=f"Do {name}", agent="helper", command=command)
        for name, command in zip(WAITED_FOR, (None, "review"), strict=True)
    )
    await runtime.tk.prompt(ROOT, Prompt(message_id=PROMPT, parts=parts))


async def rest(runtime: Stage) -> None:
    """Wait until no session runs any more."""
    while running := runtime.tk.running:
        for one in running:
            await runtime.tk.wait(one)


async def live(url: str, directory: Path) -> None:
    """Create the session, hand on the work and wait for its end."""
    async with opened(url, directory) as runtime:
        await send(runtime)
        await rest(runtime)


async def live_subtasks(url: str, directory: Path) -> None:
    """Create the session, send a prompt with two subtasks and wait for their end."""
    async with opened(url, directory) as runtime:
        await send_subtasks(runtime)
        await rest(runtime)


async def recover(runtime: Stage, policy: Recovery) -> None:
    """Recover the sessions of dead processes by a policy, and wait for their end."""
    await runtime.tk.recover(policy)
    await rest(runtime)


async def live_recovering(url: str, directory: Path) -> None:
    """Open the store after a crash, and continue the sessions of the dead process."""
    async with opened(url, directory, mint=Mint.fixed(FIXED_START_MS + 500_000, 2)) as runtime:
        await recover(runtime, "continue")

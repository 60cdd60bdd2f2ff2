"""A process that runs a session and exits at a crash point, for tests of recovery.

It reads lines ``POINT:HIT URL DIRECTORY LIFE``, runs each in a forked child and prints its exit code. A fork takes a
tenth of the time of a new process.
"""

import importlib
import os
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import anyio
import anyio.lowlevel

from turnkeeper.mint import FIXED_START_MS, FixedMint, Mint
from turnkeeper.model import stream as s
from turnkeeper.model.request import ModelRequest, Text, ToolTurn, UserTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.run.permission import Asker, allow_all
from turnkeeper.store import crash
from turnkeeper.testing import family_life, reverting
from turnkeeper.testing.appended import ACKNOWLEDGED, EFFECTS, note
from turnkeeper.testing.harness import Stage, StageOptions, a_tool, stage
from turnkeeper.testing.windowed import Windowed, WindowedTurn
from turnkeeper.tools.tool import ToolContext

SESSION = "ses_e1f84e8c5ffeJ7iU4nZamE9866"
PROMPTS = {"msg_1e07b173a001AAAAAAAAAAAAAA": "one", "msg_1e07b173a001BBBBBBBBBBBBBB": "two"}
"""The second prompt is queued: it is answered after the first."""


class Rules:
    """A model whose answer depends only on the last message, so that it is equal before and after a crash."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream an answer, word by word."""
        yield [s.Start(), s.StartStep()]
        last = request.messages[-1]
        texts = [part.text for part in last.content if isinstance(part, Text)] if isinstance(last, UserTurn) else []
        if texts == ["one"]:
            async for batch in self._says("r", "I think first.", s.ReasoningDelta, s.ReasoningEnd):
                yield batch
            async for batch in self._says("t", "I will do two things.", s.TextDelta, s.TextEnd):
                yield batch
            for name in ("a", "b"):
                raw = f'{{"text":"{name}"}}'
                yield [s.ToolInputStart(id=name, name="works"), s.ToolInputDelta(id=name, text=raw)]
                yield [s.ToolCall(id=name, name="works", input={"text": name}, raw=raw)]
            yield [s.FinishStep(reason="tool-calls", usage=s.Usage(input=10, output=5)), s.Finish()]
            return
        words = "Both are done." if isinstance(last, ToolTurn) else f"I heard {' and '.join(texts)}."
        async for batch in self._says("t", words, s.TextDelta, s.TextEnd):
            yield batch
        yield [s.FinishStep(reason="stop", usage=s.Usage(input=10, output=5)), s.Finish()]

    async def _says(
        self, block: str, text: str, delta: type[s.TextDelta | s.ReasoningDelta], end: type[s.TextEnd | s.ReasoningEnd]
    ) -> AsyncGenerator[Sequence[StreamEvent], None]:
        for word in text.split(" "):
            for _ in range(4):
                await anyio.lowlevel.checkpoint()  # Other tasks may run here.
            yield [delta(id=block, text=f"{word} ")]
        yield [end(id=block)]


def opened(url: str, directory: Path, *, mint: FixedMint | None = None) -> AbstractAsyncContextManager[Stage]:
    """The runtime of ``live``, with a tool whose effects can be counted."""

    async def works(text: str, context: ToolContext) -> str:
        note(directory / EFFECTS, text)
        return f"did {text}"

    options = StageOptions(tools=(a_tool("works", works),), in_a_hurry=True)
    return stage(url, directory / "place", Rules(), options, mint=mint)


async def send(runtime: Stage, directory: Path) -> None:
    """Send all prompts, like a client that does not know which were admitted."""
    for message_id, text in PROMPTS.items():
        delivery = "steer" if text == "one" else "queue"
        await runtime.say(SESSION, text, message_id=message_id, delivery=delivery)
        note(directory / ACKNOWLEDGED, message_id)


async def live(url: str, directory: Path) -> None:
    """Create the session, send the prompts and wait for the answers."""
    async with opened(url, directory) as runtime:
        await runtime.session(id=SESSION)
        await send(runtime, directory)
        await runtime.tk.wait(SESSION)


GROWING = 12
"""The number of prompts of a growing session: enough for a pruning and a compaction."""


def growing(url: str, directory: Path, *, mint: FixedMint | None = None) -> AbstractAsyncContextManager[Stage]:
    """The runtime of a session that outgrows its context window. Its tool has a large output, which is bounded."""

    async def works(text: str, context: ToolContext) -> str:
        note(directory / EFFECTS, text)
        return f"did {text}\n" + "much\n" * 12_000

    def answers(asked: str, results: ToolTurn | None) -> WindowedTurn:
        if results is None and asked.startswith("grow"):
            return WindowedTurn(text="I do it.", tool="works", calls=({"text": asked.removeprefix("grow ")},))
        return WindowedTurn(text=f"Done: {asked[:40]}")

    limits = {"context": 150_000, "output": 4_000}
    provider = {
        "protocol": "openai-chat",
        "options": {"baseURL": "http://localhost:1/v1"},
        "models": {"m": {"limit": limits}},
    }
    config = {
        "model": "acme/m",
        "provider": {"acme": provider},
        "compaction": {"prune": "always", "max_messages": 34},
        "tool_output": {"max_lines": 20_000},
    }
    options = StageOptions(tools=(a_tool("works", works),), in_a_hurry=True, config=config)
    return stage(url, directory / "place", Windowed(150_000, answers), options, mint=mint)


async def grow(runtime: Stage, directory: Path) -> None:
    """Send every prompt, also those that were admitted, and wait for each answer."""
    for number in range(GROWING):
        message_id = f"msg_1e07b173a001{number:014}"
        await runtime.say(SESSION, f"grow {number}", message_id=message_id)
        note(directory / ACKNOWLEDGED, message_id)
        await runtime.tk.wait(SESSION)


async def live_growing(url: str, directory: Path) -> None:
    """Create a session and let it outgrow its context window."""
    async with growing(url, directory) as runtime:
        await runtime.session(id=SESSION)
        await grow(runtime, directory)


def asking(
    url: str, directory: Path, *, ask: Asker | None = allow_all, mint: FixedMint | None = None
) -> AbstractAsyncContextManager[Stage]:
    """The runtime of a session whose tool asks twice before it works."""

    async def works(text: str, context: ToolContext) -> str:
        await context.ask("leave", [text], always=[text], metadata={})
        await context.ask("works", [text], always=[text], metadata={"long": "x" * 20_000})
        note(directory / EFFECTS, text)
        return f"did {text}"

    config = {"permission": {"leave*": "ask", "works": "ask"}}
    options = StageOptions(tools=(a_tool("works", works),), in_a_hurry=True, config=config, ask=ask)
    return stage(url, directory / "place", Rules(), options, mint=mint)


async def live_asking(url: str, directory: Path) -> None:
    """Run a session from beginning to end whose calls ask, and are allowed at once."""
    async with asking(url, directory) as runtime:
        await runtime.session(id=SESSION)
        await send(runtime, directory)
        await runtime.tk.wait(SESSION)


async def live_recovering(url: str, directory: Path) -> None:
    """Open the store after a crash, close the open turn and continue the session."""
    async with asking(url, directory, mint=Mint.fixed(FIXED_START_MS + 500_000, 2)) as runtime:
        await runtime.tk.recover("rest")
        await runtime.tk.run(SESSION, resume=True)


def paint(place: Path) -> None:
    """A step that changes, creates and deletes files, and replaces a link by a folder."""
    (place / "changed").write_text("by the agent\n")
    (place / "sub").mkdir()
    (place / "sub/made").write_text("made\n")
    (place / "doomed").unlink()
    (place / "sub/link").symlink_to("made")
    (place / "way").unlink()
    (place / "way").mkdir()
    (place / "way/in").write_text("inside\n")


def prepare_files(place: Path) -> None:
    """The files before the step."""
    place.mkdir()
    (place / "changed").write_text("before\n")
    (place / "doomed").write_text("precious\n")
    (place / "way").symlink_to("changed")
    (place / "edited").write_text("".join(f"line {number}\n" for number in range(9)))


def paint_more(place: Path) -> None:
    """A second step, which changes a file that others change later."""
    text = (place / "edited").read_text()
    (place / "edited").write_text(text.replace("line 1\n", "agent 1\n"))


async def live_reverting(url: str, directory: Path) -> None:
    """Undo, redo and undo the file changes of two steps, then send a prompt."""
    prepare_files(directory / "place")
    async with reverting.opened(url, directory) as runtime:
        await runtime.session(id=SESSION)
        await reverting.record_turn(runtime, SESSION, paint, paint_more)
        edited = directory / "place/edited"
        edited.write_text(edited.read_text().replace("line 7\n", "others 7\n"))
        for move in (runtime.tk.undo, runtime.tk.redo, runtime.tk.undo):
            note(directory / ACKNOWLEDGED, "begun")
            await move(SESSION)
            note(directory / ACKNOWLEDGED, "done")
        await runtime.ask(SESSION, "Something else")
        note(directory / ACKNOWLEDGED, "said")


async def live_finishing(url: str, directory: Path) -> None:
    """Open the store after a crash, and finish the interrupted revert."""
    async with reverting.opened(url, directory, mint=Mint.fixed(FIXED_START_MS + 500_000, 2)) as runtime:
        await runtime.tk.take_over()


LIVES = {
    "turns": live,
    "growing": live_growing,
    "asking": live_asking,
    "recovering": live_recovering,
    "reverting": live_reverting,
    "finishing": live_finishing,
    "family": family_life.live,
    "subtasks": family_life.live_subtasks,
    "family-recovering": family_life.live_recovering,
}


def main() -> None:
    """Run each line of standard input in a forked child."""
    for line in sys.stdin:
        setting, url, directory, life = line.split()
        child = os.fork()
        if child == 0:
            os.environ[crash.VARIABLE] = setting
            importlib.reload(crash)  # The module reads the variable at import.
            anyio.run(LIVES[life], url, Path(directory))
            os._exit(0)
        os.write(1, f"{os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])}\n".encode())


if __name__ == "__main__":
    main()

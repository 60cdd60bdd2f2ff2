"""A small store with every kind of thing the commands show, and ways to run a command on it."""

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec

import turnkeeper
from turnkeeper.app import Turnkeeper
from turnkeeper.cli.main import main
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure, ApiData, ApiFailure, MessageData
from turnkeeper.model.message import (
    AssistantMessage,
    AssistantTime,
    ContextUpdate,
    MessageTime,
    ModelChoice,
    SystemMessage,
    TurnPath,
    UserMessage,
)
from turnkeeper.model.parts import (
    AgentPart,
    CompactionPart,
    FilePart,
    ForeignPart,
    Part,
    PatchPart,
    ReasoningPart,
    RetryPart,
    StepFinishPart,
    StepStartPart,
    SubtaskPart,
    TextPart,
    ToolPart,
)
from turnkeeper.model.parts.base import Span
from turnkeeper.model.parts.marks import RetryTime
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolRunning,
    ToolState,
)
from turnkeeper.model.session import CacheTokens, Session, Tokens
from turnkeeper.model.todo import Todo

T = TypeVar("T")

START = 1_794_767_525_690
TOKENS = Tokens(input=1200, output=340, reasoning=56, cache=CacheTokens(read=7000, write=0))


class Answer(NamedTuple):
    """What a command printed and how it ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.out)


def tk(data: Path, *words: str) -> Answer:
    """Run a command in this process on the store in a directory."""
    return said(*words, "--data", str(data))


def said(*words: str) -> Answer:
    """Run a command in this process."""
    raw, err = io.BytesIO(), io.StringIO()
    out = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return Answer(code, raw.getvalue().decode("utf-8", "surrogateescape"), err.getvalue())


def process(data: Path, *words: str, **more: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process of its own."""
    return subprocess.run(
        command(*words), env=environment(data), capture_output=True, text=True, check=False, timeout=60, **more
    )


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "turnkeeper.cli.main", *words]


def environment(data: Path, **more: str) -> dict[str, str]:
    # Unbuffered output would never be written late, and so never be refused late.
    unwanted = {"PYTHONUNBUFFERED", *(name for name in os.environ if name.startswith("TURNKEEPER_"))}
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "TURNKEEPER_DATA": str(data), "TURNKEEPER_TRUST": "1", "COLUMNS": "100", **more}


class DistinctSlugs(Mint):
    """A mint whose slugs never meet by chance, which they do once in some hundred stores: tests use them as names."""

    def __init__(self) -> None:
        super().__init__()
        self._given: set[str] = set()

    def slug(self) -> str:
        while (found := super().slug()) in self._given:
            pass
        self._given.add(found)
        return found


def api(data: Path, work: Callable[[Turnkeeper], Awaitable[T]]) -> T:
    """Do something through the Python API on the same store."""

    async def run() -> T:
        async with turnkeeper.open(f"sqlite:{data / 'turnkeeper.db'}", directory=data, mint=DistinctSlugs()) as opened:
            return await work(opened)

    return asyncio.run(run())


class Family(NamedTuple):
    """The sessions of the small store."""

    root: Session
    child: Session
    archived: Session


async def fill(opened: Turnkeeper) -> Family:
    """Make a root with a history, its child, and an archived session."""
    root = await opened.create(title="Wind over the bay", agent="build")
    child = await opened.create(title="Look at the tide tables", parent_id=root.id)
    archived = await opened.archive((await opened.create(title="An old idea")).id)
    for message, parts in history(root.id):
        await opened.store.journal.append(root.id, e.MessageRecorded(message=message, parts=parts))
    await opened.set_todos(root.id, TODOS)
    return Family(await opened.get(root.id), child, archived)


TODOS = (
    Todo(content="Read the gauge", status="completed", priority="low"),
    Todo(content="Ask the harbour master", status="in_progress", priority="high"),
    Todo(content="Write it up", status="pending", priority="medium"),
)


def history(session_id: str) -> list[tuple[Any, tuple[Part, ...]]]:
    """A history in which every kind of message and part occurs."""
    own = _Parts(session_id)
    user = UserMessage(
        id="msg_00000000000aUSERUSERUSERUS",
        session_id=session_id,
        time=MessageTime(created=START),
        agent="build",
        model=ModelChoice(provider_id="anthropic", model_id="claude"),
    )
    context = SystemMessage(
        id="msg_00000000000bCONTEXTCONTEXT",
        session_id=session_id,
        time=MessageTime(created=START + 1),
        updates=(ContextUpdate(key="core/date", text="Today is a windy day."),),
    )
    turn = AssistantMessage(
        id="msg_00000000000cTURNTURNTURNTU",
        session_id=session_id,
        time=AssistantTime(created=START + 2, completed=START + 9000),
        parent_id=user.id,
        model_id="claude",
        provider_id="anthropic",
        mode="build",
        agent="build",
        path=TurnPath(cwd="/bay", root="/bay"),
        cost=0.0123,
        tokens=TOKENS,
        finish="stop",
        error=AbortedFailure(data=MessageData(message="the user stopped it")),
    )
    return [
        (user, own.of(user.id, *own.asked())),
        (context, ()),
        (turn, own.of(turn.id, *own.done())),
    ]


class _Parts:
    """Parts of a session, with ids in order."""

    def __init__(self, session_id: str) -> None:
        self._session_id, self._count = session_id, 0

    def of(self, message_id: str, *made: Callable[..., Part]) -> tuple[Part, ...]:
        return tuple(self._made(one, message_id) for one in made)

    def _made(self, one: Callable[..., Part], message_id: str) -> Part:
        self._count += 1
        return one(id=f"prt_{self._count:012x}PARTPARTPARTPA", session_id=self._session_id, message_id=message_id)

    def asked(self) -> list[Callable[..., Part]]:
        return [
            lambda **own: TextPart(text="How strong was the gust?\nThe gauge says 42 knots.", **own),
            lambda **own: FilePart(mime="image/png", filename="gauge.png", url="data:image/png;base64,AAAA", **own),
            lambda **own: AgentPart(name="explore", **own),
            lambda **own: SubtaskPart(prompt="Look", description="look at the tide", agent="explore", **own),
            lambda **own: CompactionPart(auto=True, **own),
        ]

    def done(self) -> list[Callable[..., Part]]:
        failure = ApiFailure(data=ApiData(message="overloaded", is_retryable=True))
        return [
            lambda **own: StepStartPart(**own),
            lambda **own: ReasoningPart(
                text="Perhaps the anemometer is wrong.", time=Span(start=START, end=START), **own
            ),
            lambda **own: _call("bash", COMPLETED, **own),
            lambda **own: _call("edit", FAILED, **own),
            lambda **own: _call("read", RUNNING, **own),
            lambda **own: _call("glob", PENDING, **own),
            lambda **own: RetryPart(attempt=1, error=failure, time=RetryTime(created=START), **own),
            lambda **own: PatchPart(hash="abc", files=("/bay/wind.py",), **own),
            lambda **own: ForeignPart(body={"type": "hologram", "depth": 3}, **own),
            lambda **own: TextPart(text="The gust was 42 knots.", **own),
            lambda **own: StepFinishPart(reason="stop", cost=0.0123, tokens=TOKENS, **own),
        ]


def _call(tool: str, state: ToolState, **own: Any) -> ToolPart:
    return ToolPart(call_id=f"call_{tool}", tool=tool, state=state, **own)


SETTLED = SettledTime(start=START, end=START + 1500)
COMPLETED = ToolCompleted(
    input={"command": "cat gauge.log"},
    output="\n".join(f"reading {number}" for number in range(1, 8)),
    title="Read the gauge",
    metadata={},
    time=SETTLED,
)
FAILED = ToolError(input={"file": "wind.py"}, error="the text to replace was not found", time=SETTLED)
RUNNING = ToolRunning(input={"file": "tide.txt"}, time=RunningTime(start=START))
PENDING = ToolPending(input={}, raw='{"pat')

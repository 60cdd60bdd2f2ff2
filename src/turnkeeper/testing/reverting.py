"""A session whose steps changed files, for tests of reverts: as turns record them, without a model."""

import os
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from turnkeeper.mint import FixedMint
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantTime
from turnkeeper.model.parts import Part, PatchPart, StepFinishPart, StepStartPart
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.stream import Finish, FinishStep, Start, StartStep, StreamEvent, TextDelta, TextEnd, Usage
from turnkeeper.store.engine import Engine
from turnkeeper.testing.builders import a_call, a_text, a_user, an_assistant, completed
from turnkeeper.testing.harness import Stage, StageOptions, stage
from turnkeeper.workspace.snapshots import ShadowRepository

Edit = Callable[[Path], object]
"""Changes files below a directory."""


class Short:
    """A model that says yes to everything."""

    def __init__(self) -> None:
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        """Stream the answer."""
        self.requests.append(request)
        yield [Start(), StartStep(), TextDelta(id="t", text="Yes."), TextEnd(id="t")]
        yield [FinishStep(reason="stop", usage=Usage(input=10, output=5)), Finish()]


def opened(
    store: str | Engine, directory: Path, *, mint: FixedMint | None = None, snapshot: bool = True
) -> AbstractAsyncContextManager[Stage]:
    """A runtime in ``directory/place`` with another home, because no snapshots of a home are kept."""
    home = directory / "home"
    home.mkdir(exist_ok=True)
    environ = {"HOME": str(home), "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
    options = StageOptions(in_a_hurry=True, environ=environ, config={"snapshot": snapshot})
    return stage(store, directory / "place", Short(), options, mint=mint)


async def repository(opened: Stage) -> ShadowRepository:
    """The snapshots of the runtime's project."""
    place, config = await opened.tk.runtime.directories.resolve(str(opened.directory))
    found = await opened.tk.runtime.snapshots.of(place, config.config)
    assert found is not None
    return found


async def record_turn(opened: Stage, session_id: str, *edits: Edit) -> list[str]:
    """Record a prompt, and a step for each edit; returns the ids of the messages."""
    mint, shadow = opened.mint, await repository(opened)
    user = a_user(session_id, mint.message_id())
    events: list[e.Event] = [e.MessageRecorded(message=user, parts=(a_text(user, mint.part_id(), "Do it"),))]
    for edit in edits:
        turn = an_assistant(session_id, mint.message_id(), user.id, finish="stop")
        before = await shadow.capture(session_id)
        edit(opened.directory)
        after = await shadow.capture(session_id)
        assert before is not None
        assert after is not None
        names = await shadow.changed(before, after)
        files = tuple(str(shadow.root / name) for name in names)
        parts: list[Part] = [
            StepStartPart(id=mint.part_id(), session_id=session_id, message_id=turn.id, snapshot=before),
            a_text(turn, mint.part_id(), "Well."),
            a_call(turn, mint.part_id(), completed()),
            StepFinishPart(
                id=mint.part_id(),
                session_id=session_id,
                message_id=turn.id,
                reason="stop",
                snapshot=after,
                cost=0,
                tokens=ZERO_TOKENS,
            ),
        ]
        if files:
            parts.append(
                PatchPart(id=mint.part_id(), session_id=session_id, message_id=turn.id, hash=before, files=files)
            )
        ended = turn.but(time=AssistantTime(created=mint.now(), completed=mint.now()))
        events.append(e.MessageRecorded(message=ended, parts=tuple(parts)))
    await opened.tk.store.journal.append(session_id, *events)
    return [event.message.id for event in events if isinstance(event, e.MessageRecorded)]

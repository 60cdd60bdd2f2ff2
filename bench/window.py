"""Long sessions: deciding what to send must not depend on what is hidden, and compacting must cost next to nothing."""

import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

from bench.data import TEXT, a_message
from bench.measure import Figure, ms
from turnkeeper.model.event import Event, TurnEnded, TurnStarted
from turnkeeper.model.message import AssistantMessage, AssistantTime, TurnPath
from turnkeeper.model.session import ZERO_TOKENS
from turnkeeper.model.value import JsonObject
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.conversations import Conversations
from turnkeeper.run.histories import Histories
from turnkeeper.testing.harness import Stage, StageOptions, stage
from turnkeeper.testing.windowed import Windowed, WindowedTurn

HIDDEN = (100, 10_000, 100_000)
ROUNDS = 60
CONFIG: JsonObject = {"compaction": {"preserve_recent_tokens": 500}}
"""A short tail, so that what is shown is the same however much is hidden."""


async def measure(folder: Path) -> list[Figure]:
    """The same cost at 100, 10,000 and 100,000 hidden events; under 50 ms to compact 10,000."""
    return [*await _decisions(folder), await _bookkeeping(folder)]


def _stage(folder: Path, name: str, provider: Windowed | Scripted) -> AbstractAsyncContextManager[Stage]:
    return stage(f"sqlite:{folder / name}.db", folder / name, provider, StageOptions(in_a_hurry=True, config=CONFIG))


async def _filled(opened: Stage, events: int) -> str:
    """A session with so many events: one for each message, question and answer in turns."""
    session = await opened.session()
    mint, journal = opened.tk.store.mint, opened.tk.store.journal
    for start in range(0, events, 600):
        batch: list[Event] = []
        while len(batch) < min(600, events - start):
            asked = a_message(mint, session, parts=1, text=TEXT)
            batch += [asked, *_answer(mint.message_id, session, asked.message.id, mint.now())]
        await journal.append(session, *batch)
    return session


def _answer(fresh: Callable[[], str], session: str, parent: str, now: int) -> list[Event]:
    message = AssistantMessage(
        id=fresh(),
        session_id=session,
        time=AssistantTime(created=now),
        parent_id=parent,
        model_id="large",
        provider_id="acme",
        mode="build",
        agent="build",
        path=TurnPath(cwd="/", root="/"),
        cost=0,
        tokens=ZERO_TOKENS,
    )
    ended = message.but(finish="stop", time=AssistantTime(created=now, completed=now))
    return [TurnStarted(message=message), TurnEnded(message=ended)]


async def _decisions(folder: Path) -> list[Figure]:
    costs = []
    for hidden in HIDDEN:
        async with _stage(
            folder, f"hidden-{hidden}", Windowed(10**9, lambda asked, results: WindowedTurn(text="ok"))
        ) as opened:
            session = await _filled(opened, hidden)
            await opened.ask(session, "go")
            await opened.tk.compact(session, force=True)
            for _ in range(10):
                await opened.ask(session, "on")
            costs.append(await _decide(opened, session))
    ratio = costs[-1] / costs[0]
    return [
        Figure(
            f"deciding what to send, {HIDDEN[-1]:,} events hidden",
            ms(costs[-1]),
            f"{HIDDEN[0]} hidden: {ms(costs[0])}; {HIDDEN[1]:,}: {ms(costs[1])}",
            ratio,
            "<= 1.50",
            ratio <= 1.5,
        )
    ]


async def _decide(opened: Stage, session: str) -> float:
    """What it costs a new process to read and lower what the model is shown."""
    store, best = opened.tk.store, float("inf")
    [model] = [opened.provider.requests[-1].model] if isinstance(opened.provider, Windowed) else []
    for _ in range(ROUNDS):
        start = time.process_time()
        history = await Histories(store).get(session)
        Conversations().of(session, history, model, 0)
        best = min(best, time.process_time() - start)
    return best


async def _bookkeeping(folder: Path) -> Figure:
    """All that a compaction does besides asking the model."""
    best = float("inf")
    for number in range(3):
        script = Scripted().says("ok").then().says("## Objective\nTo go on.").forever()
        async with _stage(folder, f"compacted-{number}", script) as opened:
            session = await _filled(opened, 10_000)
            await opened.ask(session, "go")
            start = time.process_time()
            done = await opened.tk.compact(session, force=True)
            best = min(best, time.process_time() - start)
            assert done.summary is not None, done.reason
    return Figure(
        "compacting 10,000 events, without the model", ms(best), "aim 50 ms", best / 0.05, "<= 1.00", best <= 0.05
    )

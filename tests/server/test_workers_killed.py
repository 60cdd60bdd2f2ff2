"""Servers that run nothing and workers that are killed and paused: every prompt is answered once or visibly stopped."""

import signal
import subprocess
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from random import Random

import anyio
import anyio.lowlevel
import httpx2
import pytest
from served_process import Place
from stores import store_url

from turnkeeper.app import look
from turnkeeper.core.labels import ANY_HOST
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.run.host import Host
from turnkeeper.run.job_wakes import new_wakes
from turnkeeper.testing.server import ScriptedServer

SERVERS, WORKERS, SESSIONS, PROMPTS, DELTAS = 2, 3, 4, 4, 6
KILLED, PAUSED = 9, 30
"""After so many deltas of all models a worker is killed, and another is paused."""
DONE = "done.txt"
"""Where commands of the model leave the ids of their prompts."""
LEASE_S = 2
PATIENCE_S = 240


class Moments:
    """Counts what models say, and tells when it comes to a number."""

    def __init__(self, *numbers: int) -> None:
        self._said = 0
        self._events = {number: anyio.Event() for number in numbers}

    async def pause(self, _seconds: float) -> None:
        """Between two deltas."""
        self._said += 1
        if self._said in self._events:
            self._events[self._said].set()
        await anyio.lowlevel.checkpoint()

    async def comes(self, number: int) -> None:
        with anyio.fail_after(PATIENCE_S):
            await self._events[number].wait()


async def send_all(servers: list[httpx2.AsyncClient], session_id: str, chance: Random) -> list[str]:
    """Send prompts to a session, each by some server; their ids."""
    sent = []
    for number in range(PROMPTS):
        message_id = f"msg_{session_id.removeprefix('ses_')}{number}"
        text = f"<{message_id}> [[bash echo {message_id} >> {DONE}]] [[slow {DELTAS} 1]]"
        body = {"id": message_id, "prompt": {"text": text}, "delivery": "queue"}
        answer = await chance.choice(servers).post(f"/api/session/{session_id}/prompt", json=body)
        assert answer.is_success, answer.text
        sent.append(message_id)
    return sent


async def trouble(place: Place, workers: list[subprocess.Popen[str]], moments: Moments, stack: AsyncExitStack) -> None:
    """Kill one worker and pause another until its sessions were taken; a new one comes for the dead."""
    dead, paused, *_ = workers
    await moments.comes(KILLED)
    dead.kill()
    workers.append(await started(place, stack))
    await moments.comes(PAUSED)
    paused.send_signal(signal.SIGSTOP)
    async with look(place.store) as tk:
        with anyio.fail_after(PATIENCE_S):
            while any(one.owner.pid == paused.pid for one in (await tk.cluster()).leases):
                await anyio.sleep(0)
    paused.send_signal(signal.SIGCONT)


async def started(place: Place, stack: AsyncExitStack) -> subprocess.Popen[str]:
    process, _ = await stack.enter_async_context(
        place.started("worker", "--lease", str(LEASE_S), "--concurrency", "3", "--log-level", "error")
    )
    return process


async def rest(place: Place) -> None:
    """Wait until no session is at work, no prompt waits and no worker is asked for."""
    async with look(place.store) as tk:
        wakes = new_wakes(tk.store, Host(tk.store, ANY_HOST).label_of)
        with anyio.fail_after(PATIENCE_S):
            while any([await tk.store.engine.scan((kind,), limit=1) for kind in ("busy", "inbox")]) or (
                await wakes.waiting()
            ):
                await anyio.sleep(0)


async def check(place: Place, sent: dict[str, list[str]]) -> None:
    async with look(place.store) as tk:
        for session_id, prompts in sent.items():
            history = [one.info async for one in tk.iter_messages(session_id, reverse=False)]
            assert [one.id for one in history if isinstance(one, UserMessage)] == prompts
            turns = [one for one in history if isinstance(one, AssistantMessage)]
            for prompt in prompts:
                own = [one for one in turns if one.parent_id == prompt]
                assert own, f"{prompt} was lost"
                answers = [one for one in own if one.error is None and one.finish == "stop"]
                assert len(answers) == 1 or (not answers and own[-1].error is not None), own
        assert (await tk.doctor()).problems == ()
    file = place.path / DONE
    did = Counter(file.read_text().split() if file.exists() else ())
    assert not [one for one, times in did.items() if times > 1]


async def life(tmp_path: Path, engine: str, seed: int) -> None:
    chance, moments = Random(seed), Moments(KILLED, PAUSED)
    async with ScriptedServer(pause=moments.pause) as provider, AsyncExitStack() as stack:
        url = store_url(engine, tmp_path) if engine == "postgres" else ""
        place = Place(tmp_path, provider, url)
        place.configure()
        servers = [(await stack.enter_async_context(place.serving("--no-run")))[1] for _ in range(SERVERS)]
        workers = [await started(place, stack) for _ in range(WORKERS)]
        sessions = [(await chance.choice(servers).post("/session", json={})).json()["id"] for _ in range(SESSIONS)]
        sent: dict[str, list[str]] = {}

        async def client(session_id: str) -> None:
            sent[session_id] = await send_all(servers, session_id, chance)

        async with anyio.create_task_group() as group:
            for session_id in sessions:
                group.start_soon(client, session_id)
            group.start_soon(trouble, place, chance.sample(workers, WORKERS), moments, stack)
        await rest(place)
        await check(place, sent)


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_workers_that_are_killed_and_paused_lose_nothing_and_do_nothing_twice(
    tmp_path: Path, engine: str
) -> None:
    await life(tmp_path, engine, 1)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(2, 7))
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_workers_lose_nothing_in_many_lives(tmp_path: Path, engine: str, seed: int) -> None:
    await life(tmp_path, engine, seed)

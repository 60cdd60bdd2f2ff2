"""Servers and workers on one store, each a process of its own, clients that write to any of them, and what may fail."""

import asyncio
import signal
import subprocess
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

import anyio
import httpx2
from served_process import Place

from turnkeeper.app import look
from turnkeeper.model.message import AssistantMessage, UserMessage
from turnkeeper.store.engine import StoreUnavailable
from turnkeeper.testing.postgres import OwnCluster
from turnkeeper.testing.server import ScriptedServer

DEADLINE_S = 1200
"""For a life of `make soak` on a busy machine. Those of `make test` have the limit of every test."""
LEASE_S = 3
REQUEST_S = 10
"""After so long a client asks another server. One that is stopped by a signal never answers."""
DELTAS = 6
"""What a model says to each prompt."""
DONE = "done.txt"
"""Where commands of the model write the ids of their prompts."""


class Models:
    """What models say, of all sessions. They can be held in the middle of it."""

    def __init__(self) -> None:
        self._said = 0
        self._hold_at = 0
        self._held, self._go = anyio.Event(), anyio.Event()
        self._go.set()

    async def pause(self, _seconds: float) -> None:
        """Between two deltas."""
        self._said += 1
        if self._said == self._hold_at:
            self._go = anyio.Event()
            self._held.set()
        await self._go.wait()

    async def hold_after(self, deltas: int) -> None:
        """Let them say so much more, and hold them all."""
        self._held, self._hold_at = anyio.Event(), self._said + deltas
        await self._held.wait()

    def go_on(self) -> None:
        self._go.set()


@dataclass
class Hosts:
    """The processes on one store."""

    place: Place
    stack: AsyncExitStack
    chance: Random
    models: Models
    database: OwnCluster | None = None
    standby: OwnCluster | None = None
    servers: list[tuple[subprocess.Popen[str], httpx2.AsyncClient]] = field(default_factory=list)
    workers: list[subprocess.Popen[str]] = field(default_factory=list)

    async def add_server(self, *options: str) -> None:
        options = (*options, "--log-level", "error")
        self.servers.append(await self.stack.enter_async_context(self.place.serving(*options)))

    async def add_worker(self) -> None:
        command = ("worker", "--lease", str(LEASE_S), "--concurrency", "3", "--log-level", "error")
        self.workers.append((await self.stack.enter_async_context(self.place.started(*command)))[0])

    async def call(self, path: str, body: object) -> httpx2.Response:
        """Ask any server, and another one if that one fails; the answer is of one that did not."""
        with anyio.fail_after(DEADLINE_S):
            while True:
                _, http = self.chance.choice(self.servers)
                try:
                    answer = await http.post(path, json=body, timeout=REQUEST_S)
                except httpx2.TransportError:
                    continue
                if answer.status_code < 500:
                    assert answer.is_success, answer.text
                    return answer

    async def send(self, session_id: str, number: int) -> str:
        """Send a prompt to a session; the same one again until a server has acknowledged it."""
        message_id = f"msg_{session_id.removeprefix('ses_')}{number}"
        text = f"<{message_id}> [[bash echo {message_id} >> {DONE}]] [[slow {DELTAS} 1]]"
        body = {"id": message_id, "prompt": {"text": text}, "delivery": "queue"}
        await self.call(f"/api/session/{session_id}/prompt", body)
        return message_id

    async def rest(self) -> None:
        """Wait until no session is at work, no prompt waits and no worker is asked for."""
        async with look(self.place.store) as tk:
            with anyio.fail_after(DEADLINE_S):
                while (
                    any([await tk.store.engine.scan((kind,), limit=1) for kind in ("busy", "inbox")])
                    or (await tk.cluster()).queue.sessions
                ):
                    await anyio.sleep(0)

    async def running(self) -> set[int]:
        """The processes that own a session."""
        async with look(self.place.store) as tk:
            return {one.owner.pid for one in (await tk.cluster()).leases}

    async def check(self, sent: dict[str, list[str]]) -> None:
        """Every prompt is there once, in order, answered once or visibly stopped; and no command ran twice."""
        async with look(self.place.store) as tk:
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
        file = self.place.path / DONE
        did = Counter(file.read_text().split() if file.exists() else ())
        assert not [one for one, times in did.items() if times > 1]


Trouble = Callable[[Hosts], Awaitable[None]]
"""What fails. It begins while models are held in the middle of what they say, and lets them go on once it has begun."""


async def kill_worker(hosts: Hosts) -> None:
    """Kill a worker that runs something; another one comes for it."""
    victim = await _running_worker(hosts)
    victim.kill()
    hosts.models.go_on()
    hosts.workers.remove(victim)
    await hosts.add_worker()


async def pause_worker(hosts: Hosts) -> None:
    """Stop a worker until its sessions were taken; then it comes back."""
    victim = await _running_worker(hosts)
    victim.send_signal(signal.SIGSTOP)
    hosts.models.go_on()
    # One that was stopped in the middle of a write has the lock of a SQLite file: then all others wait for it.
    with anyio.fail_after(DEADLINE_S), suppress(StoreUnavailable):
        while victim.pid in await hosts.running():
            await anyio.sleep(0)
    victim.send_signal(signal.SIGCONT)


async def kill_server(hosts: Hosts) -> None:
    """Kill a server; another one comes for it."""
    victim = hosts.chance.choice(hosts.servers)
    victim[0].kill()
    hosts.models.go_on()
    hosts.servers.remove(victim)
    await hosts.add_server("--no-run")


async def pause_server(hosts: Hosts) -> None:
    """Stop a server until the others have done some work without it."""
    victim, _ = hosts.chance.choice(hosts.servers)
    victim.send_signal(signal.SIGSTOP)
    hosts.models.go_on()
    await hosts.models.hold_after(2 * DELTAS)
    victim.send_signal(signal.SIGCONT)
    hosts.models.go_on()


async def restart_database(hosts: Hosts) -> None:
    """Restart it in order."""
    await _stop_database(hosts, signal.SIGINT)


async def kill_database(hosts: Hosts) -> None:
    """Kill it, and start it again."""
    await _stop_database(hosts, signal.SIGKILL)


async def fail_over(hosts: Hosts) -> None:
    """Kill the database, and promote its standby. There is no other one after that."""
    assert hosts.database is not None
    assert hosts.standby is not None
    await asyncio.to_thread(hosts.database.stop, signal.SIGKILL)
    hosts.models.go_on()
    await asyncio.to_thread(hosts.standby.promote)
    hosts.database = hosts.standby


async def _stop_database(hosts: Hosts, how: signal.Signals) -> None:
    assert hosts.database is not None
    await asyncio.to_thread(hosts.database.stop, how)
    hosts.models.go_on()
    await asyncio.to_thread(hosts.database.start)


async def _running_worker(hosts: Hosts) -> subprocess.Popen[str]:
    with anyio.fail_after(DEADLINE_S):
        while True:
            pids = await hosts.running()
            found = [one for one in hosts.workers if one.pid in pids]
            if found:
                return hosts.chance.choice(found)


async def live(
    path: Path,
    *,
    url: str,
    seed: int,
    servers: int,
    workers: int,
    sessions: int,
    prompts: int,
    troubles: Sequence[Trouble],
    database: OwnCluster | None = None,
    standby: OwnCluster | None = None,
) -> None:
    """Start everything, let clients write while things fail, and check what came of it.

    Each client sends ``prompts``, and more until the last trouble is over.
    """
    chance, models = Random(seed), Models()
    async with ScriptedServer(pause=models.pause) as provider, AsyncExitStack() as stack:
        place = Place(path, provider, url)
        place.configure()
        hosts = Hosts(place, stack, chance, models, database, standby)
        async with anyio.create_task_group() as group:
            for _ in range(servers):
                group.start_soon(hosts.add_server, "--no-run")
            for _ in range(workers):
                group.start_soon(hosts.add_worker)
        names: list[str] = [(await hosts.call("/session", {})).json()["id"] for _ in range(sessions)]
        sent: dict[str, list[str]] = {name: [] for name in names}
        over = anyio.Event()

        async def client(session_id: str) -> None:
            while len(sent[session_id]) < prompts or not over.is_set():
                sent[session_id].append(await hosts.send(session_id, len(sent[session_id])))
                if len(sent[session_id]) > prompts or chance.random() < 0.5:
                    await hosts.call(f"/api/session/{session_id}/wait", {})

        async def trouble() -> None:
            for one in troubles:
                with anyio.fail_after(DEADLINE_S):
                    await models.hold_after(chance.randint(DELTAS, 2 * DELTAS))
                    await one(hosts)
            over.set()

        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(client, name)
            group.start_soon(trouble)
        await hosts.rest()
        await hosts.check(sent)

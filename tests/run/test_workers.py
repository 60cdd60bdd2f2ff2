"""Workers run the sessions that other processes ask for."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from left_behind import DEAD, STEP, left_behind
from stores import store_url

from turnkeeper.core.lease import Terms
from turnkeeper.core.limits import HOST_KEPT_MS
from turnkeeper.mint import Mint
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.notification import Notification
from turnkeeper.model.status import Owner
from turnkeeper.model.value import encode
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.leases import runtime_name
from turnkeeper.run.worker import Worker
from turnkeeper.store import keys
from turnkeeper.testing.harness import EachSession, Stage, StageOptions, stage

PATIENCE_S = 120


@asynccontextmanager
async def server_and_worker(
    tmp_path: Path, script: Provider, concurrency: int = 2, lease: Terms | None = None
) -> AsyncIterator[tuple[Stage, Stage, Worker]]:
    """A process that admits prompts, one that runs sessions, and what makes the second do so."""
    url, place = f"sqlite:{tmp_path}/store", tmp_path / "place"
    # Two processes do not make the same ids.
    async with (
        stage(url, place, Scripted(), StageOptions(runs=False)) as server,
        stage(url, place, script, StageOptions(lease=lease), mint=Mint.fixed(seed=2)) as worker,
    ):
        with anyio.fail_after(PATIENCE_S):
            yield server, worker, worker.tk.runtime.worker(concurrency)


async def test_a_worker_answers_what_a_server_admits(tmp_path: Path) -> None:
    script = Scripted().says("one").then().says("two")
    async with server_and_worker(tmp_path, script) as (server, worker, work):
        worker.tk.runtime.group.start_soon(work.work)
        session = await server.session()
        assert (await server.ask(session, "first")).kind == "rested"
        assert (await server.ask(session, "second")).kind == "rested"
        assert [message.error for message, _ in await server.turns(session)] == [None, None]
        assert len(script.requests) == 2
        assert await server.is_sound(session)


async def test_a_wake_waits_for_a_worker_and_many_make_one_run(tmp_path: Path) -> None:
    script = Scripted().says("done")
    async with server_and_worker(tmp_path, script) as (server, worker, work):
        session = await server.session()
        for word in ("one", "two", "three"):
            await server.say(session, word)
        assert (await server.tk.cluster()).queue.wakes == 3
        worker.tk.runtime.group.start_soon(work.work)
        await server.tk.wait(session)
        assert len(script.requests) == 1
        assert (await server.tk.cluster()).queue.sessions == 0


async def test_a_worker_runs_a_bounded_number_of_sessions_at_a_time(tmp_path: Path) -> None:
    gates = [Gate() for _ in range(3)]
    waiting = iter(gates)
    provider = EachSession(lambda: Scripted().waits(next(waiting)).says("done"))
    async with server_and_worker(tmp_path, provider, concurrency=2) as (server, worker, work):
        sessions = [await server.session() for _ in gates]
        for session in sessions:
            await server.say(session, "go")
        worker.tk.runtime.group.start_soon(work.work)
        await gates[0].wait_reached()
        await gates[1].wait_reached()
        assert len(work.working) == 2
        assert len(provider.scripts) == 2
        gates[0].open()
        await gates[2].wait_reached()
        for gate in gates:
            gate.open()
        for session in sessions:
            await server.tk.wait(session)
        assert len(provider.scripts) == 3


OFTEN = Terms(beat_s=0.05, lease_s=60, margin_s=15)


async def test_a_worker_that_leaves_finishes_what_it_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    gate = Gate()
    async with server_and_worker(tmp_path, Scripted().waits(gate).says("done"), lease=OFTEN) as (server, _, work):
        first, second = await server.session(), await server.session()
        await server.say(first, "go")
        async with anyio.create_task_group() as group:
            group.start_soon(work.work)
            await gate.wait_reached()
            assert not any(host.draining for host in (await server.tk.cluster()).hosts)
            work.leave()
            await server.say(second, "too late")
            with anyio.fail_after(PATIENCE_S):
                while not (draining := [host for host in (await server.tk.cluster()).hosts if host.draining]):
                    await anyio.lowlevel.checkpoint()
            assert [(host.role, host.process, host.sessions) for host in draining] == [("worker", "runs", 1)]
            assert [one.reason for one in (await server.tk.cluster()).queue.waiting] == ["no worker"]
            gate.open()
        assert [message.error for message, _ in await server.turns(first)] == [None]
        assert list(await server.tk.runtime.wakes.waiting()) == [second]


async def test_a_wake_for_a_session_that_was_removed_is_dropped(tmp_path: Path) -> None:
    async with server_and_worker(tmp_path, Scripted()) as (server, worker, work):
        await server.tk.runtime.wakes.post("ses_gone")
        worker.tk.runtime.group.start_soon(work.work)
        with anyio.fail_after(PATIENCE_S):
            while await server.tk.runtime.wakes.waiting():
                await anyio.sleep(0)


async def test_what_a_server_asked_for_and_no_worker_began_can_be_taken_back(tmp_path: Path) -> None:
    async with server_and_worker(tmp_path, Scripted()) as (server, _, _work):
        session = await server.session()
        await server.say(session, "go")
        await server.tk.stop(session)
        assert await server.tk.runtime.wakes.waiting() == {}
        assert len((await server.tk.store.journal.view(session)).inbox) == 1


@pytest.mark.parametrize("engine", ["sqlite", "files", "postgres"])
async def test_subscribers_of_a_server_hear_what_a_worker_writes(tmp_path: Path, engine: str) -> None:
    url, place = store_url(engine, tmp_path), tmp_path / "place"
    async with (
        stage(url, place, Scripted(), StageOptions(runs=False)) as server,
        stage(url, place, Scripted().says("I am far away."), mint=Mint.fixed(seed=2)) as worker,
    ):
        worker.tk.runtime.group.start_soon(worker.tk.runtime.worker(1).work)
        server.tk.runtime.group.start_soon(server.tk.follow)
        session = await server.session()
        with anyio.fail_after(PATIENCE_S):
            async with server.tk.subscribe(session_id=session) as notifications:
                await server.say(session, "go")
                async for one in notifications:
                    match one:
                        case Notification(type="session.idle"):
                            break
        [(_, parts)] = await server.turns(session)
        assert any(getattr(part, "text", "") == "I am far away." for part in parts)


async def test_processes_that_ended_long_ago_are_not_listed_and_their_heartbeats_are_deleted(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as one:
        engine, now = one.tk.store.engine, one.tk.store.mint.now()
        ages = {"dead": HOST_KEPT_MS + 60_000, "silent": HOST_KEPT_MS - 60_000, "ahead": -HOST_KEPT_MS}
        for host, age in ages.items():
            elsewhere = Owner(host=host, pid=1, started="1", machine="other", boot="other")
            await engine.put({keys.heartbeat(host): encode(Heartbeat(owner=elsewhere, beat=1, at=now - age))})
        await engine.put({keys.heartbeat("damaged"): b"?"})
        assert {host.owner.host for host in (await one.tk.cluster()).hosts} == {"silent", "ahead"}
        one.tk.runtime.worker(1)
        with anyio.fail_after(PATIENCE_S):
            while not any(host.role == "worker" for host in (await one.tk.cluster()).hosts):
                await anyio.sleep(0)
        kept = {key[-1] for key, _ in await engine.scan(("heartbeat",))}
        assert kept.intersection({*ages, "damaged"}) == {"silent", "ahead", "damaged"}


async def test_a_worker_elsewhere_whose_heartbeats_ended_is_gone_and_a_command_that_rests_is_not(
    tmp_path: Path,
) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as here:
        engine, now = here.tk.store.engine, here.tk.store.mint.now()
        hosts = {
            "late": ("worker", 300, 61),
            "dead": ("worker", 30, 61),
            "slow": ("worker", 30, 59),
            "rests": ("", 30, 999),
        }
        for host, (role, lease_s, age_s) in hosts.items():
            owner = Owner(host=host, pid=1, started="1", machine="other", boot="other", lease_s=lease_s)
            beat = Heartbeat(owner=owner, beat=1, at=now - age_s * 1000, role=role)
            await engine.put({keys.heartbeat(host): encode(beat)})
        found = {host.owner.host: host.process for host in (await here.tk.cluster()).hosts}
        assert found == {"late": "unseen", "dead": "gone", "slow": "unseen", "rests": "unseen"}


async def test_a_process_that_ended_is_listed_with_the_sessions_that_still_name_it(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted().says("Here.")) as here:
        session, engine = await left_behind(here, STEP), here.tk.store.engine
        beat = Heartbeat(owner=DEAD, beat=1, at=here.tk.store.mint.now(), sessions=1, role="worker", concurrency=4)
        await engine.put({keys.heartbeat(runtime_name(DEAD)): encode(beat)})
        [ended] = (await here.tk.cluster()).hosts
        assert (ended.process, ended.sessions) == ("ended", 1)
        assert await here.tk.runtime.failover.recover() == [session]
        [ended] = [host for host in (await here.tk.cluster()).hosts if host.owner == DEAD]
        assert (ended.process, ended.sessions) == ("ended", 0)

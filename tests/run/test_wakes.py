"""Wakes: the same promises whether they are documents or jobs of a queue."""

import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import anyio
import pytest
from stores import store_url

from turnkeeper.app import look
from turnkeeper.core.labels import ANY_HOST, HostLabels, declared
from turnkeeper.run.host import Host
from turnkeeper.run.job_wakes import JobWakes, new_wakes
from turnkeeper.run.wakes import Receiver, StoredWakes, Taken, Wakes
from turnkeeper.store.job_queue import WithJobs
from turnkeeper.store.store import Store
from turnkeeper.testing.postgres import own_cluster

ENGINES = ["sqlite", "files", "postgres"]
PATIENCE_S = 120
LONG_S = 3600


async def admit_all(session_id: str) -> bool:
    return True


@asynccontextmanager
async def process(url: str) -> AsyncIterator[tuple[Wakes, Store]]:
    """The wakes as a process of its own has them, and its store."""
    async with look(url) as tk:
        with anyio.fail_after(PATIENCE_S):
            yield new_wakes(tk.store, Host(tk.store, ANY_HOST).label_of), tk.store


async def take(receiver: Receiver, limit: int = 9) -> list[Taken]:
    return list(await receiver.take(limit, (), admit_all))


async def take_some(receiver: Receiver) -> list[Taken]:
    """Look until there is something."""
    while not (taken := await take(receiver)):
        await receiver.keep_up()
    return taken


@pytest.mark.parametrize("engine", ENGINES)
async def test_many_wakes_of_a_session_are_taken_at_once(tmp_path: Path, engine: str) -> None:
    url = store_url(engine, tmp_path)
    async with process(url) as (server, _), process(url) as (worker, _), worker.receiver(ANY_HOST, LONG_S) as receiver:
        for _ in range(3):
            await server.post("ses_1")
        await server.post("ses_2")
        taken = await take(receiver)
        assert sorted((one.session_id, one.resume) for one in taken) == [("ses_1", False), ("ses_2", False)]
        assert set(await server.waiting()) == {"ses_1", "ses_2"}
        for one in taken:
            await receiver.done(one)
        assert await server.waiting() == {}
        assert await take(receiver) == []


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_wake_that_comes_during_a_run_is_taken_after_it(tmp_path: Path, engine: str) -> None:
    async with process(store_url(engine, tmp_path)) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
        await wakes.post("ses_1")
        [first] = await take(receiver)
        await wakes.post("ses_1")
        await receiver.done(first)
        assert (await wakes.waiting())["ses_1"].wakes == 1
        [second] = await take(receiver)
        assert second.marks != first.marks
        await receiver.done(second)
        assert await wakes.waiting() == {}


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_wake_with_a_further_turn_is_not_lost_in_one_without(tmp_path: Path, engine: str) -> None:
    async with process(store_url(engine, tmp_path)) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
        await wakes.post("ses_1")
        await wakes.post("ses_1", resume=True)
        assert (await wakes.waiting("ses_1"))["ses_1"].resume
        resumed = []
        while taken := await take(receiver):
            [one] = taken
            resumed.append(one.resume)
            await receiver.done(one)
        assert resumed[-1] is True


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_bounded_number_is_taken_in_the_order_of_asking(tmp_path: Path, engine: str) -> None:
    async with process(store_url(engine, tmp_path)) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
        for number in range(4):
            await wakes.post(f"ses_{number}")
        assert [one.session_id for one in await take(receiver, 2)] == ["ses_0", "ses_1"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_was_not_taken_can_be_withdrawn(tmp_path: Path, engine: str) -> None:
    async with process(store_url(engine, tmp_path)) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
        await wakes.post("ses_1")
        await wakes.post("ses_2")
        await wakes.withdraw("ses_1")
        assert [one.session_id for one in await take(receiver)] == ["ses_2"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_worker_hears_of_a_wake(tmp_path: Path, engine: str) -> None:
    url = store_url(engine, tmp_path)
    async with process(url) as (server, _), process(url) as (worker, _), worker.receiver(ANY_HOST, LONG_S) as receiver:
        await take(receiver)
        await server.post("ses_1")
        await receiver.changed()
        assert [one.session_id for one in await take(receiver)] == ["ses_1"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_wake_of_a_silent_worker_is_taken_by_another_and_its_late_end_removes_nothing(
    tmp_path: Path, engine: str
) -> None:
    url = store_url(engine, tmp_path)
    async with AsyncExitStack() as stack:
        silent, _ = await stack.enter_async_context(process(url))
        paused = await stack.enter_async_context(silent.receiver(ANY_HOST, LONG_S))
        wakes, _ = await stack.enter_async_context(process(url))
        receiver = await stack.enter_async_context(wakes.receiver(ANY_HOST, 0))
        await wakes.post("ses_1")
        [left] = await take(paused)
        [again] = await take_some(receiver)
        assert again.session_id == "ses_1"
        await wakes.post("ses_1")
        await paused.done(left)
        assert "ses_1" in await wakes.waiting()
        await receiver.done(again)
        [last] = await take(receiver)
        await receiver.done(last)
        assert await wakes.waiting() == {}


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_wakes_of_a_session_that_was_taken_over_are_free_at_once(tmp_path: Path, engine: str) -> None:
    url = store_url(engine, tmp_path)
    async with process(url) as (dead, _), dead.receiver(ANY_HOST, LONG_S) as gone, process(url) as (wakes, _):
        await wakes.post("ses_1")
        await take(gone)
        async with wakes.receiver(ANY_HOST, LONG_S) as receiver:
            await wakes.owner_died(["ses_1"])
            assert [one.session_id for one in await take(receiver)] == ["ses_1"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_what_a_worker_that_leaves_has_not_finished_is_taken_by_another(tmp_path: Path, engine: str) -> None:
    async with process(store_url(engine, tmp_path)) as (wakes, _):
        await wakes.post("ses_1")
        async with wakes.receiver(ANY_HOST, LONG_S) as leaving:
            await take(leaving)
        async with wakes.receiver(ANY_HOST, LONG_S) as receiver:
            assert [one.session_id for one in await take(receiver)] == ["ses_1"]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_session_that_may_not_be_run_here_stays_for_others(tmp_path: Path, engine: str) -> None:
    url = store_url(engine, tmp_path)

    async def only_second(session_id: str) -> bool:
        return session_id == "ses_2"

    async with process(url) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
        await wakes.post("ses_1")
        await wakes.post("ses_2")
        assert [one.session_id for one in await receiver.take(1, (), only_second)] == ["ses_2"]
        async with wakes.receiver(ANY_HOST, LONG_S) as other:
            while not (taken := await other.take(9, {"ses_2"}, admit_all)):
                await other.changed()
            assert [one.session_id for one in taken] == ["ses_1"]


async def test_of_several_workers_one_takes_a_job() -> None:
    async with AsyncExitStack() as stack:
        url = store_url("postgres", Path())
        processes = [(await stack.enter_async_context(process(url)))[0] for _ in range(3)]
        receivers = [await stack.enter_async_context(one.receiver(ANY_HOST, LONG_S)) for one in processes]
        for number in range(20):
            await processes[0].post(f"ses_{number:02}")
        taken: list[str] = []

        async def work(receiver: Receiver) -> None:
            while found := await take(receiver, 3):
                taken.extend(one.session_id for one in found)
                for one in found:
                    await receiver.done(one)

        async with anyio.create_task_group() as group:
            for receiver in receivers:
                group.start_soon(work, receiver)
        assert sorted(taken) == [f"ses_{number:02}" for number in range(20)]


async def test_a_job_is_heard_of_by_the_workers_on_its_queue() -> None:
    url = store_url("postgres", Path())
    async with process(url) as (wakes, _), process(url) as (_, store):
        assert isinstance(store.engine, WithJobs)
        send, heard = anyio.create_memory_object_stream[None](99)
        async with store.engine.job_queue.worker(["any"], silence_s=LONG_S, heard=lambda: send.send_nowait(None)):
            await heard.receive()  # It listens.
            await wakes.post("ses_1")
            await heard.receive()
        send.close()
        heard.close()


async def test_a_job_that_was_taken_and_given_up_comes_back() -> None:
    async with process(store_url("postgres", Path())) as (wakes, store):
        assert isinstance(store.engine, WithJobs)
        await wakes.post("ses_1")
        async with store.engine.job_queue.worker(["any"], silence_s=LONG_S, heard=lambda: None) as worker:
            first = await worker.take()
            assert first is not None
            await worker.keep_up()
            assert await worker.take() is None
            worker.drop(first)  # As if the answer of the database, or the end of the run, was lost.
            await worker.keep_up()
            second = await worker.take()
            assert second is not None
            assert (second.lock, second.at) == ("ses_1", first.at)
            assert second.id != first.id


KILLED = """
import sys, anyio
from turnkeeper.app import look
from turnkeeper.core.labels import ANY_HOST
from turnkeeper.run.job_wakes import JobWakes

async def main():
    async with look(sys.argv[1]) as tk:
        async def label(session_id): return None
        async def admits(session_id): return True
        wakes = JobWakes(tk.store.engine.job_queue, tk.store.mint, label)
        async with wakes.receiver(ANY_HOST, 1) as receiver:
            await receiver.take(1, (), admits)
            print("taken", flush=True)
            await anyio.sleep_forever()

anyio.run(main)
"""


async def test_the_wake_of_a_killed_process_is_marked_as_failed_and_asked_for_again() -> None:
    url = store_url("postgres", Path())
    async with process(url) as (wakes, store), wakes.receiver(ANY_HOST, 0.5) as receiver:
        await wakes.post("ses_1")
        with subprocess.Popen([sys.executable, "-c", KILLED, url], stdout=subprocess.PIPE, text=True) as killed:
            assert killed.stdout is not None
            assert (await anyio.to_thread.run_sync(killed.stdout.readline)).strip() == "taken"
            killed.send_signal(signal.SIGKILL)
        [again] = await take_some(receiver)
        assert again.session_id == "ses_1"
        assert isinstance(store.engine, WithJobs)
        [job] = await store.engine.job_queue.jobs()
        assert (job.lock, job.is_taken) == ("ses_1", True)


async def test_processes_that_first_ask_at_the_same_time_make_the_tables_once() -> None:
    url = store_url("postgres", Path())
    async with AsyncExitStack() as stack:
        processes = [(await stack.enter_async_context(process(url)))[0] for _ in range(5)]
        async with anyio.create_task_group() as group:
            for number, wakes in enumerate(processes):
                group.start_soon(wakes.post, f"ses_{number}")
        assert set(await processes[0].waiting()) == {f"ses_{number}" for number in range(5)}


async def test_a_restart_of_the_database_loses_no_wake() -> None:
    with own_cluster() as cluster:
        url = cluster.url()
        async with process(url) as (wakes, _), wakes.receiver(ANY_HOST, LONG_S) as receiver:
            await wakes.post("ses_1")
            [taken] = await take(receiver)
            await wakes.post("ses_1")
            await anyio.to_thread.run_sync(cluster.stop)
            await anyio.to_thread.run_sync(cluster.start)
            await receiver.done(taken)
            await wakes.post("ses_2")
            [first, second] = await take(receiver)
            assert (first.session_id, second.session_id) == ("ses_1", "ses_2")
            await receiver.keep_up()
            await receiver.done(first)
            await receiver.done(second)
            assert await wakes.waiting() == {}


LAZY = """
import sys, anyio
from turnkeeper.app import look

async def main():
    async with look(sys.argv[1]) as tk:
        assert (await tk.cluster()).queue.sessions == 0
        await tk.list()

anyio.run(main)
assert "psycopg" in sys.modules
print(sorted(name for name in sys.modules if name.startswith(("procrastinate", "psycopg_pool"))))
"""


async def test_a_command_that_asks_for_no_run_does_not_import_procrastinate() -> None:
    url = store_url("postgres", Path())
    done = await anyio.run_process([sys.executable, "-c", LAZY, url])
    assert done.stdout.decode().strip() == "[]"


@pytest.mark.parametrize(
    ("host", "label", "runs"),
    [
        (ANY_HOST, None, True),
        (ANY_HOST, "gpu", False),
        (declared(["gpu"], only=False), None, True),
        (declared(["gpu"], only=False), "gpu", True),
        (declared(["gpu"], only=False), "eu", False),
        (declared(["gpu", "eu"], only=True), "eu", True),
        (declared(["gpu", "eu"], only=True), None, False),
    ],
)
@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_wake_is_taken_by_hosts_with_its_label(
    tmp_path: Path, engine: str, host: HostLabels, label: str | None, runs: bool
) -> None:
    async with look(store_url(engine, tmp_path)) as tk:
        session = await tk.create(directory=tmp_path, label=label)
        here = Host(tk.store, host)
        wakes = new_wakes(tk.store, here.label_of)
        assert isinstance(wakes, JobWakes if engine == "postgres" else StoredWakes)
        await wakes.post(session.id)
        jobs = tk.store.engine.job_queue.jobs if isinstance(tk.store.engine, WithJobs) else None
        posted = await jobs() if jobs else ()
        async with wakes.receiver(host, LONG_S) as receiver:
            assert bool(await receiver.take(9, (), here.admits)) is runs
            assert runs or not jobs or await jobs() == posted, "another host's job was taken and put back"
        assert set(await wakes.waiting()) == {session.id}


@pytest.mark.parametrize("engine", ["sqlite", "postgres"])
async def test_a_wake_follows_a_session_that_is_given_another_label(tmp_path: Path, engine: str) -> None:
    async with look(store_url(engine, tmp_path)) as tk:
        session = await tk.create(directory=tmp_path, label="gpu")
        here = Host(tk.store, declared(["eu"], only=True))
        wakes = new_wakes(tk.store, here.label_of)
        await wakes.post(session.id)
        await tk.move(session.id, label="eu")
        async with wakes.receiver(here.labels, LONG_S) as receiver:
            await receiver.keep_up()
            assert [one.session_id for one in await receiver.take(9, (), here.admits)] == [session.id]

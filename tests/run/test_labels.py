"""Labels bind sessions to hosts: others neither run nor take them over, and say why they wait."""

from pathlib import Path

import anyio
import pytest
from confined import unprivileged
from left_behind import STEP, left_behind
from stores import store_url

from turnkeeper.core.labels import declared
from turnkeeper.core.lease import terms_of
from turnkeeper.mint import Mint
from turnkeeper.model.cluster import WaitReport
from turnkeeper.model.refusal import Elsewhere, Invalid
from turnkeeper.model.status import IDLE
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server.v2.prompting import PromptBody, PromptGiven
from turnkeeper.server.v2.prompting import prompt as admit_v2
from turnkeeper.store.job_queue import WithJobs
from turnkeeper.testing.harness import StageOptions, stage

GPU = declared(["gpu"], only=False)
ENGINES = ["sqlite", "postgres"]
PATIENCE_S = 120


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_session_with_a_label_is_run_by_the_worker_that_has_it(tmp_path: Path, engine: str) -> None:
    url, place = store_url(engine, tmp_path), tmp_path / "place"
    plain, labelled = Scripted().says("anywhere"), Scripted().says("on the GPU")
    only = StageOptions(labels=declared(["gpu"], only=True))
    async with (
        stage(url, place, Scripted(), StageOptions(runs=False)) as server,
        stage(url, place, plain, mint=Mint.fixed(seed=2)) as one,
        stage(url, place, labelled, only, mint=Mint.fixed(seed=3)) as other,
    ):
        for worker in (one, other):
            worker.tk.runtime.group.start_soon(worker.tk.runtime.worker(2).work)
        with anyio.fail_after(PATIENCE_S):
            bound, free = await server.session(label="gpu"), await server.session()
            assert (await server.ask(bound, "go")).kind == "rested"
            assert (await server.ask(free, "go")).kind == "rested"
    assert (len(plain.requests), len(labelled.requests)) == (1, 1)


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_server_that_runs_sessions_hands_those_of_another_label_to_a_worker(
    tmp_path: Path, engine: str
) -> None:
    url, place = store_url(engine, tmp_path), tmp_path / "place"
    own, labelled = Scripted().says("here"), Scripted().says("on the GPU")
    async with (
        stage(url, place, own, StageOptions(delegates=True)) as server,
        stage(url, place, labelled, StageOptions(labels=GPU), mint=Mint.fixed(seed=2)) as worker,
    ):
        worker.tk.runtime.group.start_soon(worker.tk.runtime.worker(2).work)
        with anyio.fail_after(PATIENCE_S):
            bound, free = await server.session(label="gpu"), await server.session()
            assert (await server.ask(bound, "go")).kind == "rested"
            assert (await server.ask(free, "go")).kind == "rested"
        assert [message.error for message, _ in await server.turns(bound)] == [None]
    assert (len(own.requests), len(labelled.requests)) == (1, 1)


async def test_a_process_without_the_label_is_refused(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as here:
        session = await here.session(label="gpu")
        await here.say(session, "go", resume=False)
        outcome = await here.tk.run(session)
        assert (outcome.kind, outcome.is_elsewhere) == ("refused", True)
        assert "is run by hosts with label 'gpu', and this is none" in outcome.reason
        assert await here.tk.status(session) == IDLE


async def test_a_process_that_cannot_run_a_session_refuses_its_prompts_before_they_are_admitted(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as here:
        session = await here.session(label="gpu")
        said = f"`turnkeeper worker --label gpu`.*`run --server URL`.*`turnkeeper session move {session} --no-label`"
        for send in (
            lambda: here.tk.prompt(session, "go"),
            lambda: here.tk.ask("go", session=session),
            lambda: here.tk.ask("go", session=session, id="once"),
            lambda: here.tk.command(session, "init"),
            lambda: admit_v2(here.tk, session, PromptBody(prompt=PromptGiven(text="go"))),
        ):
            with pytest.raises(Elsewhere, match=said):
                await send()
        assert (await here.tk.store.journal.view(session)).inbox == ()
        await here.tk.prompt(session, "go", resume=False)
        assert len((await here.tk.store.journal.view(session)).inbox) == 1


async def test_a_host_for_labels_only_refuses_prompts_of_sessions_without_one(tmp_path: Path) -> None:
    only = StageOptions(labels=declared(["gpu"], only=True))
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted(), only) as here:
        session = await here.session()
        with pytest.raises(Elsewhere, match=f"`turnkeeper worker`.*`turnkeeper session move {session} --label gpu`"):
            await here.tk.prompt(session, "go")
        assert (await here.tk.store.journal.view(session)).inbox == ()


async def test_a_session_that_another_process_runs_takes_prompts_of_hosts_without_its_label(tmp_path: Path) -> None:
    url, place = f"sqlite:{tmp_path}/store", tmp_path / "place"
    async with (
        stage(url, place, Scripted()) as plain,
        stage(url, place, Scripted(), StageOptions(labels=GPU), mint=Mint.fixed(seed=2)) as labelled,
    ):
        session = await plain.session(label="gpu")
        writer = await labelled.tk.runtime.lease_keeper.take(session)
        await plain.tk.prompt(session, "and this")
        assert len((await plain.tk.store.journal.view(session)).inbox) == 1
        await writer.release()


async def test_what_a_dead_host_left_is_taken_over_by_hosts_with_its_label(tmp_path: Path) -> None:
    url, place = f"sqlite:{tmp_path}/store", tmp_path / "place"
    answer = Scripted().says("Here I am.")
    async with (
        stage(url, place, Scripted()) as plain,
        stage(url, place, answer, StageOptions(labels=GPU), mint=Mint.fixed(seed=2)) as labelled,
    ):
        session = await left_behind(plain, STEP)
        await plain.tk.move(session, label="gpu")
        assert await plain.tk.runtime.failover.recover() == []
        assert await labelled.tk.runtime.failover.recover() == [session]
        assert len(answer.requests) == 1


async def test_what_a_dead_host_left_is_not_taken_over_where_its_directory_is_missing(tmp_path: Path) -> None:
    url, place = f"sqlite:{tmp_path}/store", tmp_path / "place"
    async with stage(url, place, Scripted().says("Here."), StageOptions(needs_directory=True)) as here:
        session = await left_behind(here, STEP)
        await here.tk.move(session, "/on/another/machine", label="gpu")
        await here.tk.move(session, label="")
        assert await here.tk.runtime.failover.recover() == []
        await here.tk.move(session, place)
        assert await here.tk.runtime.failover.recover() == [session]


def test_what_a_dead_host_left_is_not_taken_over_where_its_directory_may_not_be_entered(tmp_path: Path) -> None:
    url, place = f"sqlite:{tmp_path}/store", tmp_path / "above/place"
    place.mkdir(parents=True)

    async def recover() -> None:
        async with stage(url, tmp_path / "here", Scripted().says("Here."), StageOptions(needs_directory=True)) as here:
            session = await left_behind(here, STEP)
            await here.tk.move(session, place)
            place.parent.chmod(0)
            assert await here.tk.runtime.failover.recover() == []
            place.parent.chmod(0o700)
            assert await here.tk.runtime.failover.recover() == [session]

    unprivileged(lambda: anyio.run(recover))


async def test_a_take_over_frees_the_wake_that_the_dead_host_had_taken(tmp_path: Path) -> None:
    async with stage(store_url("postgres", tmp_path), tmp_path / "place", Scripted().says("Here.")) as here:
        session, engine = await left_behind(here, STEP), here.tk.store.engine
        assert isinstance(engine, WithJobs)
        await here.tk.runtime.wakes.post(session)
        async with engine.job_queue.worker(["any"], silence_s=3600, heard=lambda: None) as dead:
            assert await dead.take() is not None
            assert await here.tk.runtime.failover.recover() == [session]
            assert [(job.lock, job.is_taken) for job in await engine.job_queue.jobs()] == [(session, False)]


@pytest.mark.parametrize("engine", ENGINES)
async def test_a_session_whose_directory_is_missing_waits_and_the_report_says_so(tmp_path: Path, engine: str) -> None:
    url, place, work = store_url(engine, tmp_path), tmp_path / "place", tmp_path / "work"
    work.mkdir()
    script, careful = Scripted().says("done"), StageOptions(needs_directory=True, lease=terms_of(1))
    async with (
        stage(url, place, Scripted(), StageOptions(runs=False)) as server,
        stage(url, place, script, careful, mint=Mint.fixed(seed=2)) as worker,
    ):
        session = await server.session(directory=work)
        work.rmdir()
        await server.say(session, "go")
        worker.tk.runtime.group.start_soon(worker.tk.runtime.worker(2).work)
        with anyio.fail_after(PATIENCE_S):
            reason = f"no directory {work} on {worker.tk.runtime.owner.host}"
            while [one.reason for one in (await server.tk.cluster()).queue.waiting] != [reason]:
                await anyio.sleep(0)
            assert script.requests == []
            work.mkdir()
            await server.tk.wait(session)
        assert len(script.requests) == 1


@pytest.mark.parametrize("engine", ENGINES)
async def test_the_report_says_why_a_session_waits(tmp_path: Path, engine: str) -> None:
    url, place = store_url(engine, tmp_path), tmp_path / "place"
    async with (
        stage(url, place, Scripted(), StageOptions(runs=False)) as server,
        stage(url, place, Scripted(), StageOptions(labels=declared(["eu"], only=True)), mint=Mint.fixed(seed=2)) as eu,
    ):
        bound, free = await server.session(label="gpu"), await server.session()
        for session in (bound, free):
            await server.say(session, "go")
        queue = (await server.tk.cluster()).queue
        assert (queue.sessions, [one.reason for one in queue.waiting]) == (2, ["no worker", "no worker"])
        eu.tk.runtime.worker(1)
        with anyio.fail_after(PATIENCE_S):
            while not any(one.role == "worker" for one in (await server.tk.cluster()).hosts):
                await anyio.sleep(0)
        report = await server.tk.cluster()
        assert [(one.labels, one.only_labels) for one in report.hosts if one.role == "worker"] == [(("eu",), True)]
        reasons = {one.session_id: one.but(wait_ms=0) for one in report.queue.waiting}
        assert reasons == {
            bound: WaitReport(session_id=bound, label="gpu", wait_ms=0, reason="no host with label gpu"),
            free: WaitReport(session_id=free, wait_ms=0, reason="no host for sessions without a label"),
        }


async def test_a_label_is_set_at_the_start_kept_by_children_and_forks_and_changed_by_a_move(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as here:
        session = (await here.tk.create(metadata={"label": "gpu"})).id
        assert (await here.tk.get(session)).label == "gpu"
        assert (await here.tk.create(parent_id=session)).label == "gpu"
        assert (await here.tk.fork(session)).label == "gpu"
        assert (await here.tk.move(session, tmp_path)).label == "gpu"
        assert (await here.tk.move(session, label="")).label is None
        moved = await here.tk.move(session, "/on/another/machine", label="eu-1")
        assert (moved.directory, moved.label) == ("/on/another/machine", "eu-1")
        for label in ("", "two words", "x" * 33, "a/b"):
            with pytest.raises(Invalid, match="cannot be a label"):
                await here.tk.create(label=label)
        with pytest.raises(Invalid, match="`move`"):
            await here.tk.update(session, lambda one: one.but(label="gpu"))
        with pytest.raises(Invalid, match="`turnkeeper session move"):
            await here.tk.update(session, lambda one: one.but(metadata={"label": "gpu"}))
        assert await here.is_sound(session)


async def test_a_move_changes_the_label_that_metadata_says(tmp_path: Path) -> None:
    async with stage(f"sqlite:{tmp_path}/store", tmp_path / "place", Scripted()) as here:
        session = (await here.tk.create(metadata={"label": "gpu", "more": 1})).id
        assert (await here.tk.move(session, label="eu")).metadata == {"label": "eu", "more": 1}
        counted = await here.tk.update(session, lambda one: one.but(metadata={**(one.metadata or {}), "more": 2}))
        assert (counted.label, counted.metadata) == ("eu", {"label": "eu", "more": 2})
        assert (await here.tk.move(session, label="")).metadata == {"more": 2}
        assert (await here.tk.move(session, label="eu")).metadata == {"more": 2}

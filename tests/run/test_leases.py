"""Leases: sessions of silent hosts are taken over, and a host that cannot renew its lease stops its runs."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import anyio
import msgspec
import pytest
from left_behind import STEP, left_behind
from paced import Paced

from turnkeeper.core.lease import Terms
from turnkeeper.core.limits import STOP_POLL_S
from turnkeeper.mint import Mint
from turnkeeper.model import event as e
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.heartbeat import Heartbeat
from turnkeeper.model.status import BUSY, IDLE, Owner
from turnkeeper.model.value import encode
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.leases import read_heartbeat, runtime_name
from turnkeeper.store import keys
from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, Key, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.testing.builders import a_turn
from turnkeeper.testing.harness import Play, Stage, StageOptions, stage

TERMS = Terms(beat_s=2, lease_s=10, margin_s=3)
ELSEWHERE = Owner(host="elsewhere", pid=1, started="1", machine="other", boot="other", lease_s=10)
PATIENCE_S = 120


async def left_by(stage: Stage, owner: Owner) -> str:
    """A session that another host runs: it has begun a turn and said a word."""
    session = await stage.session(id="ses_left", metadata={"recovery": "continue"})
    [admitted, promoted, _, started, *parts] = a_turn(session, 1)[:7]
    store = stage.tk.store
    fence = await store.engine.fence(session) + 1
    busy = e.StatusChanged(status=BUSY, owner=owner)
    await store.journal.append(session, admitted, promoted, busy, started, *parts, fence=fence)
    return session


async def beat(stage: Stage, number: int) -> None:
    """Another host's heartbeat."""
    body = encode(Heartbeat(owner=ELSEWHERE, beat=number, at=0))
    await stage.tk.store.engine.put({keys.heartbeat(runtime_name(ELSEWHERE)): body})


async def test_a_session_of_a_silent_host_is_taken_over_after_its_lease_and_not_before(play: Play) -> None:
    time = Paced()
    async with play(Scripted().says("I go on."), lease=TERMS, pace=time.pace) as stage:
        session = await left_by(stage, ELSEWHERE)
        assert (await stage.tk.run(session)).is_busy
        time.advance(9)
        assert (await stage.tk.run(session)).is_busy
        time.advance(1)
        assert (await stage.tk.run(session, resume=True)).kind == "rested"
        (lost, _), (answer, _) = await stage.turns(session)
        assert isinstance(lost.error, AbortedFailure)
        assert answer.error is None
        assert await stage.is_sound(session)


async def test_heartbeats_and_events_keep_a_session_from_being_taken(play: Play) -> None:
    time = Paced()
    async with play(Scripted(), lease=TERMS, pace=time.pace) as stage:
        session = await left_by(stage, ELSEWHERE)
        assert (await stage.tk.run(session)).is_busy
        time.advance(9)
        await beat(stage, 1)
        assert (await stage.tk.run(session)).is_busy
        time.advance(9)
        assert (await stage.tk.run(session)).is_busy
        await stage.tk.store.journal.append(session, e.InstructionDiscovered(path="AGENTS.md"))
        assert (await stage.tk.run(session)).is_busy
        time.advance(9)
        assert (await stage.tk.run(session)).is_busy


async def test_an_owner_of_a_version_without_leases_is_never_taken_for_silent(play: Play) -> None:
    time = Paced()
    async with play(Scripted(), lease=TERMS, pace=time.pace) as stage:
        session = await left_by(stage, ELSEWHERE.but(lease_s=0))
        assert (await stage.tk.run(session)).is_busy
        time.advance(1_000_000)
        assert (await stage.tk.run(session)).is_busy


async def test_whoever_watches_takes_silent_sessions_over_by_itself(play: Play) -> None:
    time = Paced()
    async with play(Scripted().says("I go on."), lease=TERMS, pace=time.pace) as stage:
        session = await left_by(stage, ELSEWHERE)
        stage.tk.runtime.group.start_soon(stage.tk.runtime.failover.watch)
        with anyio.fail_after(PATIENCE_S):
            while (await stage.tk.store.queries.state(session)).owner == ELSEWHERE:
                await time.asleep(2)
                time.advance(2)
            await stage.tk.wait(session)
        assert [message.error is None for message, _ in await stage.turns(session)] == [False, True]


@pytest.mark.parametrize("is_same", [True, False], ids=["by who takes it over", "by another"])
async def test_a_session_that_goes_on_elsewhere_while_its_owner_is_asked_to_stop_it_is_stopped_there(
    tmp_path: Path, is_same: bool
) -> None:
    url, place, time, gate = f"sqlite:{tmp_path}/store", tmp_path / "place", Paced(), Gate()
    options = StageOptions(lease=TERMS, pace=time.pace)
    async with (
        stage(url, place, Scripted().says("I go ").waits(gate), options) as taker,
        stage(url, place, Scripted(), mint=Mint.fixed(seed=2)) as other,
    ):
        session = await left_by(taker, ELSEWHERE)
        taker.tk.runtime.group.start_soon(taker.tk.runtime.failover.watch)
        asker, stopped = taker if is_same else other, list[bool]()

        async def stop() -> None:
            stopped.append(await asker.tk.stop(session))
            assert taker.tk.running == frozenset()

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                while not await other.tk.store.engine.scan(("stop",)):
                    await anyio.sleep(0)
                while (await other.tk.store.queries.state(session)).owner == ELSEWHERE:
                    await time.asleep(2)
                    time.advance(2)
                while not stopped:
                    if await other.tk.store.engine.scan(("stop",)):
                        time.advance(STOP_POLL_S)
                    await anyio.sleep(0)
        assert stopped == [True]
        assert await other.tk.status(session) == IDLE
        assert all(isinstance(message.error, AbortedFailure) for message, _ in await other.turns(session))
        assert await other.tk.store.engine.scan(("stop",)) == []
        assert await other.is_sound(session)


class Away(MemoryEngine):
    """A store that takes no events for a while, as if its server were restarted."""

    is_away = False

    def __init__(self) -> None:
        super().__init__()
        self.refused = anyio.Event()

    async def append(
        self,
        log: str,
        after: int,
        entries: Sequence[bytes],
        documents: Mapping[Key, bytes | None] = NO_DOCUMENTS,
        *,
        texts: Mapping[Key, str | None] = NO_TEXTS,
        fence: int | None = None,
        last: bytes | None = None,
    ) -> None:
        if self.is_away:
            self.refused.set()
            raise StoreUnavailable("the server is restarted")
        await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last)


async def test_a_session_that_was_taken_over_waits_for_a_store_that_is_away(tmp_path: Path) -> None:
    time, engine = Paced(), Away()
    options = StageOptions(lease=TERMS, pace=time.pace)
    async with stage(engine, tmp_path / "place", Scripted().says("Here I am."), options) as opened:
        session = await left_behind(opened, STEP)
        left = await opened.tk.runtime.failover.take_over()
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                engine.is_away = True
                group.start_soon(opened.tk.runtime.failover.resume_in_background, left)
                await engine.refused.wait()
                await anyio.wait_all_tasks_blocked()
                engine.is_away = False
                time.advance(TERMS.beat_s)
        [(message, _)] = await opened.turns(session)
        assert message.error is None
        assert await opened.is_sound(session)


class Unsure(MemoryEngine):
    """A store that stops taking documents, as if the network were cut."""

    is_cut = False

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        if self.is_cut:
            raise StoreUnavailable("the network is cut")
        await super().put(documents)


async def test_a_host_that_cannot_renew_its_lease_stops_its_runs_before_the_lease_ends(tmp_path: Path) -> None:
    time, gate, engine = Paced(), Gate(), Unsure()
    options = StageOptions(lease=TERMS, pace=time.pace)
    script = Scripted().says("Half a ").waits(gate).says("sentence.")
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session()
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        passed = 0.0
        with anyio.fail_after(PATIENCE_S):
            while opened.tk.runtime.active:
                await time.asleep(0.5)
                time.advance(0.5)
                passed += 0.5
                await anyio.wait_all_tasks_blocked()
        assert passed == TERMS.lease_s - TERMS.margin_s
        [(message, _)] = await opened.turns(session)
        assert isinstance(message.error, AbortedFailure)


async def test_a_host_that_was_paused_goes_on_if_nobody_took_its_session(play: Play) -> None:
    time, gate = Paced(), Gate()
    async with play(Scripted().says("A whole ").waits(gate).says("sentence."), lease=TERMS, pace=time.pace) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        before = len(await stage.events(session))
        await time.asleep(2)
        time.advance(100)
        with anyio.fail_after(PATIENCE_S):
            await time.asleep(2)
        assert len(await stage.events(session)) == before + 1  # It has asked the store.
        assert stage.tk.runtime.active == {session}
        gate.open()
        assert (await stage.tk.wait(session)).reason == "answered"


async def test_a_host_that_was_paused_stops_at_once_if_another_one_took_its_session(play: Play) -> None:
    time, gate = Paced(), Gate()
    async with play(Scripted().says("Half a ").waits(gate), lease=TERMS, pace=time.pace) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        store = stage.tk.store
        fence = await store.engine.fence(session) + 1
        await store.journal.append(session, e.StatusChanged(status=BUSY, owner=ELSEWHERE), fence=fence)
        written = len(await stage.events(session))
        await time.asleep(2)
        time.advance(100)
        with anyio.fail_after(PATIENCE_S):
            assert (await stage.tk.runtime.wait(session)).kind in ("refused", "interrupted")
        assert len(await stage.events(session)) == written


async def test_a_server_that_beats_only_while_it_runs_sessions_says_what_it_is(play: Play) -> None:
    time, gate = Paced(), Gate()
    async with play(Scripted().waits(gate).says("Done."), lease=TERMS, pace=time.pace) as stage:
        engine = stage.tk.store.engine
        stage.tk.runtime.lease_keeper.announce("server", always=False)
        await anyio.wait_all_tasks_blocked()
        assert await engine.scan(("heartbeat",)) == []
        await stage.say(await stage.session(), "go")
        with anyio.fail_after(PATIENCE_S):
            await gate.wait_reached()
            while not (found := await engine.scan(("heartbeat",))):
                await time.asleep(2)
                time.advance(2)
        assert read_heartbeat(found[0][1]).role == "server"
        gate.open()


async def test_a_host_whose_session_was_taken_while_it_was_stopped_says_so_in_plain_words(play: Play) -> None:
    gate = Gate()
    async with play(Scripted().waits(gate).says("Too late."), lease=TERMS, pace=Paced().pace) as stage:
        session = await stage.session()
        await stage.say(session, "go")
        await gate.wait_reached()
        store = stage.tk.store
        fence = await store.engine.fence(session) + 1
        await store.journal.append(session, e.StatusChanged(status=BUSY, owner=ELSEWHERE), fence=fence)
        gate.open()
        with anyio.fail_after(PATIENCE_S):
            outcome = await stage.tk.runtime.wait(session)
        assert outcome.kind == "refused"
        assert f"another process took {session!r} over while this one was stopped" in outcome.reason


async def test_a_runtime_that_owns_nothing_writes_nothing(play: Play) -> None:
    time = Paced()
    async with play(Scripted().says("Done."), lease=TERMS, pace=time.pace) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        version = await stage.tk.store.engine.version()
        time.advance(1000)
        await anyio.wait_all_tasks_blocked()
        assert await stage.tk.store.engine.version() == version
        assert await stage.tk.store.engine.scan(("heartbeat",)) == []


async def test_a_long_run_is_kept_by_heartbeats_that_other_runtimes_hear(tmp_path: Path) -> None:
    time, gate, url = Paced(), Gate(), f"sqlite:{tmp_path}/store"
    options = StageOptions(lease=TERMS, pace=time.pace)
    script = Scripted().waits(gate).says("At last.")
    async with (
        stage(url, tmp_path / "place", script, options) as owner,
        stage(url, tmp_path / "place", Scripted(), options, mint=Mint.fixed(seed=2)) as other,
    ):
        session = await owner.session()
        await owner.say(session, "go")
        await gate.wait_reached()
        engine, beats = other.tk.store.engine, 0
        with anyio.fail_after(PATIENCE_S):
            for _ in range(20):  # Four leases.
                assert (await other.tk.run(session)).is_busy
                await time.asleep(TERMS.beat_s)
                time.advance(TERMS.beat_s)
                while (found := await engine.scan(("heartbeat",))) == [] or number(found) == beats:
                    await anyio.sleep(0)
                beats = number(found)
        gate.open()
        assert (await owner.tk.wait(session)).reason == "answered"


def number(found: list[tuple[Key, bytes]]) -> int:
    [(_, body)] = found
    return msgspec.json.decode(body, type=Heartbeat).beat

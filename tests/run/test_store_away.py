"""A prompt that was admitted before the store went away is answered once the store is back."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from children import AGENTS, TOOLS_AND_TASK, BySession, a_task
from left_behind import DEAD
from paced import Paced

from turnkeeper.core.lease import Terms
from turnkeeper.core.limits import RELEASE_RETRY_S
from turnkeeper.model.event import AnswerApplied, Event, PermissionReplied, QuestionReplied
from turnkeeper.model.failure import AbortedFailure, MessageData, UnknownFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.model.question import QuestionReply, QuestionRequest
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.fenced_writer import FencedWriter
from turnkeeper.store.engine import NO_DOCUMENTS, NO_TEXTS, Key, StoreDamaged, StoreFull, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.engines.postgres import PostgresEngine
from turnkeeper.store.engines.postgres.schema import Layout
from turnkeeper.testing.harness import Stage, StageOptions, stage
from turnkeeper.testing.postgres import own_cluster
from turnkeeper.tools import load

PATIENCE_S = 120
TERMS = Terms(beat_s=2, lease_s=10, margin_s=3)
RETRY_MS = round(RELEASE_RETRY_S * 1000)


class Away(MemoryEngine):
    """A store that gives no fence for a while, so that no session can be taken."""

    error: StoreUnavailable | None = None

    async def fence(self, log: str) -> int:
        if self.error is not None:
            raise self.error
        return await super().fence(log)


async def retry(opened: Stage, session: str) -> None:
    """Let the time until the next try pass, and wait for the end of that try."""
    with anyio.fail_after(PATIENCE_S):
        await opened.time.asleep(RELEASE_RETRY_S)
        opened.time.advance(RETRY_MS)
        while session not in opened.tk.running:
            await anyio.sleep(0)
        await opened.tk.runtime.wait(session)


async def texts(opened: Stage, session: str) -> list[str]:
    return [part.text for _, parts in await opened.turns(session) for part in parts if isinstance(part, TextPart)]


async def test_a_prompt_whose_session_could_not_be_taken_is_answered_when_the_database_is_back(tmp_path: Path) -> None:
    with own_cluster() as database:
        engine = await PostgresEngine.open(database.url(), Layout(), reconnect_s=0.1, outcome_s=0.1)
        async with stage(engine, tmp_path / "place", Scripted().says("Here I am.")) as opened:
            session = await opened.session()
            await opened.say(session, "go", resume=False)
            await asyncio.to_thread(database.stop)
            try:
                outcome = await opened.tk.runtime.run(session)
            finally:
                await asyncio.to_thread(database.start)
            assert (outcome.kind, outcome.store) == ("refused", "unavailable")
            await retry(opened, session)
            assert await texts(opened, session) == ["Here I am."]
            assert await opened.is_sound(session)


async def test_a_session_is_tried_until_it_can_be_taken(tmp_path: Path) -> None:
    engine = Away()
    async with stage(engine, tmp_path / "place", Scripted().says("Here I am.")) as opened:
        session = await opened.session()
        engine.error = StoreUnavailable("the server is restarted")
        assert (await opened.ask(session, "go")).store == "unavailable"
        await retry(opened, session)
        assert await texts(opened, session) == []
        engine.error = None
        await retry(opened, session)
        assert await texts(opened, session) == ["Here I am."]


async def test_a_failed_turn_that_is_to_go_on_is_tried_until_it_can_be(tmp_path: Path) -> None:
    engine = Away()
    script = Scripted().fails(400).then().says("Here I am.")
    async with stage(engine, tmp_path / "place", script) as opened:
        session = await opened.session()
        await opened.ask(session, "go")
        engine.error = StoreUnavailable("the server is restarted")
        await opened.tk.run(session, resume=True)
        engine.error = None
        await retry(opened, session)
        assert await texts(opened, session) == ["Here I am."]


async def test_a_session_that_is_stopped_while_the_store_is_away_is_not_tried_again(tmp_path: Path) -> None:
    engine = Away()
    async with stage(engine, tmp_path / "place", Scripted().says("Here I am.")) as opened:
        session = await opened.session()
        engine.error = StoreUnavailable("the server is restarted")
        await opened.ask(session, "go")
        assert await opened.tk.stop(session) is True
        engine.error = None
        opened.time.advance(RETRY_MS)
        await anyio.wait_all_tasks_blocked()
        assert opened.tk.running == frozenset()
        assert len((await opened.tk.store.journal.view(session)).inbox) == 1


async def test_no_session_is_tried_again_after_all_were_stopped(tmp_path: Path) -> None:
    engine = Away()
    async with stage(engine, tmp_path / "place", Scripted().says("Here I am.")) as opened:
        session = await opened.session()
        engine.error = StoreUnavailable("the server is restarted")
        await opened.ask(session, "go")
        engine.error = None
        await opened.tk.stop()
        opened.time.advance(RETRY_MS)
        await anyio.wait_all_tasks_blocked()
        assert opened.tk.running == frozenset()
        assert len((await opened.tk.store.journal.view(session)).inbox) == 1


async def test_a_session_of_a_damaged_store_is_not_tried_again(tmp_path: Path) -> None:
    engine = Away()
    async with stage(engine, tmp_path / "place", Scripted()) as opened:
        session = await opened.session()
        engine.error = StoreDamaged("an index is damaged")
        await opened.ask(session, "go")
        assert opened.time.slept == []


# Outages in the middle of a run.


class Cut(MemoryEngine):
    """A store that takes nothing for a while."""

    is_cut = False

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
        self._check()
        await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last)

    async def put(self, documents: Mapping[Key, bytes | None]) -> None:
        self._check()
        await super().put(documents)

    def _check(self) -> None:
        if self.is_cut:
            raise StoreUnavailable("the network is cut")


async def ended(opened: Stage, session: str) -> None:
    """Wait until the run of a session has ended."""
    with anyio.fail_after(PATIENCE_S):
        while session in opened.tk.running:
            await anyio.sleep(0)


async def stopped_for_want_of_a_heartbeat(opened: Stage, time: Paced) -> None:
    """Let time pass until no session is run any more."""
    with anyio.fail_after(PATIENCE_S):
        while opened.tk.running:
            await time.asleep(0.5)
            time.advance(0.5)
            await anyio.wait_all_tasks_blocked()


def how_turns_ended(turns: Sequence[tuple[AssistantMessage, object]]) -> list[str]:
    return [type(message.error).__name__ for message, _ in turns]


@pytest.mark.parametrize(
    ("policy", "ends"), [("continue", ["UnknownFailure", "NoneType"]), ("rest", ["UnknownFailure"])]
)
async def test_a_run_that_an_outage_of_the_database_stopped_goes_on_by_the_setting_recovery(
    tmp_path: Path, policy: str, ends: list[str]
) -> None:
    gate, script = Gate(), Scripted()
    script.says("Half a ").waits(gate).says("sentence.").then().says("whole sentence.")
    with own_cluster() as database:
        engine = await PostgresEngine.open(database.url(), Layout(), reconnect_s=0.1, outcome_s=0.1)
        async with stage(engine, tmp_path / "place", script) as opened:
            session = await opened.session(metadata={"recovery": policy})
            await opened.say(session, "go")
            await gate.wait_reached()
            await asyncio.to_thread(database.stop)
            try:
                gate.open()
                await ended(opened, session)
            finally:
                await asyncio.to_thread(database.start)
            await retry(opened, session)
            assert how_turns_ended(await opened.turns(session)) == ends
            assert (await texts(opened, session))[0].startswith("Half a ")
            assert len(script.requests) == len(ends)
            assert await opened.is_sound(session)


@pytest.mark.parametrize(
    ("policy", "ends"), [("continue", ["AbortedFailure", "NoneType"]), ("rest", ["AbortedFailure"])]
)
async def test_a_run_whose_lease_could_not_be_renewed_goes_on_by_the_setting_recovery(
    tmp_path: Path, policy: str, ends: list[str]
) -> None:
    time, gate, engine = Paced(), Gate(), Cut()
    options = StageOptions(lease=TERMS, pace=time.pace)
    script = Scripted().says("Half a ").waits(gate).says("sentence.").then().says("A whole one.")
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session(metadata={"recovery": policy})
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        await stopped_for_want_of_a_heartbeat(opened, time)
        engine.is_cut = False
        await retry(opened, session)
        assert how_turns_ended(await opened.turns(session)) == ends
        assert await opened.is_sound(session)


async def test_the_end_of_a_turn_that_an_outage_stopped_does_not_look_like_a_stop_of_the_user(tmp_path: Path) -> None:
    time, gate, engine = Paced(), Gate(), Cut()
    script = Scripted().says("Half a ").waits(gate).says("sentence.")
    async with stage(engine, tmp_path / "place", script, StageOptions(lease=TERMS, pace=time.pace)) as opened:
        session = await opened.session(metadata={"recovery": "rest"})
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        await stopped_for_want_of_a_heartbeat(opened, time)
        engine.is_cut = False
        await retry(opened, session)
        [(message, _)] = await opened.turns(session)
        assert message.error == AbortedFailure(
            data=MessageData(message="the turn was stopped because the store could not be written")
        )


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("compaction", lambda opened, session: opened.tk.compact(session, force=True)),
        ("command", lambda opened, session: opened.tk.shell(session, "sleep 1000")),
    ],
)
async def test_work_that_an_outage_stopped_does_not_look_like_a_stop_of_the_user(
    tmp_path: Path, name: str, work: Callable[[Stage, str], Awaitable[object]]
) -> None:
    time, engine = Paced(), Cut()
    script = Scripted().says("Here I am.").then().says("A half ").waits(Gate()).says("summary.")
    async with stage(engine, tmp_path / "place", script, StageOptions(lease=TERMS, pace=time.pace)) as opened:
        session, journal = await opened.session(metadata={"recovery": "rest"}), opened.tk.store.journal
        await opened.ask(session, "go")
        async with anyio.create_task_group() as group:

            async def do() -> None:
                with suppress(StoreUnavailable):
                    await work(opened, session)

            group.start_soon(do)
            with anyio.fail_after(PATIENCE_S):
                while (await journal.view(session)).turn is None:
                    await anyio.sleep(0)
            engine.is_cut = True
            await stopped_for_want_of_a_heartbeat(opened, time)
            engine.is_cut = False
            with anyio.fail_after(PATIENCE_S):
                await opened.time.asleep(RELEASE_RETRY_S)
                opened.time.advance(RETRY_MS)
                while (await journal.view(session)).owner is not None:
                    await anyio.sleep(0)
        (message, _) = (await opened.turns(session))[-1]
        assert message.error == AbortedFailure(
            data=MessageData(message=f"the {name} was stopped because the store could not be written")
        )


async def test_a_turn_that_an_outage_stopped_before_it_said_anything_is_asked_again(tmp_path: Path) -> None:
    time, gate, engine = Paced(), Gate(), Cut()
    options = StageOptions(lease=TERMS, pace=time.pace)
    script = Scripted().waits(gate).says("Lost.").then().says("Here I am.")
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session(metadata={"recovery": "rest"})
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        await stopped_for_want_of_a_heartbeat(opened, time)
        engine.is_cut = False
        await retry(opened, session)
        assert await texts(opened, session) == ["Here I am."]
        assert await opened.is_sound(session)


async def test_a_session_that_another_process_had_during_an_outage_is_run_again(tmp_path: Path) -> None:
    time, gate, engine = Paced(), Gate(), Cut()
    script = Scripted().says("Half a ").waits(gate).says("sentence.").then().says("Here I am.")
    async with stage(engine, tmp_path / "place", script, StageOptions(lease=TERMS, pace=time.pace)) as opened:
        session, store = await opened.session(metadata={"recovery": "continue"}), opened.tk.store
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        await stopped_for_want_of_a_heartbeat(opened, time)
        engine.is_cut = False
        # The other one closed the turn, so what the first one could not write about it fits no more; and died.
        successor = FencedWriter(store, session, DEAD, await store.engine.fence(session) + 1)
        await successor.status(BUSY)
        await successor.close_lost_turn(await successor.view())
        await retry(opened, session)
        assert await opened.tk.status(session) == IDLE
        assert (await texts(opened, session))[-1] == "Here I am."
        assert await opened.is_sound(session)


@pytest.mark.parametrize("is_stopped_early", [True, False], ids=["during the run", "after it"])
async def test_a_session_that_its_user_stopped_during_an_outage_does_not_go_on(
    tmp_path: Path, is_stopped_early: bool
) -> None:
    gate, engine = Gate(), Cut()
    script = Scripted().says("Half a ").waits(gate).says("sentence.").then().says("Never said.")
    async with stage(engine, tmp_path / "place", script) as opened:
        session = await opened.session(metadata={"recovery": "continue"})
        await opened.say(session, "go")
        await gate.wait_reached()
        engine.is_cut = True
        if not is_stopped_early:
            gate.open()
            await ended(opened, session)
            engine.is_cut = False
        with anyio.fail_after(PATIENCE_S):
            assert await opened.tk.stop(session) is True
        engine.is_cut = False
        opened.time.advance(RETRY_MS)
        await anyio.wait_all_tasks_blocked()
        assert len(script.requests) == 1
        assert await opened.tk.status(session) == IDLE
        assert await opened.is_sound(session)


async def test_a_call_that_waits_for_the_user_outlives_an_outage(tmp_path: Path) -> None:
    gate, engine = Gate(), Cut()
    script = Scripted().calls("asks", text="one").waits(gate).says("And more.")
    options = StageOptions(ask=None, config={"permission": {"asks": "ask"}})
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session, journal = await opened.session(metadata={"recovery": "continue"}), opened.tk.store.journal
        await opened.say(session, "go")
        await gate.wait_reached()
        with anyio.fail_after(PATIENCE_S):
            while not (asks := (await journal.view(session)).asks):
                await anyio.sleep(0)
        engine.is_cut = True
        gate.open()
        await ended(opened, session)
        engine.is_cut = False
        await retry(opened, session)
        view = await journal.view(session)
        assert (view.asks, view.owner) == (asks, None)
        assert view.turn is not None


class Unreadable(MemoryEngine):
    """A store that cannot be read for a moment, just after a call was recorded as running.

    A full disk is like that for a store of files: before it is read, the last write must be put in place.
    """

    failures = 0

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
        await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last)
        if not self.failures and any(b'"status":"running"' in one for one in entries):
            self.failures = 1

    async def get(self, keys: Sequence[Key]) -> list[bytes | None]:
        if self.failures == 1:
            self.failures += 1
            raise StoreFull("the disk is full")
        return await super().get(keys)


async def test_a_call_that_could_not_begin_because_of_the_store_is_no_running_call_afterwards(tmp_path: Path) -> None:
    script = Scripted().calls("echo", text="one").then().says("Here I am.")
    async with stage(Unreadable(), tmp_path / "place", script) as opened:
        session = await opened.session(metadata={"recovery": "continue"})
        await opened.ask(session, "go")
        await retry(opened, session)
        (first, parts), (second, _) = await opened.turns(session)
        assert [type(part.state) for part in parts if isinstance(part, ToolPart)] == [ToolError]
        assert (type(first.error), second.error) == (UnknownFailure, None)
        assert (await texts(opened, session))[-1] == "Here I am."
        assert await opened.is_sound(session)


class Gone(Cut):
    """A store that can neither be written nor read for a while. ``refused`` counts the reads."""

    refused = 0

    async def read(self, log: str, *, after: int = 0, limit: int | None = None) -> list[bytes]:
        self.refused += self.is_cut
        self._check()
        return await super().read(log, after=after, limit=limit)


async def test_a_request_to_the_user_outlives_an_outage_in_which_nothing_can_be_read(tmp_path: Path) -> None:
    engine, script = Gone(), Scripted().calls("asks", text="one").then().says("Here I am.")
    options = StageOptions(ask=None, config={"permission": {"asks": "ask"}})
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session, journal = await opened.session(), opened.tk.store.journal
        await opened.say(session, "go")
        with anyio.fail_after(PATIENCE_S):
            while not (asks := (await journal.view(session)).asks):
                await anyio.sleep(0)
            engine.is_cut = True
            while not engine.refused:
                await anyio.sleep(0)
            await anyio.wait_all_tasks_blocked()
            engine.is_cut = False
            assert (await journal.view(session)).asks == asks
            await opened.time.asleep(RELEASE_RETRY_S)
            opened.time.advance(RETRY_MS)
            await opened.tk.reply(asks[0].request.id, "once")
            await opened.tk.wait(session)
        [(_, parts), _] = await opened.turns(session)
        assert [type(part.state) for part in parts if isinstance(part, ToolPart)] == [ToolCompleted]
        assert await texts(opened, session) == ["Here I am."]


class OnlyRoot(Away):
    """A store that gives a fence for one log only, while it is away. ``refused`` counts the others."""

    root: str | None = None
    refused = 0

    async def fence(self, log: str) -> int:
        if log == self.root:
            return await MemoryEngine.fence(self, log)
        self.refused += self.error is not None
        return await super().fence(log)


async def test_a_call_waits_for_a_child_session_that_an_outage_keeps_from_running(tmp_path: Path) -> None:
    engine = OnlyRoot()
    model = BySession(
        root=Scripted().calls("task", **a_task("find it")).then().says("It is there."),
        find=Scripted().says("Here it is."),
    )
    options = StageOptions(tools=TOOLS_AND_TASK, config=AGENTS)
    async with stage(engine, tmp_path / "place", model, options) as opened:
        session = await opened.session()
        engine.root, engine.error = session, StoreUnavailable("the database is away")
        await opened.say(session, "root: where is it?")
        with anyio.fail_after(PATIENCE_S):
            while not engine.refused:
                await anyio.sleep(0)
            await opened.time.asleep(RELEASE_RETRY_S)
            engine.error = None
            opened.time.advance(RETRY_MS)
            await opened.tk.wait(session)
        [made] = await opened.tk.children(session)
        assert await texts(opened, made.id) == ["Here it is."]
        [(_, parts), _] = await opened.turns(session)
        [state] = [part.state for part in parts if isinstance(part, ToolPart)]
        assert isinstance(state, ToolCompleted)
        assert "Here it is." in state.output
        assert await texts(opened, session) == ["It is there."]


class Refusing(MemoryEngine):
    """A store that refuses the first append of an event of a kind, or each as long as it ``is_full``."""

    is_full = has_refused = False

    def __init__(self, kind: type[Event]) -> None:
        super().__init__()
        self._kind = kind.KIND.encode()

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
        if (self.is_full or not self.has_refused) and any(self._kind in one for one in entries):
            self.has_refused = True
            raise StoreFull("the disk is full")
        await super().append(log, after, entries, documents, texts=texts, fence=fence, last=last)


@pytest.mark.parametrize("kind", [PermissionReplied, AnswerApplied])
async def test_an_answer_of_the_user_is_recorded_and_applied_once_the_store_takes_it(
    kind: type[Event], tmp_path: Path
) -> None:
    script = Scripted().calls("asks", text="one").then().says("Here I am.")
    options = StageOptions(config={"permission": {"asks": "ask"}}, in_a_hurry=True)
    engine = Refusing(kind)
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session()
        await opened.ask(session, "go")
        assert engine.has_refused
        [(_, parts), _] = await opened.turns(session)
        assert [type(part.state) for part in parts if isinstance(part, ToolPart)] == [ToolCompleted]
        assert [type(event) for event in await opened.events(session)].count(kind) == 1
        assert await opened.is_sound(session)


async def test_an_answer_to_a_question_is_recorded_once_the_store_takes_it(tmp_path: Path) -> None:
    async def answer(request: QuestionRequest) -> QuestionReply:
        return QuestionReply(answers=(("A",),))

    asked = [{"question": "Which?", "header": "Choice", "options": [{"label": "A", "description": "first"}]}]
    script = Scripted().calls("question", questions=asked).then().says("Here I am.")
    engine, options = (
        Refusing(QuestionReplied),
        StageOptions(question=answer, tools=load(["question"]), in_a_hurry=True),
    )
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session()
        await opened.ask(session, "go")
        assert engine.has_refused
        [(_, parts), _] = await opened.turns(session)
        assert [type(part.state) for part in parts if isinstance(part, ToolPart)] == [ToolCompleted]
        assert await opened.is_sound(session)


async def test_a_call_whose_answer_cannot_be_stored_is_still_stopped_by_the_user(tmp_path: Path) -> None:
    script = Scripted().calls("asks", text="one").then().says("Never said.")
    engine, options = Refusing(PermissionReplied), StageOptions(config={"permission": {"asks": "ask"}})
    engine.is_full = True
    async with stage(engine, tmp_path / "place", script, options) as opened:
        session = await opened.session()
        await opened.say(session, "go")
        with anyio.fail_after(PATIENCE_S):
            await opened.time.asleep(RELEASE_RETRY_S)
            assert await opened.tk.stop(session) is True
        assert engine.has_refused
        assert [type(message.error) for message, _ in await opened.turns(session)] == [AbortedFailure]
        assert await opened.is_sound(session)


async def test_a_process_that_runs_nothing_gives_a_session_back_in_which_it_did_something_itself(
    tmp_path: Path,
) -> None:
    engine = Cut()
    options = StageOptions(runs=False)
    async with stage(engine, tmp_path / "place", Scripted(), options) as opened:
        session = await opened.session()
        fifo = tmp_path / "fifo"
        os.mkfifo(fifo)
        async with anyio.create_task_group() as group:

            async def command() -> None:
                with suppress(StoreUnavailable):
                    await opened.tk.shell(session, f"cat {fifo}")

            group.start_soon(command)
            with anyio.fail_after(PATIENCE_S):
                while (await opened.tk.store.journal.view(session)).turn is None:
                    await anyio.sleep(0)
                engine.is_cut = True
                await anyio.to_thread.run_sync(fifo.write_text, "over")
                await ended(opened, session)
        engine.is_cut = False
        with anyio.fail_after(PATIENCE_S):
            await opened.time.asleep(RELEASE_RETRY_S)
            opened.time.advance(RETRY_MS)
            while not await engine.scan(("wake", session)):
                await anyio.sleep(0)
        assert await opened.tk.status(session) == IDLE
        assert await opened.is_sound(session)

"""A prompt that was admitted before the store went away is answered once the store is back."""

import asyncio
from pathlib import Path

import anyio

from turnkeeper.core.limits import RELEASE_RETRY_S
from turnkeeper.model.parts import TextPart
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store.engine import StoreDamaged, StoreUnavailable
from turnkeeper.store.engines.memory import MemoryEngine
from turnkeeper.store.engines.postgres import PostgresEngine
from turnkeeper.store.engines.postgres.schema import Layout
from turnkeeper.testing.harness import Stage, stage
from turnkeeper.testing.postgres import own_cluster

PATIENCE_S = 120
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

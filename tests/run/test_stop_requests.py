"""A session is stopped from any process, and only the run that was meant."""

from pathlib import Path

import anyio

from turnkeeper.mint import Mint
from turnkeeper.model.failure import AbortedFailure
from turnkeeper.model.value import encode
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.stop_requests import StopRequest
from turnkeeper.store import keys
from turnkeeper.testing.harness import stage

PATIENCE_S = 120


async def test_a_session_is_stopped_by_a_process_that_does_not_run_it(tmp_path: Path) -> None:
    url, place, gate = f"sqlite:{tmp_path}/store", tmp_path / "place", Gate()
    script = Scripted().says("Half a ").waits(gate)
    async with stage(url, place, script) as first, stage(url, place, Scripted(), mint=Mint.fixed(seed=2)) as second:
        session = await first.session()
        await first.say(session, "go")
        await gate.wait_reached()
        with anyio.fail_after(PATIENCE_S):
            assert await second.tk.stop(session) is True
        assert first.tk.running == frozenset()
        [(message, _)] = await second.turns(session)
        assert isinstance(message.error, AbortedFailure)
        assert await second.is_sound(session)
        assert await second.tk.store.engine.scan(("stop",)) == []


async def test_a_request_that_means_an_earlier_run_stops_nothing(tmp_path: Path) -> None:
    gate = Gate()
    async with stage("memory:", tmp_path / "place", Scripted().says("A whole ").waits(gate).says("word.")) as opened:
        session, engine = await opened.session(), opened.tk.store.engine
        await opened.say(session, "go")
        await gate.wait_reached()
        late = StopRequest(fence=await engine.fence(session) - 1)
        await engine.put({keys.stop_request(session): encode(late)})
        with anyio.fail_after(PATIENCE_S):
            while await engine.scan(("stop",)):
                await anyio.sleep(0)
        gate.open()
        assert (await opened.tk.wait(session)).reason == "answered"

"""Stopping a session that another process runs: what the caller is told."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from turnkeeper.model import event as e
from turnkeeper.model.status import BUSY, IDLE
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store import keys
from turnkeeper.testing.harness import stage
from turnkeeper.workspace.owner import this_process

DEADLINE_S = 60


@pytest.fixture
def other() -> "Iterator[subprocess.Popen[bytes]]":
    """A process that lives until it is ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        yield process
        process.kill()


@pytest.mark.parametrize("releases", [True, False])
async def test_a_process_that_ends_as_soon_as_it_has_stopped_has_stopped_the_session(
    tmp_path: Path, other: "subprocess.Popen[bytes]", releases: bool
) -> None:
    async with stage("memory:", tmp_path / "place", Scripted()) as on:
        session_id, journal, engine = await on.session(), on.tk.store.journal, on.tk.store.engine
        owner = this_process().but(pid=other.pid, started="", lease_s=30)
        await journal.append(session_id, e.StatusChanged(status=BUSY, owner=owner))
        stopped: list[bool] = []

        async def stop() -> None:
            stopped.append(await on.tk.stop(session_id))

        with anyio.fail_after(DEADLINE_S):
            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                while (await engine.get([keys.stop_request(session_id)]))[0] is None:
                    await anyio.lowlevel.checkpoint()
                if releases:
                    await journal.append(session_id, e.StatusChanged(status=IDLE))
                other.kill()
                other.wait(DEADLINE_S)
        assert stopped == [True]
        assert (await on.tk.store.queries.state(session_id)).owner is None

"""jobs: a command goes on in the background, and the model lists, reads and ends it."""

import os
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from confined import needs_kernel
from desk import Desk

from turnkeeper.core.sandbox import Confinement
from turnkeeper.tools.tool import Rejected, ToolFailure
from turnkeeper.workspace.jobs import Jobs


@pytest.fixture
async def at_work(desk: Desk) -> AsyncIterator[Desk]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            desk.jobs = Jobs(group)
            yield desk
            await desk.jobs.aclose()


async def test_a_command_in_the_background_returns_at_once_and_is_read_later(at_work: Desk) -> None:
    command = "echo first; until test -e go; do :; done; echo second"
    output = await at_work.run("bash", command=command, background=True)
    assert output.output.startswith("Started as job1; `jobs` with action")
    assert output.metadata["job"] == "job1"
    first = await at_work.run("jobs", action="read", id="job1", wait=30_000)
    assert first.output.startswith("first\n[job1: running as process ")
    assert (await at_work.run("jobs", action="read", id="job1")).output.startswith("(nothing new)\n")
    (at_work.directory / "go").touch()
    second = await at_work.run("jobs", action="read", id="job1", wait=30_000)
    assert second.output.startswith("second\n")
    assert at_work.jobs is not None
    await at_work.jobs.find("ses_1", "job1").done.wait()
    listed = await at_work.run("jobs", action="list")
    assert (listed.title, listed.output) == ("1 jobs", f"job1: done, exit code 0: {command}")


async def test_a_job_is_ended_and_shows_what_it_had_printed(at_work: Desk) -> None:
    await at_work.run("bash", command="echo on; sleep 1000", background=True)
    await at_work.run("jobs", action="read", id="job1", wait=30_000)
    ended = await at_work.run("jobs", action="end", id="job1")
    assert ended.output == "(nothing new)\n[job1: was ended]"
    assert (await at_work.run("jobs", action="end", id="job1")).output == "(nothing new)\n[job1: was ended]"


async def test_a_job_is_asked_about_like_any_command(at_work: Desk) -> None:
    at_work.refuse("bash", action="ask")
    with pytest.raises(Rejected):
        await at_work.run("bash", command="touch made", background=True)
    assert os.listdir(at_work.directory) == []
    assert at_work.asked[-1] == ("bash", ["touch made"], ["touch *"])


@needs_kernel
async def test_a_job_is_confined_like_any_command(at_work: Desk, tmp_path: Path) -> None:
    at_work.confined = Confinement(mode="workspace", write=(str(at_work.directory),))
    await at_work.run("bash", command="echo x > here; echo x > ../there", background=True)
    assert at_work.jobs is not None
    await at_work.jobs.find("ses_1", "job1").done.wait()
    assert ((at_work.directory / "here").exists(), (tmp_path / "there").exists()) == (True, False)


async def test_where_there_are_no_jobs_a_call_says_so(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match="without `background`"):
        await desk.run("bash", command="true", background=True)
    with pytest.raises(ToolFailure, match="There is no job 'job1'"):
        await desk.run("jobs", action="read", id="job1")

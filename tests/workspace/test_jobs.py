"""Jobs run in the background of a session and end with it, or with the program, however that ends."""

import os
import select
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from turnkeeper.core.limits import JOBS_KEPT_MAX, JOBS_RUNNING_MAX
from turnkeeper.model.refusal import Busy, NotFound
from turnkeeper.workspace.jobs import Job, Jobs, NewestOutput

ENVIRON = {"PATH": os.environ["PATH"], "SHELL": "/bin/bash"}


@asynccontextmanager
async def opened(directory: Path | None = None) -> AsyncIterator[Jobs]:
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            jobs = Jobs(group, (lambda session_id: str(directory)) if directory is not None else None)
            yield jobs
            await jobs.aclose()


async def printed(job: Job, text: str) -> None:
    """Wait until a job has printed a text."""
    while text not in job.output.since(0)[0]:
        await job.news.wait()


async def test_a_job_runs_on_prints_and_is_done(tmp_path: Path) -> None:
    async with opened(tmp_path) as jobs:
        job = await jobs.start(
            "ses_one", "echo first; until test -e go; do :; done; echo second; exit 3", tmp_path, ENVIRON
        )
        assert (job.id, job.state) == ("job1", f"running as process {job.process_id}")
        await printed(job, "first")
        (tmp_path / "go").touch()
        await job.done.wait()
        assert (job.output.since(0), job.exit_code, job.state) == (("first\nsecond\n", 0), 3, "done, exit code 3")
        assert job.file is not None
        assert (job.file.read_text(), job.file.stat().st_mode & 0o777) == ("first\nsecond\n", 0o600)


@pytest.mark.parametrize("refusal", ["", "trap '' TERM; "])
async def test_a_job_is_ended_with_everything_it_started(tmp_path: Path, refusal: str) -> None:
    alive = pipe_in(tmp_path)
    async with opened() as jobs:
        job = await jobs.start(
            "ses_one", f"exec 9>alive; {refusal}(sleep 100; sleep 100) & echo on; wait", tmp_path, ENVIRON
        )
        await printed(job, "on")
        jobs.end_session("ses_two")
        assert job.state.startswith("running")
        jobs.end_session("ses_one")
        await job.done.wait()
        assert (job.exit_code, job.state) == (None, "was ended")
    assert ends(alive)


async def test_jobs_end_with_the_program(tmp_path: Path) -> None:
    alive = pipe_in(tmp_path)
    async with opened() as jobs:
        job = await jobs.start("ses_one", "exec 9>alive; echo on; sleep 100", tmp_path, ENVIRON)
        await printed(job, "on")
    assert ends(alive)


def test_jobs_end_with_a_program_that_is_killed(tmp_path: Path) -> None:
    alive = pipe_in(tmp_path)
    script = """
import anyio, os, sys
from pathlib import Path
from turnkeeper.workspace.jobs import Jobs

async def main():
    async with anyio.create_task_group() as group:
        command = "exec 9>alive; echo begun >&9; trap '' TERM; sleep 100; sleep 100"
        await Jobs(group).start("ses_one", command, Path(sys.argv[1]), dict(os.environ))
        await anyio.sleep_forever()

anyio.run(main)
"""
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    with subprocess.Popen([sys.executable, "-c", script, str(tmp_path)], env=environ) as program:
        assert select.select([alive], [], [], 60)[0], "the job did not begin"
        program.kill()
    assert os.read(alive, 100) == b"begun\n"
    assert ends(alive)


async def test_what_a_job_leaves_behind_ends_with_it(tmp_path: Path) -> None:
    alive = pipe_in(tmp_path)
    async with opened() as jobs:
        # The job opens the pipe itself: what it leaves behind may be ended before it could.
        job = await jobs.start("ses_one", "exec 9>alive; sleep 100 > /dev/null 2>&1 & echo on", tmp_path, ENVIRON)
        await job.done.wait()
        assert job.exit_code == 0
    assert ends(alive)


async def test_a_job_that_cannot_be_started_is_none(tmp_path: Path) -> None:
    async with opened() as jobs:
        with pytest.raises(FileNotFoundError):
            await jobs.start("ses_one", "true", tmp_path / "missing", ENVIRON)
        assert jobs.of("ses_one") == []


async def test_a_session_has_so_many_jobs_and_no_more_and_sees_only_its_own(tmp_path: Path) -> None:
    async with opened() as jobs:
        for _ in range(JOBS_RUNNING_MAX):
            job = await jobs.start("ses_one", "sleep 100", tmp_path, ENVIRON)
        with pytest.raises(Busy, match="end one of them first"):
            await jobs.start("ses_one", "sleep 100", tmp_path, ENVIRON)
        assert jobs.find("ses_one", job.id) is job
        with pytest.raises(NotFound, match="the jobs are: none"):
            jobs.find("ses_two", job.id)
        await jobs.forget("ses_one")
        assert (jobs.of("ses_one"), job.done.is_set()) == ([], True)


async def test_of_jobs_that_are_done_the_newest_are_kept(tmp_path: Path) -> None:
    async with opened() as jobs:
        for _ in range(JOBS_KEPT_MAX + 3):
            await (await jobs.start("ses_one", "true", tmp_path, ENVIRON)).done.wait()
        assert next(job.id for job in jobs.of("ses_one")) == "job3"


async def test_a_log_is_never_written_through_a_link_that_a_command_made(tmp_path: Path) -> None:
    (tmp_path / "precious").write_text("old")
    (tmp_path / f"job1-{os.getpid()}.log").symlink_to(tmp_path / "precious")
    async with opened(tmp_path) as jobs:
        job = await jobs.start("ses_one", "echo new", tmp_path, ENVIRON)
        await job.done.wait()
        assert (job.file, job.output.since(0)[0]) == (None, "new\n")
    assert (tmp_path / "precious").read_text() == "old"


@pytest.mark.parametrize("size", [1, 7, 100])
def test_the_newest_output_is_kept_at_its_place(size: int) -> None:
    whole = bytes(ord("a") + n % 26 for n in range(1000))
    kept = NewestOutput(100)
    for start in range(0, len(whole), size):
        kept.add(whole[start : start + size])
    text, lost = kept.since(0)
    assert (kept.end, text, lost) == (1000, whole[lost:].decode(), lost)
    assert 100 <= len(text) <= 200
    assert kept.since(990) == (whole[990:].decode(), 0)


def pipe_in(directory: Path) -> int:
    """A pipe that is heard to end when the last process that can write to it is gone."""
    os.mkfifo(directory / "alive")
    return os.open(directory / "alive", os.O_RDONLY | os.O_NONBLOCK)


def ends(pipe: int) -> bool:
    is_ready = bool(select.select([pipe], [], [], 30)[0])
    try:
        return is_ready and os.read(pipe, 100) == b""
    finally:
        os.close(pipe)

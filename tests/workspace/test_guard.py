"""What a command started ends with it, with its session and with the program, also if it left its group."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from confined import ConfinedWorld, needs_kernel

from turnkeeper.workspace import shell
from turnkeeper.workspace.guarded import Guarded
from turnkeeper.workspace.jobs import Jobs
from turnkeeper.workspace.launcher import LAUNCHER, Launcher

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that left its group is not found")

ESCAPES = (
    "setsid sh -c 'echo on >&9; sleep 1000' > /dev/null 2>&1 &",
    "setsid -f sh -c 'echo on >&9; exec setsid -f sleep 1000' > /dev/null 2>&1;",
    "nohup sh -c 'trap \"\" TERM; echo on >&9; while :; do sleep 1000; done' > /dev/null 2>&1 &",
    "env -i setsid -f sh -c '(sh -c \"echo on >&9; exec sleep 1000\" &)' > /dev/null 2>&1;",
)
PROGRAM = """
import anyio, os, sys
from pathlib import Path
from turnkeeper.workspace import shell
from turnkeeper.workspace.jobs import Jobs

async def main():
    command, directory, kind = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    async with anyio.create_task_group() as group:
        jobs = Jobs(group)
        if kind == "job":
            await jobs.start("ses_one", command + "; sleep 1000", directory, dict(os.environ))
        else:
            keep = lambda rest: jobs.keep("ses_one", rest)
            await shell.run(command, directory, environ=dict(os.environ), timeout_s=60, is_of_model=True, left=keep)
        if kind == "ends":
            await jobs.aclose()
            return
        await anyio.sleep_forever()

anyio.run(main)
"""


@pytest.mark.parametrize("escape", ESCAPES)
async def test_a_stopped_command_ends_with_what_left_its_group(tmp_path: Path, escape: str) -> None:
    alive = pipe_in(tmp_path)
    with anyio.CancelScope() as scope:
        async with anyio.create_task_group() as group:
            group.start_soon(run, f"exec 9> alive; {escape} sleep 1000", tmp_path)
            await heard(alive)
            scope.cancel()
    assert ends(alive)


@pytest.mark.parametrize("escape", ESCAPES)
async def test_what_a_finished_command_left_goes_on_and_ends_with_its_session(tmp_path: Path, escape: str) -> None:
    alive = pipe_in(tmp_path)
    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            jobs = Jobs(group)
            left: list[Guarded] = []
            ran = await run(f"exec 9> alive; {escape}", tmp_path, is_of_model=True, left=left.append)
            assert ran.exit_code == 0
            await heard(alive)
            assert left[0].is_alive
            jobs.keep("ses_one", left[0])
            jobs.end_session("ses_one")
            await jobs.aclose()
    assert ends(alive)


@pytest.mark.parametrize("kind", ["job", "command", "ends"])
@pytest.mark.parametrize("escape", ESCAPES)
def test_what_left_its_group_ends_with_the_program(tmp_path: Path, escape: str, kind: str) -> None:
    alive = pipe_in(tmp_path)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    arguments = [sys.executable, "-c", PROGRAM, f"exec 9> alive; {escape} :", str(tmp_path), kind]
    with subprocess.Popen(arguments, env=environ) as program:
        if kind != "ends":
            assert select.select([alive], [], [], 60)[0], "it did not begin"
            program.kill()
    if select.select([alive], [], [], 60)[0] and os.read(alive, 100) == b"":
        os.close(alive)
    else:
        assert ends(alive)


async def test_what_a_command_of_the_user_left_goes_on(tmp_path: Path) -> None:
    alive = pipe_in(tmp_path)
    await run("exec 9> alive; setsid -f sh -c 'echo $$ >&9; exec sleep 1000' > /dev/null 2>&1", tmp_path)
    number = int(await heard(alive))
    os.kill(number, 0)
    os.kill(number, signal.SIGKILL)
    assert ends(alive)


@needs_kernel
async def test_a_confined_command_cannot_end_its_guard(tmp_path: Path) -> None:
    world = ConfinedWorld(tmp_path)
    ran = await world.run("kill -9 $PPID && echo killed; echo after")
    assert (ran.output.endswith("after\n"), "killed\n" in ran.output, ran.exit_code) == (True, False, 0)


async def test_a_killed_launcher_is_replaced_and_commands_go_on(tmp_path: Path) -> None:
    await run("true", tmp_path)
    process = LAUNCHER._process
    assert process is not None
    alive = pipe_in(tmp_path)
    results: list[shell.Ran] = []

    async def command() -> None:
        results.append(await run("exec 9> alive; echo on >&9; until test -e go; do :; done; echo done", tmp_path))

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            group.start_soon(command)
            await heard(alive)
            process.kill()
            process.wait()
            assert (await run("echo again", tmp_path)).output == "again\n"
            (tmp_path / "go").touch()
    assert [(ran.output, ran.exit_code) for ran in results] == [("done\n", 0)]
    os.close(alive)


async def test_a_launcher_that_was_prepared_starts_the_first_command(tmp_path: Path) -> None:
    launcher = Launcher()
    launcher.prepare()
    process = launcher._process
    assert process is not None
    reading, writing = os.pipe()
    with open(reading, "rb") as output, open(os.devnull, "rb") as nothing:
        streams = (nothing.fileno(), writing, writing)
        started = launcher.start(["echo", "hi"], tmp_path, dict(os.environ), streams)
        os.close(writing)
        assert output.read() == b"hi\n"
    started.release()
    assert launcher._process is process
    launcher.close()


async def run(command: str, directory: Path, **options: object) -> shell.Ran:
    return await shell.run(command, directory, environ=dict(os.environ), timeout_s=60, **options)  # type: ignore[arg-type]


def pipe_in(directory: Path) -> int:
    """A pipe that is heard to end when the last process that can write to it is gone."""
    os.mkfifo(directory / "alive")
    return os.open(directory / "alive", os.O_RDONLY | os.O_NONBLOCK)


async def heard(pipe: int) -> bytes:
    with anyio.fail_after(30):
        while True:
            await anyio.wait_readable(pipe)
            try:
                if said := os.read(pipe, 100):
                    return said
            except BlockingIOError:
                continue
            raise AssertionError("it was closed without a word")


def ends(pipe: int) -> bool:
    try:
        while select.select([pipe], [], [], 30)[0]:
            if os.read(pipe, 100) == b"":
                return True
        return False
    finally:
        os.close(pipe)

"""Shells: which one is chosen, what is kept of an output, and that nothing outlives who waits for it."""

import os
from pathlib import Path
from typing import Any

import anyio
import pytest

from turnkeeper.workspace import shell
from turnkeeper.workspace.shell import KeptOutput, Ran


async def run(command: str, directory: Path, **options: Any) -> Ran:
    return await shell.run(command, directory, environ=dict(os.environ), **{"timeout_s": 60, **options})


async def test_a_group_that_ignores_the_request_to_end_is_killed(tmp_path: Path) -> None:
    # The shell and its child both refuse; the file shows that they were asked first.
    command = "trap 'echo > asked' TERM; (trap '' TERM; echo $BASHPID; while :; do sleep 1000; done) & wait; wait"
    child = await heard_and_cancelled(command, tmp_path, "S", grace_s=0.2)
    await gone(child)
    assert (tmp_path / "asked").exists()


async def test_a_stopped_process_is_ended_too_and_at_the_first_request(tmp_path: Path) -> None:
    stopped = await heard_and_cancelled("trap 'echo > asked; exit' TERM; echo $$; kill -STOP $$", tmp_path, "T")
    await gone(stopped)
    assert (tmp_path / "asked").exists()


async def test_a_cancelled_command_has_ended_by_the_time_the_cancellation_is_through(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(ending: str) -> None:
        heard.append(ending)
        scope.cancel()

    with anyio.CancelScope() as scope:
        await run(
            "trap 'sleep 0.1; echo cleaned > done; exit' TERM; echo ready; while :; do sleep 0.01; done",
            tmp_path,
            heard=hear,
        )
    # The request came first, and there was time to follow it.
    assert (heard, (tmp_path / "done").read_text()) == (["ready\n"], "cleaned\n")


async def test_news_that_comes_too_early_is_told_later_without_further_output(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(ending: str) -> None:
        heard.append(ending)
        (tmp_path / f"heard{len(heard)}").touch()

    command = "echo a; until test -e heard1; do :; done; echo b; until test -e heard2; do :; done"
    await run(command, tmp_path, heard=hear, interval_s=0.05)
    assert heard == ["a\n", "a\nb\n"]


async def test_within_an_interval_there_is_one_report_however_much_is_printed(tmp_path: Path) -> None:
    heard: list[str] = []

    async def hear(ending: str) -> None:
        heard.append(ending)
        (tmp_path / "heard").touch()

    command = "echo first; until test -e heard; do :; done; seq 1 100000"
    ran = await run(command, tmp_path, heard=hear, interval_s=10_000)
    assert (heard, ran.output.endswith("\n100000\n")) == (["first\n"], True)


async def test_a_silent_listener_costs_nothing(tmp_path: Path) -> None:
    assert await run("echo a", tmp_path) == Ran("a\n", 0)


async def test_a_directory_that_is_not_there_is_an_error_of_the_system(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        await run("true", tmp_path / "missing")


async def test_no_descriptor_is_left_open(tmp_path: Path) -> None:
    await run("true", tmp_path)
    before = sorted(os.listdir("/proc/self/fd"))
    for _ in range(3):
        await run("echo a", tmp_path)
        with pytest.raises(FileNotFoundError):
            await run("true", tmp_path / "missing")
    assert sorted(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("preferred", "expected"),
    [("bash", "bash"), ("sh", "sh"), ("fish", "bash"), ("false", "bash"), ("", "bash"), ("zsh", "bash")],
)
def test_the_users_shell_is_used_if_models_know_it_and_it_is_there(
    tmp_path: Path, preferred: str, expected: str
) -> None:
    for name in ("bash", "sh", "fish", "false"):
        (tmp_path / name).write_text("#!/bin/sh\n")
        (tmp_path / name).chmod(0o755)
    environ = {"SHELL": str(tmp_path / preferred) if preferred else "", "PATH": str(tmp_path)}
    assert shell.choose(environ) == str(tmp_path / expected)


def test_without_bash_there_is_sh(tmp_path: Path) -> None:
    assert shell.choose({"PATH": str(tmp_path)}) == "/bin/sh"


@pytest.mark.parametrize("size", [1, 7, 64, 1000])
def test_of_a_long_output_both_ends_are_kept(size: int) -> None:
    content = bytes(ord("a") + n % 26 for n in range(1000))
    kept = KeptOutput(100)
    for start in range(0, len(content), size):
        kept.add(content[start : start + size])
        assert len(kept) <= 150
    assert kept.text() == f"{content[:50].decode()}\n[... 900 bytes were not kept ...]\n{content[-50:].decode()}"
    assert kept.ending(10) == content[-10:].decode()


def test_a_short_output_is_kept_whole() -> None:
    kept = KeptOutput(100)
    kept.add(b"a" * 50)
    kept.add(b"b" * 50)
    assert kept.text() == "a" * 50 + "b" * 50
    assert kept.ending(60) == "a" * 10 + "b" * 50


async def heard_and_cancelled(command: str, directory: Path, state: str, **options: object) -> int:
    """Run a command that prints a process number; cancel it once that process is in a state; return the number."""
    numbers: list[int] = []

    async def hear(ending: str) -> None:
        numbers.append(int(ending))
        with anyio.fail_after(30):
            while state_of(numbers[0]) != state:
                await anyio.sleep(0)
        scope.cancel()

    with anyio.CancelScope() as scope:
        await run(command, directory, heard=hear, **options)
    return numbers[0]


async def gone(number: int) -> None:
    """Wait until a process is no more, or only waits for its parent to notice."""
    with anyio.fail_after(30):
        while state_of(number) not in ("Z", "X", ""):
            await anyio.sleep(0)


def state_of(number: int) -> str:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return ""


async def test_a_report_that_takes_long_does_not_make_an_ended_command_one_that_left_something_running(
    tmp_path: Path,
) -> None:
    async def hear(_: str) -> None:
        await anyio.sleep_forever()

    assert await run("echo one; echo two", tmp_path, heard=hear) == Ran("one\ntwo\n", 0)

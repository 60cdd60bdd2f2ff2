"""bash: commands run to their end, or are ended with everything they started."""

import os
from pathlib import Path

import anyio
import pytest
from confined import needs_kernel
from desk import Desk

from turnkeeper.core.limits import OUTPUT_KEPT_MAX, OUTPUT_LINES_MAX
from turnkeeper.core.sandbox import Confinement
from turnkeeper.tools.tool import Denied, Rejected, ToolFailure

NUMBERS = "sleep 1000 & echo $!; echo $$; "
"""Prints the numbers of a background process and of the shell."""


async def test_a_command_gives_what_it_prints_on_both_streams_in_order(desk: Desk) -> None:
    output = await desk.run("bash", command="echo a; echo b >&2; echo c", description="Say it")
    assert (output.title, output.output) == ("echo a; echo b >&2; echo c", "a\nb\nc")
    assert output.metadata == {"output": "a\nb\nc\n", "exit": 0, "description": "Say it", "truncated": False}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("true", "(no output)"),
        ("echo a; exit 3", "a\n[exit code 3]"),
        ("false", "(no output)\n[exit code 1]"),
        ("kill -TERM $$", "(no output)\n[ended by SIGTERM]"),
        ("kill -40 $$", "(no output)\n[ended by signal 40]"),
        ("no-such-command-here 2>/dev/null", "(no output)\n[exit code 127]"),
        ("cat", "(no output)"),
        ("test -t 0 || test -t 1 || echo none", "none"),
        ("head -c 2 /dev/tty 2>/dev/null; true", "(no output)"),
        ("echo $TERM", "dumb"),
        ("printf '\\xff\\n'", "\ufffd"),
    ],
)
async def test_an_output_tells_the_model_how_it_went(desk: Desk, command: str, expected: str) -> None:
    assert (await desk.run("bash", command=command)).output == expected


async def test_a_command_that_is_too_long_to_be_run_is_refused_before_anybody_is_asked(desk: Desk) -> None:
    with pytest.raises(ToolFailure, match=r"The command is longer than 131071 bytes. Write it to a file and run that."):
        await desk.run("bash", command=f"echo {'a' * 131072}")
    assert desk.asked == []


async def test_a_command_runs_where_it_is_told(desk: Desk) -> None:
    (desk.directory / "sub").mkdir()
    assert (await desk.run("bash", command="pwd")).output == str(desk.directory)
    assert (await desk.run("bash", command="pwd", workdir="sub")).output == str(desk.directory / "sub")


async def test_a_command_out_of_time_is_ended_with_its_whole_group_and_keeps_its_output(desk: Desk) -> None:
    output = await desk.run("bash", command=f"{NUMBERS} wait", timeout=1500)
    background, shell, note = output.output.split("\n")
    assert note.startswith("[stopped after 1.5 s, with everything it started")
    assert output.metadata["exit"] is None
    await gone(int(background))
    await gone(int(shell))


async def test_a_cancelled_command_reports_what_it_printed_until_its_end(desk: Desk) -> None:
    with anyio.CancelScope() as scope:
        desk.on_progress = scope.cancel
        await desk.run("bash", command="trap 'echo last; exit' TERM; echo first; while :; do :; done")
    assert desk.progress[-1]["output"] == "first\nlast\n"


async def test_a_cancelled_command_is_ended_with_its_whole_group(desk: Desk) -> None:
    with anyio.CancelScope() as scope:
        desk.on_progress = lambda: scope.cancel() if len(numbers(desk)) == 2 else None
        await desk.run("bash", command=f"{NUMBERS} wait")
    assert scope.cancelled_caught
    for number in numbers(desk):
        await gone(number)


async def test_what_a_command_leaves_is_told_and_ended_where_nobody_keeps_jobs(desk: Desk) -> None:
    output = await desk.run("bash", command=f"{NUMBERS}")
    background, _, note = output.output.split("\n")
    assert note == "[something it started is still running; its further output is lost]"
    assert output.metadata["exit"] == 0
    await gone(int(background))


async def test_what_a_command_leaves_with_its_output_elsewhere_is_not_waited_for(desk: Desk) -> None:
    output = await desk.run("bash", command="sleep 1000 > /dev/null 2>&1 & echo $!")
    await gone(int(output.output))


async def test_progress_shows_the_end_of_the_output_so_far(desk: Desk) -> None:
    go = desk.directory / "go"
    desk.on_progress = go.touch
    output = await desk.run("bash", command="echo first; while ! test -e go; do :; done; echo second")
    assert desk.progress[0] == {
        "title": "echo first; while ! test -e go; do :; done; echo second",
        "output": "first\n",
        "description": "",
    }
    assert output.output == "first\nsecond"


async def test_a_chatty_command_is_reported_rarely_and_bounded(desk: Desk) -> None:
    output, bounded, *_ = await desk.settle("bash", command="seq 1 300000")
    assert bounded.full == "".join(f"{n}\n" for n in range(1, 300_001)).rstrip("\n")
    lines = output.output.split("\n")
    assert (lines[0], lines[-1], len(lines) <= OUTPUT_LINES_MAX) == ("1", "300000", True)
    assert all(len(report["output"]) <= 30_000 for report in desk.progress)
    kept = output.metadata["output"]
    assert isinstance(kept, str)
    assert len(kept) == 30_000


async def test_an_endless_output_is_kept_in_part_and_never_fills_the_memory(desk: Desk) -> None:
    output, bounded, *_ = await desk.settle("bash", command="head -c 40000000 /dev/zero | tr '\\0' x; echo; echo end")
    assert output.output.endswith("\nend")
    lost = 40_000_005 - OUTPUT_KEPT_MAX
    assert bounded.full is not None
    assert f"[... {lost} bytes were not kept ...]" in bounded.full
    assert f"All of it but {lost} bytes in the middle, which are lost: recall with handle" in output.output
    assert len(bounded.full) < OUTPUT_KEPT_MAX + 100


async def test_an_output_of_twenty_megabytes_is_kept_whole(desk: Desk) -> None:
    output, bounded, *_ = await desk.settle("bash", command="seq 1 2800000")
    assert bounded.full == "\n".join(map(str, range(1, 2_800_001)))
    assert "All of it: recall with handle" in output.output


async def test_the_commands_in_a_command_are_asked_about_one_by_one(desk: Desk) -> None:
    await desk.run("bash", command="cd . && echo a | cat; true > out.txt")
    assert desk.asked == [
        ("edit", ["out.txt"], ["*"]),
        ("bash", ["echo a", "cat", "true > out.txt"], ["echo *", "cat *", "true *"]),
    ]
    assert desk.shown[0]["patterns"] == ["echo a", "cat", "true > out.txt"]


async def test_paths_outside_the_project_are_asked_for_first(desk: Desk, tmp_path: Path) -> None:
    os.symlink(tmp_path, desk.directory / "link")
    command = "cat ../x; echo a > link/y/z; echo b 2> /dev/null; cat inside"
    await desk.run("bash", command=command)
    outside = [f"{tmp_path}/*", f"{tmp_path}/y/*"]
    assert desk.asked[0] == ("external_directory", outside, outside)
    assert desk.asked[1][0] == "bash"


@pytest.mark.parametrize("word", ["l*/l*/l*/nothing", "l*/l*/l*"])
async def test_a_wildcard_with_more_behind_it_than_can_be_looked_at_is_asked_about(desk: Desk, word: str) -> None:
    for number in range(32):
        os.symlink(".", desk.directory / f"l{number}")
    desk.refuse("external_directory", action="ask")
    with pytest.raises(Rejected):
        await desk.run("bash", command=f"touch {word}")
    assert desk.asked == [("external_directory", [word], [word.replace("*", "?")])]


async def test_a_working_directory_outside_the_project_is_asked_for(desk: Desk, tmp_path: Path) -> None:
    await desk.run("bash", command="pwd", workdir="..")
    assert desk.asked[0] == ("external_directory", [f"{tmp_path}/*"], [f"{tmp_path}/*"])


async def test_a_written_file_is_asked_for_as_an_edit_and_a_denied_one_is_not_written(desk: Desk) -> None:
    desk.refuse("edit", "keep/*")
    (desk.directory / "keep").mkdir()
    for command in [
        "echo x > keep/a",
        "echo x | tee keep/a",
        "touch keep/a",
        "cd keep && echo x > a",
        "touch a && cp a keep",
    ]:
        with pytest.raises(Denied):
            await desk.run("bash", command=command)
    assert os.listdir(desk.directory / "keep") == []


async def test_a_path_that_only_the_run_can_know_is_asked_for_as_it_is_written(desk: Desk) -> None:
    await desk.run("bash", command="cat $(echo a*) 2> /dev/null; true")
    assert desk.asked[0] == ("external_directory", ["$(echo a*)"], ["$(echo a?)"])


async def test_one_denied_command_keeps_the_whole_line_from_running(desk: Desk) -> None:
    desk.refuse("bash", "rm *")
    with pytest.raises(Denied):
        await desk.run("bash", command="touch made && echo $(rm -f x)")
    assert os.listdir(desk.directory) == []


@needs_kernel
async def test_what_the_sandbox_refused_is_told_with_a_way_out(desk: Desk, tmp_path: Path) -> None:
    desk.confined = Confinement(mode="workspace", write=(str(desk.directory),), described=(str(desk.directory),))
    output = await desk.run("bash", command="echo x > here && echo x > ../there")
    assert output.output.splitlines()[-2:] == [
        "[exit code 1]",
        f"[the sandbox may be the cause (mode workspace: writable are {desk.directory}); repeat the call with "
        "outside: true to run the command outside the sandbox; the user is asked]",
    ]
    assert output.metadata["sandbox"] == output.output.splitlines()[-1]
    assert not (tmp_path / "there").exists()


@needs_kernel
async def test_a_command_runs_outside_the_sandbox_once_the_user_allows_that_very_command(
    desk: Desk, tmp_path: Path
) -> None:
    desk.confined = Confinement(mode="workspace", write=(str(desk.directory),))
    desk.refuse("sandbox", action="ask")
    command = "echo x > ../there"
    with pytest.raises(Rejected):
        await desk.run("bash", command=command, outside=True)
    assert not (tmp_path / "there").exists()
    desk.says_yes = True
    await desk.run("bash", command=command, outside=True)
    assert desk.asked[-1] == ("sandbox", [command], [command])
    assert (tmp_path / "there").exists()


@needs_kernel
async def test_a_rule_lets_out_of_the_sandbox_only_the_commands_that_it_names(desk: Desk) -> None:
    desk.confined = Confinement(mode="workspace", write=(str(desk.directory),))
    desk.refuse("sandbox", action="ask")
    desk.refuse("sandbox", "echo *", action="allow")
    assert (await desk.run("bash", command="echo a && echo b", outside=True)).output == "a\nb"
    for command in ("echo a; touch made", "echo $(touch made)", "echo a | xargs touch", "echo a #(\ntouch made"):
        with pytest.raises(Rejected):
            await desk.run("bash", command=command, outside=True)
    assert os.listdir(desk.directory) == []


@needs_kernel
async def test_always_outside_the_sandbox_is_about_that_very_command_also_if_it_has_a_star(desk: Desk) -> None:
    desk.confined = Confinement(mode="workspace", write=(str(desk.directory),))
    desk.refuse("sandbox", action="ask")
    desk.says_yes = True
    await desk.run("bash", command="cd . && ls *; true", outside=True)
    assert desk.asked[-1] == ("sandbox", ["ls *", "true"], ["ls ?", "true"])


@needs_kernel
async def test_an_agent_that_may_change_nothing_gets_no_command_outside_the_sandbox(desk: Desk) -> None:
    desk.confined = Confinement(mode="read-only", is_by_rule=True)
    with pytest.raises(ToolFailure, match="rules of this agent deny every change"):
        await desk.run("bash", command="touch made", outside=True)
    assert os.listdir(desk.directory) == []


async def test_without_a_sandbox_there_is_nothing_to_ask_about(desk: Desk) -> None:
    assert (await desk.run("bash", command="echo a", outside=True)).output == "a"
    assert [permission for permission, _, _ in desk.asked] == ["bash"]


@needs_kernel
async def test_a_directory_that_the_user_allows_when_asked_can_be_written_and_one_that_a_rule_allows_cannot(
    desk: Desk, tmp_path: Path
) -> None:
    desk.confined = Confinement(mode="workspace", write=(str(desk.directory),))
    (tmp_path / "other").mkdir()
    command = "cat ../other/x; echo x > ../other/new"
    assert "Permission denied" in (await desk.run("bash", command=command)).output
    desk.refuse("external_directory", action="ask")
    desk.says_yes = True
    await desk.run("bash", command=command)
    assert (tmp_path / "other/new").exists()


@needs_kernel
async def test_a_confined_command_has_its_own_directory_for_temporary_files(desk: Desk, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    desk.confined = Confinement(mode="workspace", write=(str(own),), temporary=str(own))
    output = await desk.run("bash", command="mktemp")
    assert Path(output.output).parent == own


def numbers(desk: Desk) -> list[int]:
    return [int(line) for line in str(desk.progress[-1]["output"]).split() if line.isdecimal()]


async def gone(number: int) -> None:
    """Wait until a process is no more, or only waits for its parent to notice."""
    with anyio.fail_after(30):
        while is_running(number):
            await anyio.sleep(0)


def is_running(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False

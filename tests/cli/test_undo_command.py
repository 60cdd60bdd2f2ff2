"""Undo and redo at the command line: what becomes of files is listed first, asked for on a terminal, and reported."""

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import anyio
import pytest
from workshop import Shop

from turnkeeper.cli import undoing
from turnkeeper.cli.screen import Screen
from turnkeeper.model.restore import FileRestore
from turnkeeper.testing.reverting import opened, record_turn
from turnkeeper.workspace.restored_file import second_names

SESSION = "ses_e1f84e8c5ffeJ7iU4nZamE9866"
TIMEOUT_S = 60


def work(place: Path) -> None:
    (place / "kept").write_text("after\n")
    (place / "made").write_text("made\n")
    (place / "doomed").unlink()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """A project in which a session has changed files."""
    place = tmp_path / "place"
    place.mkdir()
    (place / "kept").write_text("before\n")
    (place / "doomed").write_text("precious\n")

    async def live() -> None:
        async with opened(f"sqlite:{tmp_path}/store.db", tmp_path) as stage:
            await stage.session(id=SESSION)
            await record_turn(stage, SESSION, work)

    anyio.run(live)
    return place


def environ(place: Path) -> dict[str, str]:
    home = place.parent / "home"
    store = f"sqlite:{place.parent}/store.db"
    return {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "TURNKEEPER_STORE": store,
        "TURNKEEPER_TRUST": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }


def run(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "turnkeeper", *words]
    return subprocess.run(
        command,
        cwd=place,
        env=environ(place),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def on_terminal(place: Path, typed: str, *words: str) -> tuple[int, str]:
    """Run a command with a terminal as its input; its exit code and what it wrote to standard error."""
    ours, its = pty.openpty()
    command = [sys.executable, "-m", "turnkeeper", *words]
    process = subprocess.Popen(
        command, cwd=place, env=environ(place), stdin=its, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    os.close(its)
    os.write(ours, typed.encode())
    _, said = process.communicate(timeout=TIMEOUT_S)
    os.close(ours)
    return process.returncode, said


def files(place: Path) -> dict[str, str]:
    return {one.name: one.read_text() for one in place.iterdir() if one.name != "turnkeeper.json"}


BEFORE = {"kept": "before\n", "doomed": "precious\n"}
AFTER = {"kept": "after\n", "made": "made\n"}
LISTED = "+ doomed  comes back\n~ kept  is put back\n- made  is deleted\n"


def test_a_dry_run_lists_what_would_happen(place: Path) -> None:
    done = run(place, "session", "undo", SESSION, "--dry-run")
    assert (done.returncode, done.stdout) == (0, LISTED)
    assert done.stderr == "Nothing was done yet. 3 files would change.\n"
    assert files(place) == AFTER


def test_without_a_terminal_it_is_not_done_unless_told_so(place: Path) -> None:
    refused = run(place, "session", "undo", SESSION)
    assert refused.returncode == 2
    assert LISTED in refused.stderr
    assert f"`turnkeeper session undo {SESSION} --yes` does not ask" in refused.stderr
    assert files(place) == AFTER
    done = run(place, "session", "undo", SESSION, "--yes")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == f"{LISTED}3 files changed. Redo brings back what is undone, until the next prompt.\n"
    assert files(place) == BEFORE
    again = run(place, "session", "redo", SESSION, "-y")
    assert again.returncode == 0
    assert again.stderr.endswith("Nothing is undone any more. 3 files changed.\n")
    assert files(place) == AFTER
    nothing = run(place, "session", "redo", SESSION, "-y")
    assert (nothing.returncode, "nothing to redo" in nothing.stderr) == (1, True)


def test_on_a_terminal_it_is_asked(place: Path) -> None:
    code, said = on_terminal(place, "n\n", "session", "undo", SESSION)
    assert (code, files(place)) == (1, AFTER)
    assert "nothing was changed" in said
    assert on_terminal(place, "y\n", "session", "undo", SESSION)[0] == 0
    assert files(place) == BEFORE


def test_a_conflict_is_named_and_the_exit_code_says_so(place: Path) -> None:
    (place / "made").write_text("made, and mine\n")
    done = run(place, "session", "undo", SESSION, "--yes", "--json")
    answer = json.loads(done.stdout)
    assert done.returncode == 1
    assert {one["file"]: one["kind"] for one in answer["files"]} == {
        "kept": "restore",
        "made": "conflict",
        "doomed": "create",
    }
    assert answer["session"]["revert"]["conflicts"] == ["made"]
    assert files(place) == {**BEFORE, "made": "made, and mine\n"}


def test_a_message_is_found_by_the_beginning_of_its_id(place: Path) -> None:
    message = json.loads(run(place, "session", "messages", SESSION, "--json").stdout)["items"][0]["info"]["id"]
    assert run(place, "session", "undo", SESSION, "--message", message[:-2], "-y").returncode == 0
    assert files(place) == BEFORE


def test_it_can_be_said_as_a_message(place: Path) -> None:
    code, said = on_terminal(place, "y\n", "run", "-s", SESSION, "/undo")
    assert (code, files(place)) == (0, BEFORE), said
    code, said = on_terminal(place, "y\n", "run", "-s", SESSION, "/redo")
    assert (code, files(place)) == (0, AFTER), said
    lost = run(place, "run", "/undo")
    assert (lost.returncode, "/undo needs a session" in lost.stderr) == (2, True)


def test_a_pending_undo_is_shown_wherever_the_session_is(place: Path) -> None:
    assert "undone" not in run(place, "session", "messages", SESSION).stdout
    run(place, "session", "undo", SESSION, "--yes")
    heads = [line for line in run(place, "session", "messages", SESSION).stdout.splitlines() if "msg_" in line]
    assert len(heads) == 2
    assert all(line.endswith("undone") for line in heads)
    assert "undo pending" in run(place, "session", "list").stdout
    for command in ("show", "status"):
        assert "`session redo` brings it back" in run(place, "session", command, SESSION).stdout
    diff = run(place, "session", "diff", SESSION)
    assert (diff.stdout, diff.stderr) == ("", "No file was changed.\n")


def test_after_an_undo_became_final_what_it_took_back_is_not_reported(place: Path) -> None:
    run(place, "session", "undo", SESSION, "--yes")

    async def say() -> None:
        async with opened(f"sqlite:{place.parent}/store.db", place.parent) as stage:
            await stage.ask(SESSION, "Something else")
            assert await stage.tk.diffs(SESSION) == ()
            assert await stage.tk.changes(SESSION) == ()

    anyio.run(say)
    assert "Changed" not in run(place, "session", "show", SESSION).stdout


def test_the_question_names_the_prompt_and_the_list_is_cut_on_a_terminal(place: Path) -> None:
    code, said = on_terminal(place, "n\n", "session", "undo", SESSION)
    assert (code, 'Undo "Do it"? [y/N]' in said) == (1, True)
    made = [FileRestore(file=f"f{number}", kind="delete") for number in range(80)]
    files = (*made, FileRestore(file="odd\nname", kind="conflict", reason="why"))
    narrow, pipe = Screen(width=80), Screen()
    lines = undoing._cut(narrow, undoing._lines(narrow, files))
    assert (len(lines), lines[0]) == (51, "! odd\\nname  stays as it is: why")
    assert lines[-1].startswith("... and 31 more")
    assert len(undoing._cut(pipe, undoing._lines(pipe, files))) == 81


def test_words_after_the_command_are_refused(place: Path) -> None:
    refused = run(place, "run", "-s", SESSION, "/undo please")
    assert (refused.returncode, "/undo goes alone" in refused.stderr) == (2, True)
    assert files(place) == AFTER


def test_conflicts_are_counted_at_the_end_and_listed_once(place: Path) -> None:
    (place / "made").write_text("made, and mine\n")
    done = run(place, "session", "undo", SESSION, "--yes")
    assert done.returncode == 1
    assert done.stderr.count("made") == 1
    assert done.stderr.endswith(
        "2 files changed; 1 file stays as it is. Redo brings back what is undone, until the next prompt.\n"
    )


def test_changes_that_are_not_recorded_are_told_once(shop: Shop) -> None:
    subprocess.run(["git", "init", "-q", "nested"], cwd=shop.project, timeout=TIMEOUT_S, check=True)
    shop.run("run `echo x > nested/a; echo x > b`", "--auto")
    done = shop.process("session", "undo", shop.sessions()[0]["id"], "--yes")
    assert (done.returncode, done.stderr.count("not recorded")) == (1, 1), done.stderr


def test_from_a_deleted_directory_it_is_said_what_is_wrong(place: Path) -> None:
    command = f'mkdir lost && cd lost && rmdir ../lost && exec "{sys.executable}" -m turnkeeper session undo {SESSION}'
    done = subprocess.run(
        ["sh", "-c", command], cwd=place, env=environ(place), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, "the working directory is no longer there" in done.stderr) == (1, True)


def test_half_an_event_is_refused(place: Path) -> None:
    for words in (["fork", SESSION, "--at", "1.5"], ["show", SESSION, "--at", "1.5"], ["diff", SESSION, "1.5", "2"]):
        done = run(place, "session", *words)
        assert (done.returncode, "1.5" in done.stderr) == (2, True), words


def test_a_file_that_could_not_be_written_is_named_with_what_to_do(place: Path) -> None:
    blocking = place / second_names("kept")[0]
    run(place, "session", "undo", SESSION, "--yes")
    (blocking / "x").mkdir(parents=True)
    failed = run(place, "session", "redo", SESSION, "--yes")
    assert (failed.returncode, f"`turnkeeper session redo {SESSION}` tries again" in failed.stderr) == (1, True)
    (blocking / "x").rmdir()
    blocking.rmdir()
    assert run(place, "session", "redo", SESSION, "--yes").returncode == 0
    assert files(place) == AFTER

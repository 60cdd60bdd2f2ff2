"""The commands that import histories of other programs."""

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_store import process, tk
from histories import CLAUDE, FIXTURES, lines_of, written

DEADLINE_S = 60


def test_a_report_names_counts_and_the_session_its_origin(tmp_path: Path) -> None:
    data = tmp_path / "data"
    done = tk(data, "import", "claude-code", str(FIXTURES / "claude-code"))
    assert done.code == 0, done.err
    assert "Imported  5 sessions, 28 messages, 48 parts\n" in done.out
    assert "Lines     40 read: 35 understood, 5 kept as they are, 0 not imported\n" in done.out
    report = json.loads(tk(data, "import", "claude-code", str(FIXTURES / "claude-code"), "--json").out)
    assert report["lines"] == {"read": 40, "understood": 35, "foreign": 5, "reported": 0}
    assert report["unchanged"]["sessions"] == 5
    listed = json.loads(tk(data, "session", "list", "--search", "Drift", "--json").out)["items"]
    [session] = [one for one in listed if not one["title"].endswith("(branch)")]
    shown = tk(data, "session", "show", session["id"]).out
    assert "Imported from  claude-code: 5b0c7a52-93f4-4d1e-9d1c-0a4e6f0b1c11, branch gauge\n" in shown
    assert "claude-code" in tk(data, "session", "list").out


@pytest.mark.parametrize("program", ["claude-code", "codex", "gemini"])
def test_an_imported_session_and_a_branch_can_be_continued(tmp_path: Path, program: str) -> None:
    data = tmp_path / "data"
    assert tk(data, "import", program, str(FIXTURES / program)).code == 0
    for session in json.loads(tk(data, "session", "list", "--json").out)["items"][:2]:
        words = ("run", "-s", session["id"], "-m", "offline/tk-1", "Say hello.")
        done = process(data, *words, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        last = json.loads(tk(data, "session", "messages", session["id"], "--limit", "1", "--json").out)["items"][-1]
        assert last["info"]["role"] == "assistant"
        assert "error" not in last["info"]


def test_a_dry_run_makes_no_store(tmp_path: Path) -> None:
    done = tk(tmp_path / "data", "import", "codex", str(FIXTURES / "codex"), "--dry-run")
    assert (done.code, "Would import  5 sessions" in done.out) == (0, True)
    assert not (tmp_path / "data/turnkeeper.db").exists()


def test_what_is_broken_is_named_and_the_exit_code_is_1(tmp_path: Path) -> None:
    file = written(tmp_path / "one.jsonl", [*lines_of(CLAUDE)[:3], b"oops\n"])
    done = tk(tmp_path / "data", "import", "claude-code", str(file))
    assert done.code == 1
    assert f"  {file}  line 4: is not JSON\n" in done.out
    missing = tk(tmp_path / "data", "import", "gemini", str(tmp_path / "nowhere"))
    assert (missing.code, "there is nothing at" in missing.err) == (1, True)


def size_of(path: Path) -> int:
    """The bytes of a file that another process may make and remove at any moment."""
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def test_an_interrupt_stops_between_sessions_and_the_next_import_continues(tmp_path: Path) -> None:
    folder = tmp_path / "projects/x"
    folder.mkdir(parents=True)
    # Sessions of their own: copies of one session would be written once, and the import would end at that moment.
    for number in range(1_000):
        id = f"{number:08d}-0000-4000-8000-000000000000"
        (folder / f"{id}.jsonl").write_text(CLAUDE.read_text().replace(CLAUDE.stem, id))
    environ = {"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "TURNKEEPER_DATA": str(tmp_path / "data")}
    command = [sys.executable, "-m", "turnkeeper.cli.main", "import", "claude-code", str(folder)]
    with subprocess.Popen(command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        written_to, end = tmp_path / "data/turnkeeper.db-wal", time.monotonic() + DEADLINE_S
        while time.monotonic() < end and size_of(written_to) <= 1_000_000:
            assert running.poll() is None
        running.send_signal(signal.SIGINT)
        _, said = running.communicate(timeout=DEADLINE_S)
    assert running.returncode == 130
    assert "Stopped after" in said
    assert tk(tmp_path / "data", "doctor").code == 0

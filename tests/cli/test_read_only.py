"""A store on a medium that cannot be written: it is read, exported and checked, and writes are refused."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_store import Family, command, environment

CHILD = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" && exec "$@"'


def namespaces() -> bool:
    """Whether this system lets us mount something that only a child process sees."""
    if shutil.which("unshare") is None:
        return False
    tried = subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "true"], capture_output=True, check=False
    )
    return tried.returncode == 0


pytestmark = pytest.mark.skipif(not namespaces(), reason="needs user and mount namespaces")


def read_only(data: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in a process for which the data directory is a read-only medium."""
    return subprocess.run(
        ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", CHILD, str(data), *command(*words)],
        env=environment(data),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def leave_in_use(data: Path, session_id: str, *, with_index: bool) -> None:
    """Leave the store as a process that was killed leaves it: its last write is in the write-ahead log alone."""
    killed = subprocess.run(
        command("session", "rename", session_id, "Only in the log"),
        env={**environment(data), "TURNKEEPER_CRASH": "sqlite.after-commit"},
        capture_output=True,
        check=False,
        timeout=60,
    )
    assert killed.returncode == 137
    assert (data / "turnkeeper.db-wal").stat().st_size
    if not with_index:
        os.unlink(data / "turnkeeper.db-shm")


def test_a_store_on_a_read_only_medium_is_read_checked_and_exported(data: Path, family: Family, tmp_path: Path) -> None:
    before = sorted(data.iterdir())
    target = tmp_path / "all.jsonl"
    for words in (
        ("session", "list", "--all"),
        ("session", "messages", family.root.id),
        ("session", "search", "gust"),
        ("session", "export", "--all", "--output", str(target)),
        ("doctor",),
    ):
        done = read_only(data, *words)
        assert (done.returncode, done.stderr.replace("Exporting sessions", "")) == (0, ""), words
    assert target.stat().st_size
    assert sorted(data.iterdir()) == before


@pytest.mark.parametrize("with_index", [True, False], ids=["index", "no index"])
def test_what_is_in_the_write_ahead_log_is_read_on_a_read_only_medium(
    data: Path, family: Family, with_index: bool
) -> None:
    leave_in_use(data, family.root.id, with_index=with_index)
    done = read_only(data, "session", "show", family.root.id)
    assert (done.returncode, done.stderr) == (0, "")
    assert "Only in the log" in done.stdout
    assert read_only(data, "doctor").returncode == 0


def test_a_write_to_a_read_only_medium_is_refused_in_words(data: Path, family: Family) -> None:
    done = read_only(data, "session", "rename", family.root.id, "New")
    assert done.returncode == 1
    assert "it may not be written to; check the permissions of the file and its directory" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_that_is_not_there_cannot_be_made_on_a_read_only_medium(data: Path) -> None:
    done = read_only(data, "session", "create")
    assert done.returncode == 1
    assert "Traceback" not in done.stderr

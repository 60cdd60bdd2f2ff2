"""The command line on a store in Postgres."""

from pathlib import Path

import pytest
from cli_store import process
from stores import store_url


@pytest.fixture
def url(tmp_path: Path) -> str:
    return store_url("postgres", tmp_path)


def test_sessions_are_made_listed_and_checked(tmp_path: Path, url: str) -> None:
    made = process(tmp_path, "session", "create", "--title", "Wind over the bay", "--store", url)
    assert (made.returncode, made.stderr) == (0, "")
    listed = process(tmp_path, "session", "list", "--all", "--store", url)
    assert "Wind over the bay" in listed.stdout
    checked = process(tmp_path, "doctor", "--store", url)
    assert checked.returncode == 0
    assert "Postgres 1" in checked.stdout
    assert "✓ sound" in checked.stdout


def test_no_command_shows_the_password(tmp_path: Path) -> None:
    secret = f"postgresql://ada:s3cret@127.0.0.1:1/turns?host={tmp_path}"
    shown = f"postgresql://ada:***@127.0.0.1:1/turns?host={tmp_path}"
    told = process(tmp_path, "db", "path", "--store", secret)
    assert (told.returncode, told.stdout) == (0, f"{shown}\n")
    as_json = process(tmp_path, "db", "path", "--store", secret, "--json")
    assert as_json.stdout == f'{{"store":"{shown}","path":null,"exists":null}}\n'
    for words in (("session", "list"), ("doctor",), ("doctor", "--json"), ("session", "create")):
        failed = process(tmp_path, *words, "--store", secret)
        assert failed.returncode == 1
        assert shown in failed.stdout + failed.stderr
        assert "s3cret" not in failed.stdout + failed.stderr
        assert "Traceback" not in failed.stderr

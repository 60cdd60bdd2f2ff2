"""Foreseeable failures: one or two clear lines, a stable exit code, never a traceback."""

import errno
import json
import os
import subprocess
from pathlib import Path

import pytest
from cli_store import Family, command, tk
from workshop import Shop

from turnkeeper.cli.failures import problem
from turnkeeper.cli.main import main

REFUSED, USAGE = 1, 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["session", "show", "ses_nowhere"], REFUSED, "there is no session 'ses_nowhere'"),
        (["session", "list", "--before", "rubbish!"], REFUSED, "is not a cursor"),
        (["session", "list", "--limit", "0"], USAGE, "Must be >= 1"),
        (["session", "list", "--since", "yesterday-ish"], USAGE, "is not a time"),
        (["session", "list", "--since", "3y"], USAGE, "is not a time"),
        (["session", "list", "--project", "x", "--directory", "."], REFUSED, "there is no project"),
        (["session", "list", "--project", ".", "--directory", "."], REFUSED, "not by several"),
        (["session", "search", " "], USAGE, "words"),
        (["session", "search", "x", "--limit", "0"], USAGE, "Must be >= 1"),
        (["session", "messages", "x", "--limit", "-1"], USAGE, "Must be >= 1"),
        (["serve", "--port", "99999"], USAGE, "Must be <= 65535"),
        (["session", "list", "--server", "nonsense"], USAGE, "http://HOST:PORT"),
        (["session", "create", "--directory", "/no/such/place"], REFUSED, "is not a directory"),
        (["session", "create", "--model", "claude"], USAGE, "PROVIDER/MODEL"),
        (["session", "create", "--metadata", "{"], USAGE, "not JSON"),
        (["session", "create", "--metadata", "[]"], USAGE, "JSON object"),
        (["session", "create", "--title", "  "], REFUSED, "title"),
        (["session", "create", "--id", "no good"], REFUSED, "is not a session id"),
        (["session", "create", "--parent", "nobody"], REFUSED, "there is no session"),
        (["session", "move", "x", "/no/such/place"], REFUSED, "is not a directory"),
        (["session", "list", "--store", "mysql:x"], USAGE, "cannot tell which store"),
        (["session", "list", "--store", "sqlite:"], USAGE, "names no place"),
        (["session", "list", "--store", "sqlite:."], USAGE, "it is a directory; name a file in it"),
        (["doctor", "--store", "sqlite:/dev/null"], USAGE, "it is not a regular file"),
        (["session", "create", "--store", "files:/dev/null"], USAGE, "it is not a directory"),
        (["session", "list", "--store", "memory:x"], USAGE, "has no place"),
        (["db", "path", "--store", "mysql:x"], USAGE, "names no store"),
        (["doctor", "--store", "sqlite:/no/such/store.db"], REFUSED, "to check"),
        (["session", "create", "--store", "sqlite:/dev/null/x.db"], REFUSED, "/dev/null/x.db"),
        (["session", "create", "--store", "files:/dev/null/x"], REFUSED, "/dev/null"),
        (["session", "show", "ses_"], USAGE, "at least 4 characters"),
        (["session", "export", "--all"], USAGE, "--output DIR"),
        (["session", "export", "--output", "--all"], USAGE, "--output needs a path"),
        (["run", "--fork", "x"], USAGE, "--fork"),
        (["stats", "--days", "-1"], USAGE, "from 0 to"),
        (["stats", "--days", "99999999999999"], USAGE, "from 0 to"),
        (["session", "create", "--metadata", '{"a":' * 3000 + "1" + "}" * 3000], USAGE, "not JSON"),
        (["session", "create", "--metadata", '{"a": NaN}'], USAGE, "not JSON"),
        (["session", "create", "--metadata", '{"a": "\\ud800"}'], USAGE, "not JSON"),
        (["session", "create", "--title", "\udcff"], REFUSED, "half a character"),
        (["session", "show", "\udcff"], REFUSED, "there is no session"),
        (["import", "/dev/zero"], REFUSED, "is a device"),
        (["session", "show"], USAGE, "requires an argument"),
        (["session", "lst"], USAGE, 'Unknown command "lst". Did you mean "list"'),
        (["sessions"], USAGE, "Unknown command"),
        (["undo"], USAGE, "there is no command 'undo'; write `turnkeeper session undo`"),
        (["share", "x", "--yes"], USAGE, "write `turnkeeper session share`"),
        (["session", "lst"], USAGE, "move, ... Try --help."),
        (["session", "list", "--frobnicate"], USAGE, "Unknown option"),
        (["session", "list", "--limit", "many"], USAGE, "many"),
        (["session", "list", "--store"], USAGE, "--store"),
        (["session", "list", "superfluous"], USAGE, "superfluous"),
        (["session", "rename", "x"], USAGE, "requires an argument"),
    ],
)
def test_a_failure_says_what_is_wrong(data: Path, words: list[str], code: int, said: str) -> None:
    answer = tk(data, *words)
    assert (answer.code, answer.out) == (code, "")
    assert said in answer.err
    assert 1 <= len(answer.err.splitlines()) <= 2

    as_json = tk(data, *words, "--json")
    assert (as_json.code, as_json.out) == (code, "")
    [line] = as_json.err.splitlines()
    error = json.loads(line)["error"]
    assert said in error["message"]
    assert set(error) == {"name", "message"}


@pytest.mark.parametrize("words", [["session", "create", "--directory"], ["session", "move", "x"]])
def test_a_loop_of_links_is_refused_as_a_directory(data: Path, tmp_path: Path, words: list[str]) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    answer = tk(data, *words, str(loop))
    assert (answer.code, answer.out) == (REFUSED, "")
    assert "is not a directory" in answer.err
    assert tk(data, "session", "list", "--directory", str(loop), "--json").json == {"items": []}


def test_a_file_that_is_no_store_is_refused_with_its_name(data: Path) -> None:
    (data / "turnkeeper.db").write_bytes(b"not a database at all, but long enough to be looked at " * 50)
    answer = tk(data, "session", "list")
    assert (answer.code, answer.out) == (REFUSED, "")
    assert "it is not a SQLite database" in answer.err


def test_a_store_that_was_named_and_is_not_there_is_empty_and_told(data: Path) -> None:
    named = f"sqlite:{data / 'other.db'}"
    answer = tk(data, "session", "list", "--store", named)
    assert (answer.code, answer.out) == (0, "")
    assert f"There is no store {named!r} yet" in answer.err
    assert list(data.iterdir()) == []


def test_options_may_stand_before_the_command(data: Path, family: Family) -> None:
    behind = tk(data, "session", "list", "--json")
    assert [one["id"] for one in behind.json["items"]] == [family.root.id]
    store = f"sqlite:{data / 'turnkeeper.db'}"
    assert tk(data, "--json", "session", "list") == behind
    assert tk(data, "--store", store, "--json", "session", "list") == behind
    assert tk(data, f"--store={store}", "session", "list", "--json") == behind


def test_words_behind_two_dashes_are_no_options(data: Path) -> None:
    tk(data, "session", "create", "--id", "ses_dashes")
    assert main(["--data", str(data), "session", "rename", "--", "ses_dashes", "--json"]) == 0
    assert tk(data, "session", "show", "ses_dashes", "--json").json["title"] == "--json"


def test_a_warning_brings_no_control_characters_of_a_project_to_the_terminal(shop: Shop) -> None:
    folder = shop.project / ".turnkeeper" / "command"
    folder.mkdir(parents=True)
    (folder / "red\x1b[31m\x07.md").write_text("A prompt.")
    done = shop.process("run", "-m", "offline/tk-1", "hello", TURNKEEPER_TRUST="0")
    assert done.returncode == 0
    assert "not in force until" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stderr)


def test_a_failure_brings_no_control_characters_of_a_project_to_the_terminal(shop: Shop) -> None:
    folder = shop.project / ".turnkeeper" / "agent"
    folder.mkdir(parents=True)
    (folder / "red\x1b[31m\x07.md").write_text("A prompt.")
    done = shop.process("agent", "show", "nobody")
    assert done.returncode == REFUSED
    assert "red" in done.stderr
    assert not {"\x1b", "\x07"} & set(done.stderr)


@pytest.mark.parametrize("words", [("config", "check"), ("config", "show"), ("trust",)])
def test_a_directory_whose_name_is_no_text_is_refused(shop: Shop, words: tuple[str, ...]) -> None:
    odd = shop._replace(project=shop.project / os.fsdecode(b"tides\xff"))
    odd.project.mkdir()
    odd.configure(model="offline/tk-1")
    refused = odd.process(*words, "--json")
    assert (refused.returncode, refused.stdout) == (REFUSED, "")
    assert "is not UTF-8" in json.loads(refused.stderr)["error"]["message"]


def test_a_directory_whose_name_is_not_utf_8_is_named(tmp_path: Path, data: Path) -> None:
    place = tmp_path / os.fsdecode(b"d\xff")
    place.mkdir()
    answer = tk(data, "session", "create", "--directory", str(place))
    said = f"turnkeeper: the session cannot be stored: {str(place)!r} is not UTF-8"
    assert (answer.code, " ".join(answer.err.split())) == (REFUSED, said)


@pytest.mark.parametrize("words", [["serve", "--port", "0"], ["worker"], ["run", "hi"]], ids=lambda words: words[0])
def test_too_few_files_are_refused_before_anything_runs(words: list[str], shop: Shop) -> None:
    run = subprocess.run(
        ["/bin/sh", "-c", 'ulimit -n 24 && exec "$@"', "sh", *command(*words)],
        env=shop.environ(),
        cwd=shop.project,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    said = " ".join(run.stderr.split())
    assert "this process may have 24 files open, and needs at least 64; raise the limit" in said
    assert (run.returncode, run.stdout, "Traceback" in said) == (1, "", False)


def test_a_failure_because_of_the_limit_of_files_names_the_limit_and_not_the_file() -> None:
    found = problem(OSError(errno.EMFILE, "Too many open files", "/some/module.py"))
    assert found is not None
    assert (found.code, "`ulimit -n 1024`" in found.message, "module" in found.message) == (1, True, False)

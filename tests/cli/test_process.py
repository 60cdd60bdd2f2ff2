"""The program as a process: streams, terminals, signals, and what it loads."""

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from cli_store import Family, command, environment, process

import turnkeeper


def test_a_walk_through_the_commands(data: Path) -> None:
    made = json.loads(process(data, "session", "create", "--title", "Wind over the bay", "--json").stdout)
    fork = json.loads(process(data, "session", "fork", made["slug"], "--json").stdout)
    assert process(data, "session", "archive", made["id"][:18]).returncode == 0
    listed = json.loads(process(data, "session", "list", "--json").stdout)
    assert [one["id"] for one in listed["items"]] == [fork["id"]]
    assert process(data, "session", "delete", fork["id"], "--yes").returncode == 0
    assert json.loads(process(data, "doctor", "--json").stdout)["sessions"] == 1


def test_delete_without_a_terminal_is_refused(data: Path, family: Family) -> None:
    refused = process(data, "session", "delete", family.root.id, stdin=subprocess.DEVNULL)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "--yes" in refused.stderr


def test_the_environment_names_the_store(data: Path) -> None:
    elsewhere = f"files:{data / 'tree'}"
    run = subprocess.run(
        command("db", "path", "--json"),
        env=environment(data, TURNKEEPER_STORE=elsewhere),
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(run.stdout)["store"] == elsewhere
    given = subprocess.run(
        command("db", "path", "--data", str(data)),
        env=environment(data, TURNKEEPER_STORE=elsewhere),
        capture_output=True,
        text=True,
        check=True,
    )
    assert given.stdout == f"{data / 'turnkeeper.db'}\n"


def test_without_a_home_the_program_says_what_to_set(data: Path) -> None:
    bare = {name: value for name, value in environment(data).items() if name not in ("HOME", "TURNKEEPER_DATA")}
    bare.pop("XDG_DATA_HOME", None)
    run = subprocess.run(command("session", "list"), env=bare, capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "set TURNKEEPER_DATA" in run.stderr
    assert len(run.stderr.splitlines()) == 1


@pytest.mark.parametrize("words", [["session", "create"], ["doctor"], ["run", "hello"]])
def test_a_system_that_allows_no_thread_is_told_in_a_line(data: Path, family: Family, words: list[str]) -> None:
    # A stack that is larger than all memory stands for a limit of processes, which root does not have.
    limited = ["/bin/sh", "-c", 'ulimit -s 8000000; ulimit -v 4000000; exec "$@"', "sh", *command(*words)]
    run = subprocess.run(limited, env=environment(data), capture_output=True, text=True, check=False, timeout=60)
    assert (run.returncode, run.stdout) == (1, "")
    assert " ".join(run.stderr.split()).startswith("turnkeeper: the system allows no further thread or process; end")
    assert "Traceback" not in run.stderr
    assert process(data, "doctor").returncode == 0


@pytest.mark.parametrize("unbuffered", [{}, {"PYTHONUNBUFFERED": "1"}])
@pytest.mark.parametrize(
    "words",
    [
        ["session", "create", "--store", "sqlite:here.db"],
        ["session", "create", "--store", "files:here"],
        ["session", "export", "{id}", "--output", "here.json"],
        ["session", "export", "{id}"],
        ["session", "list", "--all", "--json"],
        ["config", "schema"],
        ["--help"],
    ],
)
def test_a_file_that_may_not_become_larger_is_told_in_a_line(
    data: Path, family: Family, tmp_path: Path, words: list[str], unbuffered: dict[str, str]
) -> None:
    named = [word.format(id=family.root.id) for word in words]
    limited = ["/bin/bash", "-c", 'ulimit -S -f 1; exec "$@" > out', "bash", *command(*named)]
    environ = environment(data, **unbuffered)
    run = subprocess.run(limited, env=environ, stderr=subprocess.PIPE, text=True, cwd=tmp_path, check=False, timeout=60)
    said = " ".join(run.stderr.split())
    assert (run.returncode, "raise `ulimit -f`" in said, "Traceback" in said) == (1, True, False), said


def test_a_timezone_that_does_not_exist_is_reported(data: Path) -> None:
    for name, told in (("Mars/Olympus", True), ("Europe/Berlin", False), ("CET-1CEST", False)):
        run = subprocess.run(
            command("db", "path"), env=environment(data, TZ=name), capture_output=True, text=True, check=True
        )
        assert (f"TZ={name} is not a known timezone" in run.stderr) is told


@pytest.mark.parametrize("words", [["--version"], ["-V"]])
def test_the_version_is_printed(data: Path, words: list[str]) -> None:
    assert process(data, *words).stdout == f"turnkeeper {turnkeeper.__version__}\n"
    assert json.loads(process(data, *words, "--json").stdout) == {"version": turnkeeper.__version__}


@pytest.mark.parametrize("words", [["session", "list"], ["session", "list", "--json"], ["--help"]])
def test_a_reader_that_leaves_is_no_failure(data: Path, family: Family, words: list[str]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    run = subprocess.run(
        command(*words), env=environment(data), stdout=writing, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(writing)
    assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.parametrize("words", [["session", "list"], ["session", "list", "--json"]])
def test_a_full_disk_behind_the_output_is_told(data: Path, family: Family, words: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        run = subprocess.run(
            command(*words), env=environment(data), stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert run.returncode == 1
    assert "No space left" in run.stderr
    assert len(run.stderr.splitlines()) == 1


def test_a_closed_output_is_like_a_bin(data: Path, family: Family) -> None:
    script = f"exec {' '.join(command('session', 'list', '--json'))} >&-"
    run = subprocess.run(["sh", "-c", script], env=environment(data), stderr=subprocess.PIPE, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def test_a_terminal_without_unicode_gets_question_marks(data: Path, family: Family) -> None:
    run = subprocess.run(
        command("session", "messages", family.root.id),
        env=environment(data, PYTHONIOENCODING="ascii"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert "  ? bash  Read the gauge  1.5 s\n" in run.stdout


@contextmanager
def terminal(data: Path, *words: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """The program on a terminal of its own, 80 columns wide."""
    ours, its = pty.openpty()
    started = subprocess.Popen(
        command(*words),
        env=environment(data, COLUMNS="80", TERM="xterm"),
        stdin=its,
        stdout=its,
        stderr=its,
        start_new_session=True,
    )
    os.close(its)
    try:
        yield started, ours
    finally:
        started.kill()
        started.wait()
        os.close(ours)


def read_until(ours: int, wanted: str) -> str:
    """What the program wrote up to these words, or up to its end."""
    seen = b""
    while wanted.encode() not in seen or not wanted:
        assert select.select([ours], [], [], 60)[0], f"the program stopped after {seen.decode()!r}"
        try:
            more = os.read(ours, 65536)
        except OSError:  # The other end is closed: the program has ended.
            more = b""
        if not more:
            break
        seen += more
    return seen.decode()


def test_delete_asks_a_person_and_removes_at_yes(data: Path, family: Family) -> None:
    with terminal(data, "session", "delete", family.root.slug) as (started, ours):
        asked = read_until(ours, "[y/N] ")
        assert f"Remove {family.root.id} (Wind over the bay) and 1 child for ever? [y/N] " in asked
        os.write(ours, b"y\n")
        said = read_until(ours, "")
        assert started.wait(60) == 0
    assert said.count("Removed") == 2


@pytest.mark.parametrize("reply", [b"n\n", b"\n", b"\x04"])
def test_delete_asks_a_person_and_keeps_at_anything_else(data: Path, family: Family, reply: bytes) -> None:
    with terminal(data, "session", "delete", family.root.id) as (started, ours):
        read_until(ours, "[y/N] ")
        os.write(ours, reply)
        assert "nothing was removed" in read_until(ours, "")
        assert started.wait(60) == 1
    assert process(data, "session", "show", family.root.id).returncode == 0


def test_an_interrupt_ends_with_130_and_one_line(data: Path, family: Family) -> None:
    with terminal(data, "session", "delete", family.root.id) as (started, ours):
        read_until(ours, "[y/N] ")
        started.send_signal(signal.SIGINT)
        said = read_until(ours, "")
        assert started.wait(60) == 130
    assert "interrupted" in said
    assert "Traceback" not in said
    assert process(data, "session", "show", family.root.id).returncode == 0


def test_a_terminal_gets_colours_and_lines_that_fit(data: Path, family: Family) -> None:
    long = "A title that is far too long to fit beside an id, a time and a directory in eighty columns"
    process(data, "session", "rename", family.root.id, long)
    with terminal(data, "session", "list", "--all") as (started, ours):
        shown = read_until(ours, "")
        assert started.wait(60) == 0
    lines = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in shown.splitlines()]
    assert len(lines) == 4
    assert max(map(len, lines)) <= 80
    assert all(any(one.id in line for line in lines) for one in family)
    assert "\x1b[36m" in shown
    assert "…" in shown


def test_a_terminal_gets_indented_json(data: Path, family: Family) -> None:
    with terminal(data, "session", "show", family.root.id, "--json") as (started, ours):
        shown = read_until(ours, "")
        assert started.wait(60) == 0
    assert shown.startswith('{\r\n  "id": ')


@pytest.mark.parametrize(
    ("words", "unwanted"),
    [
        (["--version"], ["asyncio", "msgspec", "apsw", "rich", "textual", "turnkeeper.cli.listing"]),
        (["--help"], ["asyncio", "anyio", "msgspec", "apsw", "textual", "turnkeeper.app"]),
        (["session", "list", "--help"], ["asyncio", "anyio", "msgspec", "apsw", "turnkeeper.app"]),
        (["chat", "--help"], ["asyncio", "anyio", "msgspec", "apsw", "textual", "turnkeeper.app"]),
        (["db", "path"], ["asyncio", "anyio", "apsw", "rich", "turnkeeper.app"]),
        (["session", "list"], ["rich", "anyio._backends", "turnkeeper.cli.reading", "turnkeeper.store.engines.files"]),
    ],
)
def test_a_command_loads_only_what_it_needs(data: Path, family: Family, words: list[str], unwanted: list[str]) -> None:
    script = (
        "import sys\nfrom turnkeeper.cli.main import main\ncode = main(sys.argv[1:])\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)\nsys.exit(code)"
    )
    run = subprocess.run(
        [sys.executable, "-c", script, *words], env=environment(data), capture_output=True, text=True, check=True
    )
    assert sorted(set(unwanted).intersection(run.stderr.split())) == []

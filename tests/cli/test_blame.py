"""``session blame``: who wrote each line of a file."""

import asyncio
from pathlib import Path

import pytest
from attempts import AttemptProject, bash
from cli_store import tk
from workshop import Shop

from turnkeeper.workspace import shadow


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("code.py", "first\n")
    made.commit()
    return made


def test_each_line_has_its_session_its_turn_and_its_call(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[bash("echo second >> code.py")]]))
    project.write("code.py", "first\nsecond\nby hand\n")
    session = tk(project.data, "session", "show", session_id, "--json").json
    found = tk(project.data, "session", "blame", str(project.top / "code.py"), "--json").json
    [first, second, third] = found["items"]
    assert (first, third) == ({"line": 1, "text": "first"}, {"line": 3, "text": "by hand"})
    origin = second["origin"]
    assert (origin["sessionID"], origin["slug"], origin["calls"][0]["tool"]) == (session_id, session["slug"], "bash")
    shown = tk(project.data, "session", "blame", str(project.top / "code.py")).out.splitlines()
    who = f"{session['slug']}  {origin['messageID'][:16]}  bash"
    assert shown == [f"{'-'.ljust(len(who))}  1  first", f"{who}  2  second", f"{'-'.ljust(len(who))}  3  by hand"]
    assert tk(project.data, "session", "diff", session_id, "--message", origin["messageID"][:16]).code == 0


def test_a_file_is_named_from_the_current_directory(project: AttemptProject) -> None:
    asyncio.run(project.live([[bash("echo second >> code.py")]]))
    shop = Shop(project.data, project.top, project.home)
    done = shop.process("session", "blame", "code.py")
    assert (done.returncode, len(done.stdout.splitlines())) == (0, 2), done.stderr
    missing = shop.process("session", "blame", "nope.py")
    assert (missing.returncode, "there is no file" in missing.stderr) == (1, True)


def test_a_person_is_told_of_snapshots_that_are_gone(project: AttemptProject) -> None:
    asyncio.run(project.live([[bash("echo second >> code.py")]]))
    (project.data / shadow.DIRECTORY).rename(project.home / "gone")
    answer = tk(project.data, "session", "blame", str(project.top / "code.py"))
    assert (answer.code, answer.out) == (0, "-      1  first\n-      2  second\n")
    assert answer.err == "Left out: 1 turn, because of their number or of snapshots no longer kept.\n"
    assert tk(project.data, "session", "blame", str(project.top / "code.py"), "--json").json["leftOut"] == 1


def test_an_empty_file_says_so(project: AttemptProject) -> None:
    asyncio.run(project.live([]))
    empty = project.write("empty.py", "")
    assert tk(project.data, "session", "blame", str(empty)).err == "The file is empty.\n"

"""``session diff``: what a session changed, for people and for programs."""

import asyncio
from pathlib import Path

import pytest
from attempts import AttemptProject, bash, prompts, write
from cli_store import Answer, tk
from workshop import Shop

from turnkeeper.cli.change_lines import patch_lines, stat_lines
from turnkeeper.cli.screen import Screen
from turnkeeper.model.file_change import FileChange

LINES = "".join(f"line {number}\n" for number in range(1, 21))
FIRST = [[write("old.txt", LINES), bash("printf '\\0\\1' > logo.bin")]]
SECOND = [[bash("mv old.txt new.txt; sed -i 's/line 9$/line nine/' new.txt")]]

STAT = """\
logo.bin  added     binary
old.txt   added     20 ++++++++++++++++++++
2 files, +20 -0 lines
"""


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.commit()
    return made


def shown(project: AttemptProject, *words: str) -> Answer:
    return tk(project.data, "session", "diff", *words)


def test_a_diff_in_a_pipe_can_be_applied_and_taken_back(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[write("a.txt", LINES)], [bash("echo more >> kept.txt")]]))
    answer = shown(project, session_id)
    assert answer.code == 0
    project.git("apply", "--reverse", given=answer.out.encode())
    assert project.git("status", "--porcelain") == ""
    project.git("apply", given=answer.out.encode())
    assert (project.top / "a.txt").read_text() == LINES


def test_a_binary_file_is_taken_back_too(project: AttemptProject) -> None:
    (project.top / "logo.bin").write_bytes(bytes(range(256)))
    project.commit()
    session_id = asyncio.run(project.live([[bash("printf '\\0\\1' > logo.bin; printf '\\0' > new.bin")]]))
    project.git("apply", "--reverse", given=shown(project, session_id).out.encode())
    assert project.git("status", "--porcelain") == ""
    assert (project.top / "logo.bin").read_bytes() == bytes(range(256))


def test_text_that_is_not_utf_8_and_long_changes_are_taken_back_too(project: AttemptProject) -> None:
    before = {"latin.txt": "caf\u00e9\nend\n".encode("latin-1"), "long.txt": LINES.encode() * 2000}
    for name, content in before.items():
        project.write(name, content)
    project.commit()
    after = bash(r"printf '\351t\351\n' >> latin.txt; printf '\344\n' > new.txt; sed -i 's/line/word/' long.txt")
    session_id = asyncio.run(project.live([[after]]))
    patch = shown(project, session_id).out.encode("utf-8", "surrogateescape")
    project.git("apply", "--reverse", given=patch)
    assert project.git("status", "--porcelain") == ""
    assert {name: (project.top / name).read_bytes() for name in before} == before
    project.git("apply", given=patch)
    assert (project.top / "new.txt").read_bytes() == b"\xe4\n"


def test_renames_and_binaries_are_named_as_such(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live(FIRST, SECOND))

    async def ids() -> list[str]:
        async with project.opened() as opened:
            return [one.id for one in await prompts(opened, session_id)]

    first, second = asyncio.run(ids())
    found = shown(project, session_id, "--message", second, "--json").json["items"]
    assert [(one["file"], one["renamedFrom"], one["status"]) for one in found] == [("new.txt", "old.txt", "renamed")]
    text = shown(project, session_id, "--message", second).out
    assert "rename from old.txt\nrename to new.txt\n" in text
    assert "-line 9\n+line nine\n" in text
    assert shown(project, session_id, "--message", second, "--stat").out == (
        "old.txt => new.txt  renamed   2 +-\n1 file, +1 -1 lines\n"
    )
    assert "new file mode 100644\nindex " in shown(project, session_id, "--message", first).out
    assert "\nGIT binary patch\n" in shown(project, session_id, "--message", first).out
    assert shown(project, session_id, "--from", first, "--to", second, "--stat").out == STAT
    binary = shown(project, session_id, "--from", first, "--to", second, "--json").json["items"][0]
    assert (binary["file"], binary["binary"]) == ("logo.bin", True)


def test_the_diff_is_painted_on_a_terminal(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[bash("echo -- more > kept.txt")]]))
    shop = Shop(project.data, project.top, project.home)
    with shop.terminal("session", "diff", session_id) as seat:
        assert seat.end() == 0
        assert "\x1b[31m-kept\x1b[0m\r\n\x1b[32m+-- more\x1b[0m" in seat.seen
        assert "\x1b[1m--- a/kept.txt\x1b[0m" in seat.seen
        assert "\x1b[36m@@ -1 +1 @@\x1b[0m" in seat.seen


def test_a_session_that_changed_nothing_says_so(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([]))
    answer = shown(project, session_id)
    assert (answer.code, answer.out, answer.err) == (0, "", "No file was changed.\n")
    assert shown(project, session_id, "--json").json == {"items": []}


def test_a_fork_that_changed_nothing_itself_says_so(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[write("a.txt", LINES)]]))
    fork = tk(project.data, "session", "fork", session_id, "--json").json["id"]
    answer = shown(project, fork)
    said = f"No file was changed since the fork of {session_id}.\n"
    assert (answer.code, answer.out, answer.err) == (0, "", said)
    assert shown(project, fork, "--stat").err == said
    assert shown(project, fork, "--json").json == {"items": []}
    prompt = tk(project.data, "session", "messages", fork, "--json").json["items"][0]["info"]["id"]
    assert shown(project, fork, "--message", prompt, "--stat").out.startswith("a.txt")


def test_a_line_break_in_the_name_of_a_change_that_is_not_known_is_escaped(project: AttemptProject) -> None:
    project.git("init", "-q", "a\nb")
    session_id = asyncio.run(project.live([[bash("echo x > 'a\nb/c'")]]))
    named = r"hanges that are not recorded: a\nb/ (it is a repository of its own)"
    assert shown(project, session_id).err == f"No change is known.\nC{named}.\n"
    undone = tk(project.data, "session", "undo", session_id, "--yes")
    assert f"c{named}" in undone.err


def test_changes_that_are_not_known_are_named(project: AttemptProject) -> None:
    project.git("init", "-q", "nested")
    session_id = asyncio.run(project.live([[bash("echo x > nested/a; echo x > b.txt")]]))
    answer = shown(project, session_id, "--stat")
    assert (answer.code, answer.out.split()[0]) == (0, "b.txt")
    assert answer.err == "Changes that are not recorded: nested/ (it is a repository of its own).\n"
    project.write("turnkeeper.json", '{"snapshot": false}')
    session_id = asyncio.run(project.live([[bash("echo x > c.txt")]]))
    answer = shown(project, session_id)
    assert (answer.code, answer.out) == (1, "")
    assert answer.err.startswith("No change is known.\nWhat these turns changed is not known: msg_")
    told = shown(project, session_id, "--json").json
    assert (told["items"], told["notKnown"][:40]) == ([], "what these turns changed is not known: m")


@pytest.mark.parametrize(
    ("words", "code", "error"),
    [
        (("--message", "msg_nope", "--from", "1"), 2, "--message goes without --from and --to"),
        (("--from", "0"), 1, "has no event 0"),
        (("--to", "999"), 1, "has no event 999"),
        (("--from", "msg_nope"), 1, "there is no message 'msg_nope'"),
        (("--from", "9" * 5000), 1, "there is no message '999"),
    ],
)
def test_wrong_moments_are_refused(project: AttemptProject, words: tuple[str, ...], code: int, error: str) -> None:
    answer = shown(project, asyncio.run(project.live([[write("a.txt", "1\n")]])), *words)
    assert (answer.code, answer.out) == (code, "")
    assert error in answer.err


def a_change(file: str, status: str = "modified", **more: object) -> FileChange:
    return FileChange(file=file, status="modified", additions=0, deletions=0).but(status=status, **more)


def test_a_deleted_line_that_looks_like_a_head_is_painted_as_deleted() -> None:
    patch = "--- a/x\n+++ b/x\n@@ -1,2 +1 @@\n--- not a head\n same\n\\ No newline at end of file\n"
    lines = list(patch_lines(Screen(width=80, has_colors=True), [a_change("x", patch=patch)]))
    bold, red = "\x1b[1m", "\x1b[31m"
    assert [lines[0], lines[3]] == [f"{bold}--- a/x\x1b[0m", f"{red}--- not a head\x1b[0m"]
    assert lines[4] == " same"


def test_a_name_cannot_move_the_cursor() -> None:
    [line, _] = stat_lines(Screen(), [a_change("evil\x1b[2J.txt", additions=1)])
    assert "\x1b" not in line


def test_a_binary_file_is_one_line_on_a_terminal() -> None:
    patch = "diff --git a/x b/x\nindex 1..2 100644\nGIT binary patch\nliteral 1\nIc${MZ0RjL7\n\n"
    [*_, last] = patch_lines(Screen(width=80), [a_change("x", patch=patch)])
    assert last == "Binary files differ"


def test_a_name_with_a_line_break_stays_on_its_line() -> None:
    assert next(stat_lines(Screen(), [a_change("a\nb")])).startswith("a\\nb  modified")


def test_a_patch_that_would_be_long_is_named() -> None:
    assert list(patch_lines(Screen(), [a_change("x", additions=3, deletions=2), a_change("y", binary=True)])) == [
        "modified x (too long to show, +3 -2)",
        "modified y (binary, +0 -0)",
    ]


def test_a_bar_shows_the_share_of_each_file() -> None:
    lines = list(stat_lines(Screen(), [a_change("big", additions=4000), a_change("small", deletions=1)]))
    assert lines[0].count("+") == 40
    assert lines[1].endswith("1 -")
    assert list(stat_lines(Screen(), [])) == []


def test_the_command_prints_the_same_in_a_process(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[write("a.txt", "1\n")]]))
    shop = Shop(project.data, project.top, project.home)
    done = shop.process("session", "diff", session_id)
    assert (done.returncode, done.stdout) == (0, shown(project, session_id).out)


def test_two_events_are_compared_for_people_and_programs(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([[write("a.txt", "1\n"), bash("echo hi")]]))
    head = last_event(project, session_id)
    text = shown(project, session_id, "1", str(head)).out
    for expected in (
        "Messages\n  + user  msg_",
        "    + go\n",
        "    + write a.txt (completed)\n",
        "    + bash echo hi (completed)\n",
        "Files\n  a.txt  added     1 +\n  1 file, +1 -0 lines\n",
        "Context\n  epoch none -> 1 (start)\n  + ",
        "Usage\n  ",
    ):
        assert expected in text
    found = shown(project, session_id, "1", str(head), "--json").json
    assert (found["before"], found["after"]) == (1, head)
    assert [one["file"] for one in found["files"]] == ["a.txt"]
    same = shown(project, session_id, str(head), str(head))
    assert (same.code, same.out, same.err) == (0, "", "Nothing differs.\n")


def last_event(project: AttemptProject, session_id: str) -> int:
    async def read() -> int:
        async with project.opened() as opened:
            return (await opened.store.queries.state(session_id)).seq

    return asyncio.run(read())


def test_two_events_are_given_together_and_alone(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live([]))
    for words in (("1",), ("1", "2", "--stat"), ("1", "2", "--from", "1")):
        answer = shown(project, session_id, *words)
        assert (answer.code, "give two events" in answer.err) == (2, True)
    assert "has no event 99" in shown(project, session_id, "1", "99").err


def test_a_fork_as_of_an_event_is_made_in_a_worktree(project: AttemptProject) -> None:
    session_id = asyncio.run(project.live(FIRST, SECOND))
    shop = Shop(project.data, project.top, project.home)
    before = shop.process("session", "fork", session_id, "--at", "2", "--worktree", "../second", "--json")
    assert before.returncode == 0, before.stderr
    assert not (project.home / "second/new.txt").exists()
    made = shop.process("session", "fork", session_id, "--worktree", "../third")
    assert made.stdout.endswith("  ~/third\n")
    assert (project.home / "third/new.txt").exists()
    fork = made.stdout.split()[1]
    assert "as it was" not in tk(project.data, "session", "show", fork).out
    listed = tk(project.data, "session", "list", "--all", "--json").json["items"]
    [early] = [one["id"] for one in listed if one["directory"] == str(project.home / "second")]
    assert f"{session_id}, as it was after event 2\n" in tk(project.data, "session", "show", early).out
    again = shop.process("session", "fork", session_id, "--worktree", "../third")
    assert (again.returncode, "is not an empty directory; name another one" in again.stderr) == (1, True)
    both = shop.process("session", "fork", session_id, "--worktree", "../x", "--directory", ".")
    assert (both.returncode, "not both" in both.stderr) == (2, True)

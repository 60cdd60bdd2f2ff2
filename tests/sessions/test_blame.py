"""Who wrote a line, with ``git blame`` as the judge: a repository has a commit for each step."""

import base64
import shutil
from pathlib import Path
from random import Random

import pytest
from attempts import AttemptProject, Call, ask, bash, turns, write

from turnkeeper.api import Turnkeeper
from turnkeeper.model.event import MessageRecorded, PartRecorded
from turnkeeper.model.message import AssistantTime, TurnPath
from turnkeeper.model.parts import PatchPart, ToolPart
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.testing.builders import an_assistant
from turnkeeper.workspace import shadow

WORDS = ["def f():", "    return 1", "", "x = 1", "# note", "y = 2", "}", "}", "\ttab\r"]
STEPS = 14


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("code.py", "first\nsecond\nthird\n")
    made.commit()
    return made


def put(name: str, content: str) -> Call:
    """A command that writes exactly this."""
    return bash(f"echo {base64.b64encode(content.encode()).decode()} | base64 -d > {name}")


def edited(random: Random, content: str) -> str:
    lines = content.split("\n")
    for _ in range(random.randint(1, 3)):
        place = random.randint(0, len(lines))
        lines[place : place + random.randint(0, 3)] = random.choices(WORDS, k=random.randint(0, 3))
    return "\n".join(lines)


class Judge:
    """A repository in which each step is committed under the name of its author."""

    def __init__(self, project: AttemptProject) -> None:
        self._project, self._top = project, project.home / "judge"
        self._top.mkdir()
        project.git("init", "-q", at=self._top)

    def step(self, author: str, content: str, name: str = "code.py") -> None:
        for old in self._top.glob("*.py"):
            old.unlink()
        (self._top / name).write_text(content, newline="")
        self._project.git("add", "-A", at=self._top)
        self._project.git("commit", "-qm", author, "--allow-empty", at=self._top)

    def authors(self, name: str = "code.py") -> list[str]:
        said = self._project.git("blame", "--line-porcelain", name, at=self._top)
        return [line.removeprefix("summary ") for line in said.split("\n") if line.startswith("summary ")]


async def authors(tk: Turnkeeper, file: Path) -> list[str]:
    return [one.origin.message_id if one.origin else "-" for one in (await tk.blame(file)).lines]


@pytest.mark.parametrize("seed", range(4))
async def test_each_line_is_blamed_on_the_step_that_git_blames(project: AttemptProject, seed: int) -> None:
    random, judge = Random(seed), Judge(project)
    content = (project.top / "code.py").read_text()
    judge.step("-", content)
    versions = []
    for _ in range(STEPS):
        content = edited(random, content)
        versions.append((random.choice(["one", "two", "user"]), content))
    calls = [[[put("code.py", content)]] for who, content in versions if who != "user"]
    async with project.opened(*calls) as tk:
        sessions = {"one": (await tk.create()).id, "two": (await tk.create()).id}
        for who, content in versions:
            if who == "user":
                (project.top / "code.py").write_text(content, newline="")
                judge.step("-", content)
                continue
            await ask(tk, sessions[who])
            *_, turn, _ = await turns(tk, sessions[who])
            judge.step(turn.info.id, content)
        assert await authors(tk, project.top / "code.py") == judge.authors()
        assert {"-", *judge.authors()} != {"-"}


async def test_a_file_that_a_turn_renamed_keeps_what_is_known_of_its_lines(project: AttemptProject) -> None:
    body = "".join(f"line {number}\n" for number in range(20))
    calls = [[[put("old.py", body)]], [[bash("mv old.py new.py; echo more >> new.py")]]]
    judge = Judge(project)
    async with project.opened(*calls) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        await ask(tk, session_id)
        first, _, second, _ = await turns(tk, session_id)
        judge.step(first.info.id, body, "old.py")
        judge.step(second.info.id, body + "more\n", "new.py")
        found = await tk.blame(project.top / "new.py")
        assert [one.origin.message_id for one in found.lines if one.origin] == judge.authors("new.py")
        assert {one.origin.calls[0].tool for one in found.lines if one.origin} == {"bash"}


async def test_a_line_names_the_session_the_turn_and_the_call(project: AttemptProject) -> None:
    calls = [[write("code.py", "mine\nfirst\n"), write("other.py", "x\n"), bash("true")]]
    async with project.opened([[("read", {"filePath": "code.py"})], *calls]) as tk:
        session = await tk.create()
        await ask(tk, session.id)
        _, turn, _ = await turns(tk, session.id)
        line, other = (await tk.blame(project.top / "code.py")).lines
        assert line.origin is not None
        assert other.origin is None, "it was there before"
        assert (line.line, line.text) == (1, "mine")
        assert (line.origin.session_id, line.origin.slug, line.origin.message_id) == (
            session.id,
            session.slug,
            turn.info.id,
        )
        [call] = line.origin.calls
        [written] = [part for part in turn.parts if isinstance(part, ToolPart) and part.call_id == call.call_id]
        assert written.state.input["filePath"] == "code.py"


async def test_a_fork_does_not_take_the_lines_of_its_source(project: AttemptProject) -> None:
    async with project.opened([[put("code.py", "one\n")]], [[put("code.py", "one\ntwo\n")]]) as tk:
        source = (await tk.create()).id
        await ask(tk, source)
        fork = (await tk.fork(source)).id
        await ask(tk, fork)
        lines = (await tk.blame(project.top / "code.py")).lines
        assert [one.origin.session_id for one in lines if one.origin] == [source, fork]
        await tk.archive(source)
        lines = (await tk.blame(project.top / "code.py")).lines
        assert [one.origin.session_id for one in lines if one.origin] == [source, fork]
        await tk.remove(source)
        lines = (await tk.blame(project.top / "code.py")).lines
        assert [one.origin.session_id for one in lines if one.origin] == [fork, fork]


async def test_turns_without_their_snapshots_are_left_out_and_counted(project: AttemptProject) -> None:
    async with project.opened([[put("code.py", "one\n")]]) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        shutil.rmtree(project.data / shadow.DIRECTORY)
        found = await tk.blame(project.top / "code.py")
        assert (found.left_out, [one.origin for one in found.lines]) == (1, [None])


async def test_what_has_no_lines_is_refused(project: AttemptProject) -> None:
    project.write("logo.bin", b"\0\1")
    project.write("empty.py", "")
    async with project.opened() as tk:
        with pytest.raises(Invalid, match="is binary"):
            await tk.blame(project.top / "logo.bin")
        with pytest.raises(NotFound, match="there is no file"):
            await tk.blame(project.top / "nope.py")
        with pytest.raises(Invalid):
            await tk.blame(project.top)
        assert (await tk.blame(project.top / "empty.py")).lines == ()
        assert await authors(tk, project.top / "code.py") == ["-", "-", "-"]


async def test_a_file_outside_of_a_repository_is_blamed_too(tmp_path: Path) -> None:
    project = AttemptProject(tmp_path, has_git=False)
    (project.top / "sub dir").mkdir()
    async with project.opened([[write("sub dir/x blob.py", "one\n")]]) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        project.write("sub dir/x blob.py", "one\ntwo\n")
        turn, _ = await turns(tk, session_id)
        assert await authors(tk, project.top / "sub dir/x blob.py") == [turn.info.id, "-"]


@pytest.mark.parametrize("has_git", [True, False])
async def test_lines_that_are_older_than_the_first_commit_are_blamed_too(tmp_path: Path, has_git: bool) -> None:
    """The first commit makes the directory another project."""
    project = AttemptProject(tmp_path, has_git=has_git)
    async with project.opened([[write("new/code.py", "one\n")]]) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        project.git("init", "-q")
        project.commit()
        turn, _ = await turns(tk, session_id)
        assert await authors(tk, project.top / "new/code.py") == [turn.info.id]


async def test_blaming_leaves_the_repository_of_the_user_alone(project: AttemptProject) -> None:
    session_id = await project.live([[put("code.py", "one\n")]])
    before = project.own_repository()
    async with project.opened() as tk:
        assert await authors(tk, project.top / "code.py") != ["-"]
        assert session_id
    assert project.own_repository() == before


async def test_turns_that_ran_at_the_same_time_keep_their_own_lines(project: AttemptProject) -> None:
    """The later one of two turns ends with what both wrote; what the earlier one wrote stays the earlier one's."""
    file, trees = project.top / "code.py", [await project.capture()]
    for content in ("first\nsecond\nthird\nearlier\n", "later\nfirst\nsecond\nthird\nearlier\n"):
        file.write_text(content)
        trees.append(await project.capture())
    async with project.opened() as tk:
        for name, began, ended, after in (("later", 10, 30, trees[2]), ("earlier", 15, 20, trees[1])):
            session_id = (await tk.create()).id
            turn = an_assistant(session_id, f"msg_{name}", "msg_0", time=AssistantTime(created=began, completed=ended))
            turn = turn.but(path=TurnPath(cwd=str(project.top), root=str(project.top)))
            patch = PatchPart(
                id=f"prt_{name}",
                session_id=session_id,
                message_id=turn.id,
                hash=trees[0],
                after=after,
                files=(str(file),),
            )
            await tk.store.journal.append(session_id, MessageRecorded(message=turn), PartRecorded(part=patch))
        assert await authors(tk, file) == ["msg_later", "-", "-", "-", "msg_earlier"]

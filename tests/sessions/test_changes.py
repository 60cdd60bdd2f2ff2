"""What sessions changed in files, with git as the judge."""

import shlex
import shutil
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest
from attempts import AttemptProject, ask, bash, prompts, turns, write

from turnkeeper.model.file_change import FileChange
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.workspace import shadow

LINES = "".join(f"line {number}\n" for number in range(1, 41))
FIRST = [[write("made.txt", "one\n"), write("old.txt", LINES)], [bash("printf '\\0\\1' > logo.bin; rm kept.txt")]]
SECOND = [[bash("mv old.txt new.txt; sed -i 's/line 20/line twenty/' new.txt")]]


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.write('gr\N{LATIN SMALL LETTER U WITH DIAERESIS}n "q".txt', "a\r\nb\r\n")
    made.commit()
    return made


def committed(project: AttemptProject, since: str = "HEAD") -> str:
    """Git's own difference between a commit and the files now, in a copy of the project."""
    copy = project.home / "judge"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(project.top, copy, symlinks=True)
    project.git("add", "-A", at=copy)
    project.git("commit", "-qm", "now", "--allow-empty", at=copy)
    return project.git("-c", "core.quotePath=false", "diff", "-M", "--binary", since, "HEAD", at=copy)


def text(changes: Sequence[FileChange]) -> str:
    return "".join(one.patch for one in changes)


def brief(changes: Sequence[FileChange]) -> list[tuple[str, str, int, int]]:
    return [(one.file, one.status, one.additions, one.deletions) for one in changes]


async def test_the_changes_of_a_session_are_those_that_git_shows(project: AttemptProject) -> None:
    before = project.git("rev-parse", "HEAD").strip()
    async with project.opened(FIRST, SECOND) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        await ask(tk, session_id)
        found = await tk.changes(session_id)
        assert text(found) == committed(project, before)
        assert brief(found) == [
            ("kept.txt", "deleted", 0, 1),
            ("logo.bin", "added", 0, 0),
            ("made.txt", "added", 1, 0),
            ("new.txt", "added", 40, 0),
        ]
        assert [one.file for one in found if one.binary] == ["logo.bin"]


class Judge:
    """A copy of a project in which what each prompt left is committed."""

    def __init__(self, project: AttemptProject) -> None:
        self._project, self._top = project, project.home / "judge"
        shutil.copytree(project.top, self._top, symlinks=True)

    def commit(self) -> str:
        for old in self._top.iterdir():
            if old.name != ".git":
                shutil.rmtree(old) if old.is_dir() and not old.is_symlink() else old.unlink()
        without = shutil.ignore_patterns(".git")
        shutil.copytree(self._project.top, self._top, symlinks=True, ignore=without, dirs_exist_ok=True)
        self._project.git("add", "-A", at=self._top)
        self._project.git("commit", "-qm", "now", "--allow-empty", at=self._top)
        return self._project.git("rev-parse", "HEAD", at=self._top).strip()

    def diff(self, before: str, after: str) -> str:
        return self._project.git("-c", "core.quotePath=false", "diff", "-M", "--binary", before, after, at=self._top)


NAMES = ["a", "sub/b", "sub/deep/c", "sp ace", "-dash", '"quoted"', "two\nlines", "gr\N{LATIN SMALL LETTER SHARP S}"]


def random_command(random: Random) -> str:
    name, other = (f"./{shlex.quote(one)}" for one in random.sample(NAMES, 2))
    lines = "".join(f"{random.choice('abcde')} {number}\\n" for number in range(random.randint(0, 12)))
    made = f"mkdir -p sub/deep; rm -rf {name};"
    return random.choice(
        [
            f"{made} printf '{lines}' > {name}",
            f"{made} printf '{lines}end' > {name}",
            f"{made} printf '{lines}\\0' > {name}",
            f"{made} ln -s {other} {name}",
            f"mkdir -p sub/deep; printf '{lines}' >> {name} || true",
            f"rm -rf {name}",
            f"mkdir -p sub/deep; mv -T {name} {other} || true",
            f"test -e {name} && chmod u+x {name} || true",
        ]
    )


@pytest.mark.parametrize("seed", range(4))
async def test_the_changes_of_random_histories_are_those_that_git_shows(project: AttemptProject, seed: int) -> None:
    random, judge = Random(seed), Judge(project)
    calls = [[[bash(random_command(random)) for _ in range(3)]] for _ in range(6)]
    async with project.opened(*calls) as tk:
        session_id = (await tk.create()).id
        commits = [judge.commit()]
        for _ in calls:
            await ask(tk, session_id)
            commits.append(judge.commit())
            assert text(await tk.changes(session_id)) == judge.diff(commits[0], commits[-1])
        asked = [one.id for one in await prompts(tk, session_id)]
        for number, message_id in enumerate(asked):
            expected = judge.diff(*commits[number : number + 2])
            assert text(await tk.changes(session_id, message_id=message_id)) == expected
        start, end = sorted(random.sample(range(len(asked)), 2))
        found = await tk.changes(session_id, start=asked[start], end=asked[end])
        assert text(found) == judge.diff(commits[start], commits[end])


async def test_a_rename_is_told_with_what_changed_in_it(project: AttemptProject) -> None:
    async with project.opened(FIRST, SECOND) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        project.commit()
        await ask(tk, session_id)
        first, second = await prompts(tk, session_id)
        [renamed] = await tk.changes(session_id, message_id=second.id)
        assert (renamed.file, renamed.renamed_from, renamed.status) == ("new.txt", "old.txt", "renamed")
        assert (renamed.additions, renamed.deletions) == (1, 1)
        assert renamed.patch == committed(project, "HEAD^")
        assert [one.file for one in await tk.changes(session_id, message_id=first.id)] == [
            "kept.txt",
            "logo.bin",
            "made.txt",
            "old.txt",
        ]


async def test_a_turn_has_changes_of_its_own(project: AttemptProject) -> None:
    session_id = await project.live(FIRST)
    async with project.opened() as tk:
        first, second, last = await turns(tk, session_id)
        assert [one.file for one in await tk.changes(session_id, message_id=first.info.id)] == ["made.txt", "old.txt"]
        assert [one.file for one in await tk.changes(session_id, message_id=second.info.id)] == ["kept.txt", "logo.bin"]
        assert await tk.changes(session_id, message_id=last.info.id) == ()


async def test_two_moments_are_compared_by_their_nearest_snapshots(project: AttemptProject) -> None:
    async with project.opened(FIRST, SECOND) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        project.write("mine.txt", "by the user\n")
        await ask(tk, session_id)
        first, second = await prompts(tk, session_id)
        one, two, _, four, _ = await turns(tk, session_id)

        async def names(start: int | str | None, end: int | str | None) -> list[str]:
            return [change.file for change in await tk.changes(session_id, start=start, end=end)]

        assert await names(one.info.id, one.info.id) == ["made.txt", "old.txt"]
        assert await names(two.info.id, two.info.id) == ["kept.txt", "logo.bin"]
        assert await names(first.id, second.id) == ["kept.txt", "logo.bin", "made.txt", "mine.txt", "old.txt"]
        assert await names(second.id, four.info.id) == ["new.txt"]
        assert await names(1, four.info.seq) == ["kept.txt", "logo.bin", "made.txt", "old.txt"], "mine.txt came later"
        assert await names(four.info.seq, None) == ["mine.txt", "new.txt"]
        assert await names(None, 1) == []


async def test_without_its_snapshots_a_session_shows_what_it_stored(project: AttemptProject) -> None:
    session_id = await project.live(FIRST)
    async with project.opened() as tk:
        before = await tk.changes(session_id)
        [prompt] = await prompts(tk, session_id)
        shutil.rmtree(project.data / shadow.DIRECTORY)
        after = await tk.changes(session_id)
        assert brief(after) == brief(before)
        assert [one.file for one in after if one.binary] == ["logo.bin"]
        assert await tk.changes(session_id, message_id=prompt.id) == after
        project.git("stash", "-uq")
        project.git("apply", given=text([one for one in after if not one.binary]).encode())
        assert (project.top / "old.txt").read_text() == LINES
        with pytest.raises(NotFound, match="no snapshots of"):
            await tk.changes(session_id, start=1)


async def test_moments_that_do_not_exist_are_refused(project: AttemptProject) -> None:
    session_id = await project.live([])
    async with project.opened() as tk:
        [prompt] = await prompts(tk, session_id)
        for start, words in ((0, "has no event 0"), (999, "has no event 999"), ("msg_none", "no message 'msg_none'")):
            with pytest.raises((Invalid, NotFound), match=words):
                await tk.changes(session_id, start=start)
        with pytest.raises(NotFound):
            await tk.changes(session_id, message_id="msg_none")
        with pytest.raises(Invalid, match="only one of them"):
            await tk.changes(session_id, message_id=prompt.id, start=1)
        assert await tk.changes(session_id) == ()
        assert await tk.changes((await tk.create()).id) == ()
        with pytest.raises(NotFound, match="has no snapshot of files"):
            await tk.changes(session_id, end=1)


async def test_files_of_two_directories_are_not_compared(project: AttemptProject, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    elsewhere = AttemptProject(tmp_path / "other")
    async with project.opened([[write("a.txt", "1\n")]], [[write("b.txt", "2\n")]]) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        await tk.move(session_id, elsewhere.top)
        await ask(tk, session_id)
        with pytest.raises(Invalid, match="name two moments in one directory"):
            await tk.changes(session_id, start=1)
        assert [one.file for one in await tk.changes(session_id)], "what is stored is shown all the same"


async def test_a_directory_without_git_is_compared_too(tmp_path: Path) -> None:
    project = AttemptProject(tmp_path, has_git=False)
    session_id = await project.live([[write("a.txt", "1\n")]])
    async with project.opened() as tk:
        assert brief(await tk.changes(session_id)) == [("a.txt", "added", 1, 0)]


async def test_the_repository_of_the_user_is_left_alone(project: AttemptProject) -> None:
    session_id = await project.live(FIRST, SECOND)
    before = project.own_repository()
    async with project.opened() as tk:
        assert await tk.changes(session_id)
        assert await tk.changes(session_id, start=1)
    assert project.own_repository() == before

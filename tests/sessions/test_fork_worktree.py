"""Two attempts side by side: a fork in a new worktree with the files of a moment."""

import os
import shutil
from pathlib import Path

import pytest
from attempts import AttemptProject, ask, bash, prompts, turns, write

from turnkeeper.model.refusal import Conflict, Invalid, NotFound
from turnkeeper.model.session import Origin
from turnkeeper.workspace import shadow

FIRST = [[write("a.txt", "first\n")]]
SECOND = [[bash("echo second >> a.txt; rm kept.txt")]]
OTHER = [[bash("echo other way >> a.txt")]]


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.write("sub/inner.txt", "inner\n")
    made.commit()
    return made


async def test_a_fork_works_on_in_a_worktree_with_the_files_of_then(project: AttemptProject, tmp_path: Path) -> None:
    async with project.opened(FIRST, SECOND, OTHER) as tk:
        source = (await tk.create(title="Try")).id
        await ask(tk, source)
        seq = (await tk.store.queries.state(source)).seq
        await ask(tk, source)
        forked = await tk.fork(source, at=seq, worktree=tmp_path / "second")
        assert (forked.directory, forked.project_id) == (str(tmp_path / "second"), (await tk.get(source)).project_id)
        assert forked.origin == Origin(session_id=source, seq=seq)
        assert (tmp_path / "second/a.txt").read_text() == "first\n"
        assert (tmp_path / "second/kept.txt").exists()
        await ask(tk, forked.id)
        assert (tmp_path / "second/a.txt").read_text() == "first\nother way\n"
        assert (project.top / "a.txt").read_text() == "first\nsecond\n", "the first attempt is left alone"
        assert [one.file for one in await tk.changes(forked.id)] == ["a.txt"]
        assert project.git("worktree", "list").count("\n") == 2
        assert (await tk.doctor()).ok


async def test_a_fork_before_a_prompt_has_the_files_before_it_ran(project: AttemptProject, tmp_path: Path) -> None:
    async with project.opened(FIRST, SECOND) as tk:
        source = (await tk.create()).id
        await ask(tk, source)
        await ask(tk, source)
        first, second = await prompts(tk, source)
        await tk.fork(source, message_id=second.id, worktree=tmp_path / "second")
        assert (tmp_path / "second/a.txt").read_text() == "first\n"
        await tk.fork(source, message_id=first.id, worktree=tmp_path / "first")
        assert not (tmp_path / "first/a.txt").exists()
        await tk.fork(source, at=1, worktree=tmp_path / "begin")
        assert not (tmp_path / "begin/a.txt").exists()
        await tk.fork(source, worktree=tmp_path / "now")
        assert (tmp_path / "now/a.txt").read_text() == "first\nsecond\n"
        assert not (tmp_path / "now/kept.txt").exists()


async def test_a_session_of_a_folder_works_in_that_folder_of_the_worktree(
    project: AttemptProject, tmp_path: Path
) -> None:
    async with project.opened([[write("made.txt", "1\n")]]) as tk:
        source = (await tk.create(directory=project.top / "sub")).id
        await ask(tk, source)
        forked = await tk.fork(source, worktree=tmp_path / "second")
        assert (forked.directory, forked.path) == (str(tmp_path / "second/sub"), "sub")
        assert (tmp_path / "second/sub/made.txt").read_text() == "1\n"


async def test_a_directory_without_git_is_copied(tmp_path: Path) -> None:
    project = AttemptProject(tmp_path, has_git=False)
    async with project.opened(FIRST, SECOND) as tk:
        source = (await tk.create()).id
        await ask(tk, source)
        turn, _ = await turns(tk, source)
        await ask(tk, source)
        forked = await tk.fork(source, at=turn.info.seq + 20, worktree=tmp_path / "second")
        assert forked.directory == str(tmp_path / "second")
        assert sorted(path.name for path in (tmp_path / "second").iterdir()) == ["a.txt"]


async def test_a_failure_leaves_neither_a_session_nor_a_worktree(project: AttemptProject, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full/mine.txt").write_text("mine")
    async with project.opened(FIRST) as tk:
        source = (await tk.create()).id
        await ask(tk, source)
        refused: list[tuple[dict[str, object], type[Exception]]] = [
            ({"worktree": tmp_path / "full"}, Conflict),
            ({"worktree": tmp_path / "new", "at": 999}, Invalid),
            ({"worktree": tmp_path / "new", "message_id": "msg_none"}, NotFound),
            # The files are there, and then the message is not.
            ({"worktree": tmp_path / "new", "at": 2, "message_id": "msg_none"}, NotFound),
        ]
        for given, error in refused:
            with pytest.raises(error):
                await tk.fork(source, **given)  # type: ignore[arg-type] # The keywords of ``fork``.
        shutil.rmtree(project.data / shadow.DIRECTORY)
        with pytest.raises(NotFound, match=r"no snapshots of .* are kept"):
            await tk.fork(source, worktree=tmp_path / "new")
        assert [one.id for one in (await tk.list()).items] == [source]
    assert not (tmp_path / "new").exists()
    assert project.git("worktree", "list").count("\n") == 1
    assert not (project.top / ".git/worktrees").exists()


async def test_a_relative_path_is_meant_from_the_working_directory(project: AttemptProject, tmp_path: Path) -> None:
    async with project.opened(FIRST) as tk:
        source = (await tk.create()).id
        await ask(tk, source)
        made = await tk.fork(source, worktree=os.path.relpath(tmp_path / "new"))
        assert made.directory == str(tmp_path / "new")

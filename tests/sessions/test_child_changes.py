"""The files that Child Sessions write: they are changes of the prompt whose calls wait for them."""

from pathlib import Path

import pytest
from attempts import AttemptProject, Call, ask, bash, write


@pytest.fixture
def project(tmp_path: Path) -> AttemptProject:
    made = AttemptProject(tmp_path)
    made.write("kept.txt", "kept\n")
    made.write("turnkeeper.json", '{"subagent_depth": 2, "agent": {"general": {"permission": {"task": "allow"}}}}')
    made.commit()
    return made


def task() -> Call:
    return "task", {"description": "Write it", "prompt": "go", "subagent_type": "general"}


def contents(project: AttemptProject) -> dict[str, str]:
    return {path.name: path.read_text() for path in sorted(project.top.glob("*.txt"))}


async def test_an_undo_takes_back_what_agents_wrote_for_the_prompt(project: AttemptProject) -> None:
    nested = [[task()], [task()], [write("made.txt", "made\n")]]
    async with project.opened(nested, [[bash("echo more >> kept.txt")]], []) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        assert contents(project) == {"kept.txt": "kept\nmore\n", "made.txt": "made\n"}
        assert sorted(str(one.file) for one in await tk.diffs(session_id)) == ["kept.txt", "made.txt"]
        undone = await tk.undo(session_id)
        assert (undone.conflicts, undone.problem) == ((), None)
        assert contents(project) == {"kept.txt": "kept\n"}
        await tk.redo(session_id)
        assert contents(project) == {"kept.txt": "kept\nmore\n", "made.txt": "made\n"}


async def test_lines_are_blamed_on_the_session_that_wrote_them(project: AttemptProject) -> None:
    async with project.opened([[task()], [write("made.txt", "made\n")]], []) as tk:
        session_id = (await tk.create()).id
        await ask(tk, session_id)
        found = await tk.blame(project.top / "made.txt")
        writers = [line.origin.session_id for line in found.lines if line.origin is not None]
        assert writers == [one.id for one in await tk.children(session_id)]

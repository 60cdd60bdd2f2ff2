"""A store that lies inside a project is no part of the session's work: snapshots, differences and undo leave it out."""

import os
import subprocess
from pathlib import Path

import pytest

import turnkeeper
from turnkeeper.model.config import Config
from turnkeeper.model.parts import PatchPart
from turnkeeper.sessions.doctor import examine
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import Snapshots

STORES = ("files:{top}/mystore", "sqlite:{top}/u.db", "sqlite:{top}/data/sessions/u.db")


def git(folder: Path, *arguments: str) -> None:
    who = ("-c", "user.name=A", "-c", "user.email=a@b.c")
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True, timeout=120)


@pytest.fixture
def top(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "-q")
    (folder / "kept.txt").write_text("kept\n")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "first")
    return folder


@pytest.mark.parametrize("is_tracked", [False, True], ids=["untracked", "tracked"])
@pytest.mark.parametrize("store", STORES)
async def test_an_undo_leaves_a_store_inside_the_project_alone(
    store: str, is_tracked: bool, top: Path, tmp_path: Path
) -> None:
    def note(text: str) -> str:
        """Write a note."""
        (top / "note.txt").write_text(text)
        return "written"

    calls = turnkeeper.Scripted().calls("note", text="a").then().says("ok").then().calls("note", text="b").then()
    settings = turnkeeper.Settings(
        titles=False,
        environ={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path / "home"),
            "TURNKEEPER_DATA": str(tmp_path / "data"),
        },
    )
    place = store.format(top=top)
    if is_tracked:
        async with turnkeeper.open(place, directory=top) as tk:
            await tk.create(title="an earlier one")
        git(top, "add", "-A")
        git(top, "commit", "-qm", "with the store")
    async with turnkeeper.open(
        place, directory=top, tools=[note], provider=calls.says("ok").forever(), settings=settings
    ) as tk:
        session = await tk.create()
        await tk.ask("one", session=session)
        await tk.ask("two", session=session)
        assert [one.file for one in await tk.diffs(session.id)] == ["note.txt"]
        patches = [part for one in (await tk.messages(session.id)).items for part in one.parts]
        assert {file for part in patches if isinstance(part, PatchPart) for file in part.files} == {
            str(top / "note.txt")
        }
        await tk.undo(session.id)
        assert (top / "note.txt").read_text() == "a"
        await tk.redo(session.id)
        assert (top / "note.txt").read_text() == "b"
    async with turnkeeper.open(place, directory=top) as tk:
        assert (await examine(tk.store)).problems == ()


async def test_a_project_that_is_itself_the_store_has_no_snapshots(top: Path, tmp_path: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path / "home"), "TURNKEEPER_DATA": str(tmp_path / "data")}
    place = await identify(top, environ=environ)
    assert await Snapshots(environ, lambda: 0, store=(top,)).of(place, Config()) is None
    assert await Snapshots(environ, lambda: 0, store=(top / "u.db",)).of(place, Config()) is not None

"""What an undo must leave alone, because no snapshot had it or because others wrote it; and what it says of that."""

import os
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

import turnkeeper
from turnkeeper.api import Turnkeeper
from turnkeeper.core.file_changes import DURING
from turnkeeper.providers.scripted import Scripted
from turnkeeper.run.permission import allow_all
from turnkeeper.run.runtime import Settings

DEADLINE_S = 60


class Project:
    """A repository with a tracked file, and sessions whose model makes one call."""

    def __init__(self, home: Path) -> None:
        self.top, self.home = home / "project", home
        self.top.mkdir()
        self.git("init", "-q")
        (self.top / "b.txt").write_text("tracked\n")
        self.git("add", ".")
        self.git("-c", "user.name=A", "-c", "user.email=a@b.c", "commit", "-qm", "first")

    def git(self, *arguments: str) -> None:
        subprocess.run(["git", "-C", self.top, *arguments], check=True, capture_output=True)

    @asynccontextmanager
    async def opened(self, tool: str, **settings: object) -> AsyncIterator[Turnkeeper]:
        own = {"HOME": str(self.home / "home"), "TURNKEEPER_DATA": str(self.home / "data"), "TURNKEEPER_TRUST": "1"}
        name, _, input = tool.partition(" ")
        provider = Scripted().calls_raw(name, input).then().says("Done.")
        given = Settings(
            transport=lambda endpoint: provider,
            titles=False,
            environ={"PATH": os.environ["PATH"], **own},
            ask=allow_all,
        )
        with anyio.fail_after(DEADLINE_S):
            async with turnkeeper.open(
                f"sqlite:{self.home / 'store.db'}",
                directory=self.top,
                settings=msgspec.structs.replace(given, **settings),
            ) as tk:
                yield tk

    def edit(self, name: str) -> None:
        (self.top / name).write_text("user\n")

    def files(self) -> dict[str, str]:
        found = sorted(path for path in self.top.rglob("*") if path.is_file() and ".git" not in path.parts)
        return {str(path.relative_to(self.top)): path.read_text() for path in found}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def bash(command: str) -> str:
    return f"bash {msgspec.json.encode({'command': command}).decode()}"


async def go(tk: Turnkeeper) -> str:
    session_id = (await tk.create()).id
    await tk.prompt(session_id, "go")
    await tk.wait(session_id)
    return session_id


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("mv .env env.txt; mv build out; echo t > made", {"env.txt": "secret\n", "out/x": "built\n"}),
        ("echo > .gitignore; echo t > made", {".env": "secret\n", "build/x": "built\n"}),
        ("sed -i s/secret/changed/ .env; echo > .gitignore", {".env": "changed\n", "build/x": "built\n"}),
    ],
)
async def test_an_undo_leaves_files_that_were_ignored(project: Project, command: str, expected: dict[str, str]) -> None:
    (project.top / ".gitignore").write_text(".env\nbuild/\n")
    (project.top / ".env").write_text("secret\n")
    (project.top / "build").mkdir()
    (project.top / "build/x").write_text("built\n")
    async with project.opened(bash(command)) as tk:
        done = await tk.undo(await go(tk))
    kept = {".gitignore": ".env\nbuild/\n", "b.txt": "tracked\n"}
    assert project.files() == kept | expected
    assert done.problem is not None
    for name in expected:
        assert f"{name} (it " in done.problem


async def test_an_undo_says_what_changed_while_a_command_ran(project: Project) -> None:
    async with project.opened(bash("echo t >> b.txt")) as tk:
        done = await tk.undo(await go(tk))
    assert [(one.file, one.kind, one.reason) for one in done.files] == [("b.txt", "restore", DURING)]
    assert (done.problem, project.files()) == (None, {"b.txt": "tracked\n"})


async def test_without_the_repository_that_had_a_file_there_is_one_warning(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    async with project.opened(bash("rm -rf .git b.txt")) as tk:
        session_id = await go(tk)
        await tk.wait_upkeep(session_id)
        warned = [(one.levelname, one.exc_info) for one in caplog.records]
        done = await tk.undo(session_id)
    assert warned == [("WARNING", None)]
    assert [(one.file, one.kind) for one in done.conflicts] == [("b.txt", "conflict")]


async def test_an_undo_of_an_edit_takes_back_nothing_else(project: Project) -> None:
    async with project.opened('write {"filePath": "made.txt", "content": "t\\n"}') as tk:
        # The snapshot after the call is taken later than this.
        written = tk.bus.listen(lambda one: project.edit("user.txt"))
        session_id = await go(tk)
        written.close()
        done = await tk.undo(session_id)
    assert [(one.file, one.kind, one.reason) for one in done.files] == [("made.txt", "delete", None)]
    assert project.files() == {"b.txt": "tracked\n", "user.txt": "user\n"}


async def test_without_snapshots_an_undo_says_that_changes_are_not_known(project: Project) -> None:
    async with project.opened(bash("echo t >> b.txt"), snapshots=False) as tk:
        session_id = await go(tk)
    async with project.opened(bash("true")) as tk:
        done = await tk.undo(session_id)
    assert done.problem is not None
    assert "is not known" in done.problem
    assert project.files() == {"b.txt": "tracked\nt\n"}

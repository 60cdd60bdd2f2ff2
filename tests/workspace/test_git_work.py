"""Git work: a git that does not end holds nobody up, and leaves nothing running."""

import os
import select
from collections.abc import Mapping
from pathlib import Path
from signal import SIGKILL

import anyio
import pytest

from turnkeeper.workspace import git
from turnkeeper.workspace.git_work import GitStopped, GitWork, in_thread, locked

HANGING_S = 600
"""How long the false git and its child would run: far longer than any test."""
DEADLINE_S = 60


_TELL = 'test ! -p "$(dirname "$0")/../begun" || echo > "$(dirname "$0")/../begun"'


@pytest.fixture
def environ(tmp_path: Path) -> Mapping[str, str]:
    """Variables with which `git` is a program that never ends, and whose child keeps the pipes open."""
    program = tmp_path / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\nsleep {HANGING_S} &\necho $! > '{tmp_path}/child'\n{_TELL}\nwait\n")
    program.chmod(0o755)
    return {"PATH": f"{program.parent}:{os.environ['PATH']}"}


async def test_a_git_whose_child_keeps_the_pipes_open_is_not_waited_for(
    tmp_path: Path, environ: Mapping[str, str]
) -> None:
    os.mkfifo(tmp_path / "begun")
    begun = select.poll()
    begun.register(os.open(tmp_path / "begun", os.O_RDONLY | os.O_NONBLOCK), select.POLLIN)

    def ask(work: GitWork) -> None:
        with (
            locked(tmp_path / "lock", work, DEADLINE_S) as lock,
            work.started(["version"], tmp_path, environ, keep_open=[lock]) as process,
        ):
            assert begun.poll(DEADLINE_S * 1000), "the child has not begun"
            work.finish(process)

    with anyio.fail_after(DEADLINE_S), pytest.raises(GitStopped, match="took too long"):
        # The time that git has must end after its child has begun, which a loaded machine may delay.
        await in_thread(10, ask)
    with anyio.fail_after(DEADLINE_S):
        await in_thread(DEADLINE_S, lambda work: _take(tmp_path / "lock", work))


def _take(lock: Path, work: GitWork) -> None:
    """The child would hold the lock as long as it runs."""
    with locked(lock, work, DEADLINE_S):
        pass


async def test_a_query_of_such_a_git_ends_in_time(tmp_path: Path, environ: Mapping[str, str]) -> None:
    (tmp_path / ".git").mkdir()
    with anyio.fail_after(DEADLINE_S):
        assert await git.find(tmp_path, environ, timeout_s=2) is None
    if (tmp_path / "child").exists():
        os.kill(int((tmp_path / "child").read_text()), SIGKILL)

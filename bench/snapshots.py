"""A snapshot of 10,000 files with 5 edits, and without any, against bare git in a repository of its own."""

import os
import random
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path

from bench.measure import Figure, ms
from turnkeeper.model.config import Config
from turnkeeper.workspace.project import identify
from turnkeeper.workspace.snapshots import Snapshots

FOLDERS, FILES, EDITS, ROUNDS = 200, 50, 5, 15


async def measure(folder: Path) -> list[Figure]:
    """At most 1.3 times ``git add -A`` and ``git write-tree``. Both take turns, so that load disturbs both alike."""
    project = _project(folder / "project")
    environ = {**os.environ, "HOME": str(folder), "TURNKEEPER_DATA": str(folder / "data")}
    shadow = await Snapshots(environ, lambda: time.time_ns() // 1_000_000).of(
        await identify(project, environ=environ), Config()
    )
    assert shadow is not None
    bare = {**environ, "GIT_DIR": str(folder / "bare"), "GIT_WORK_TREE": str(project)}
    _git(project, bare, "init", "-q")
    _staged(project, bare)

    start = time.perf_counter()
    assert await shadow.capture("ses_bench") is not None
    first = time.perf_counter() - start
    times: dict[str, list[float]] = {"git": [], "ours": [], "same": []}
    for number in range(ROUNDS):
        _edit(project, number)
        start = time.perf_counter()
        _staged(project, bare)
        times["git"].append(time.perf_counter() - start)
        start = time.perf_counter()
        assert await shadow.capture("ses_bench") is not None
        times["ours"].append(time.perf_counter() - start)
        start = time.perf_counter()
        assert await shadow.capture("ses_bench") is not None
        times["same"].append(time.perf_counter() - start)
    floor, ours, same = (min(times[name]) for name in ("git", "ours", "same"))
    git = f"git add -A, write-tree {ms(floor)}"
    count = f"{FOLDERS * FILES:,}"
    return [
        Figure(
            f"snapshot of {count} files, {EDITS} edits", ms(ours), git, ours / floor, "<= 1.30", ours / floor <= 1.3
        ),
        Figure(f"snapshot of {count} files, unchanged", ms(same), git, same / floor, "<= 1.00", same / floor <= 1),
        Figure(
            f"first snapshot of {count} committed files", ms(first), git, first / floor, "<= 20.00", first / floor <= 20
        ),
    ]


def _project(top: Path) -> Path:
    for number in range(FOLDERS):
        place = top / f"d{number // 10}" / f"e{number % 10}"
        place.mkdir(parents=True)
        for name in range(FILES):
            (place / f"f{name}.py").write_text(f"# {number} {name}\n" * 60)
    _git(top, os.environ, "init", "-q")
    # Else the commit starts a `git gc` in the background, which takes one of the cores for the next fifteen seconds.
    _git(top, os.environ, "config", "gc.auto", "0")
    _git(top, os.environ, "add", "-A")
    _git(top, os.environ, "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "commit", "-qm", "work")
    return top


def _edit(top: Path, number: int) -> None:
    for chosen in random.Random(number).sample(range(FOLDERS * FILES), EDITS):
        folder, name = divmod(chosen, FILES)
        with (top / f"d{folder // 10}" / f"e{folder % 10}" / f"f{name}.py").open("a") as file:
            file.write(f"{number}\n")


def _staged(top: Path, environ: Mapping[str, str]) -> None:
    _git(top, environ, "add", "-A")
    _git(top, environ, "write-tree")


def _git(top: Path, environ: Mapping[str, str], *arguments: str) -> None:
    subprocess.run(["git", *arguments], cwd=top, env=environ, check=True, capture_output=True)

"""Killed at any point of a revert, files and history are afterwards wholly before it or wholly after, and say so."""

import logging
import os
from pathlib import Path

import pytest
from crashes import EVERY_WRITE, Crash, lines, on_engines

from turnkeeper.core.restores import is_open
from turnkeeper.mint import FIXED_START_MS, Mint
from turnkeeper.model.message import AssistantMessage
from turnkeeper.store.crash import REVERTS
from turnkeeper.testing import loop_child, reverting
from turnkeeper.testing.appended import ACKNOWLEDGED
from turnkeeper.testing.harness import Stage

RESTORE_POINTS = [
    "restore.before-file",
    "restore.file-written",
    "restore.file-linked",
    "restore.file-replaced",
    "restore.after-file",
]
POINTS = [*(f"run.{when}-{what}" for what in REVERTS for when in ("before", "after")), *RESTORE_POINTS]
ENGINES = ["sqlite", "files"]

EDITED = "".join(f"line {number}\n" for number in range(9)).replace("line 7", "others 7")
BEFORE = {"changed": "before\n", "doomed": "precious\n", "edited": EDITED, "way": "-> changed"}
AFTER = {"changed": "by the agent\n", "edited": EDITED.replace("line 1", "agent 1")} | {
    "sub/made": "made\n",
    "sub/link": "-> made",
    "way/in": "inside\n",
}


def files(directory: Path) -> dict[str, str]:
    place = directory / "place"
    found = {str(one.relative_to(place)): _content(one) for one in place.rglob("*") if one.is_file()}
    return {name: text for name, text in found.items() if name != "turnkeeper.json"}


def _content(path: Path) -> str:
    return f"-> {os.readlink(path)}" if path.is_symlink() else path.read_text()


async def check(url: str, directory: Path, logged: pytest.LogCaptureFixture) -> None:
    """Take over as a new process does: the session says what the files show. Then it can be worked with."""
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    async with reverting.opened(url, directory, mint=later) as stage:
        view = await stage.tk.store.journal.view(loop_child.SESSION)
        was_open = is_open(view)
        logged.clear()
        with logged.at_level(logging.WARNING):
            await stage.tk.recover()
        assert ("cut off is finished now" in logged.text) is was_open
        session = await stage.tk.get(loop_child.SESSION)
        is_said = "said" in lines(directory / ACKNOWLEDGED) or await _is_said(stage)
        is_undone = session.revert is not None or is_said
        assert files(directory) == (BEFORE if is_undone else AFTER)
        done = lines(directory / ACKNOWLEDGED).count("done")
        assert is_said or is_undone in ([done % 2 == 1] if not _is_under_way(directory) else [True, False])
        assert await stage.is_sound(loop_child.SESSION)
        if not is_said:
            await (stage.tk.redo if is_undone else stage.tk.undo)(loop_child.SESSION)
            assert files(directory) == (AFTER if is_undone else BEFORE)
        assert not list((directory / "place").rglob(".turnkeeper*"))


def scribble(directory: Path) -> None:
    """What the user does between the kill and the recovery: one edit that can be merged, and one that cannot."""
    edited, changed = directory / "place/edited", directory / "place/changed"
    edited.write_text(edited.read_text().replace("line 4", "mine 4"))
    changed.write_text("mine\n")


def scribbled(files: dict[str, str]) -> dict[str, str]:
    return files | {"edited": files["edited"].replace("line 4", "mine 4"), "changed": "mine\n"}


async def check_scribbled(url: str, directory: Path) -> None:
    """Edits of the user stay through the recovery and what comes after it, and what cannot be merged is named."""
    later = Mint.fixed(FIXED_START_MS + 1_000_000, 1)
    scribble(directory)
    async with reverting.opened(url, directory, mint=later) as stage:
        was_open = is_open(await stage.tk.store.journal.view(loop_child.SESSION))
        await stage.tk.recover()
        session = await stage.tk.get(loop_child.SESSION)
        is_said = "said" in lines(directory / ACKNOWLEDGED) or await _is_said(stage)
        is_undone = session.revert is not None or is_said
        assert files(directory) == scribbled(BEFORE if is_undone else AFTER)
        if session.revert is not None and was_open:
            assert session.revert.conflicts == ("changed",)
        assert await stage.is_sound(loop_child.SESSION)
        moves = [] if is_said else [stage.tk.redo, stage.tk.undo] if is_undone else [stage.tk.undo, stage.tk.redo]
        for move in moves:
            is_undone = not is_undone
            done = await move(loop_child.SESSION)
            assert files(directory) == scribbled(BEFORE if is_undone else AFTER)
            assert {one.file for one in done.conflicts} <= {"changed"}
        assert not list((directory / "place").rglob(".turnkeeper*"))


async def _is_said(stage: Stage) -> bool:
    """Whether what was undone has left the history, or is on its way out with the prompt."""
    messages = await stage.messages(loop_child.SESSION)
    turns = [one for one in messages if isinstance(one.info, AssistantMessage)]
    return not any(len(one.parts) > 3 for one in turns)


def _is_under_way(directory: Path) -> bool:
    said = lines(directory / ACKNOWLEDGED)
    return said.count("begun") > said.count("done")


@on_engines(POINTS)
async def test_killed_at_a_point_of_a_revert(
    tmp_path: Path, crash_at: Crash, caplog: pytest.LogCaptureFixture, point: str, engine: str
) -> None:
    for hit in (1, 2, 5):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        reached = crash_at(point, hit, url, directory, "reverting")
        assert reached or hit > 1, f"{point} is never reached"
        if reached:
            await check(url, directory, caplog)


@on_engines(POINTS[2:4] + POINTS[-3:])
async def test_killed_again_while_it_is_finished(
    tmp_path: Path, crash_at: Crash, caplog: pytest.LogCaptureFixture, point: str, engine: str
) -> None:
    directory = tmp_path / "once"
    directory.mkdir()
    url = f"{engine}:{directory}/store"
    assert crash_at("run.after-restore", 1, url, directory, "reverting")
    assert crash_at(point, 1, url, directory, "finishing")
    await check(url, directory, caplog)


@on_engines(POINTS)
async def test_what_the_user_edits_before_a_killed_revert_is_finished_is_merged(
    tmp_path: Path, crash_at: Crash, point: str, engine: str
) -> None:
    # The sixth file is the one whose edit can be merged.
    for hit in (1, 6) if point.startswith("restore.") else (1, 2):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        if crash_at(point, hit, url, directory, "reverting"):
            await check_scribbled(url, directory)


@pytest.mark.soak
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("point", [*RESTORE_POINTS, *EVERY_WRITE[1:]])
async def test_killed_at_every_hit_of_a_point_of_a_revert(
    tmp_path: Path, crash_at: Crash, caplog: pytest.LogCaptureFixture, point: str, engine: str
) -> None:
    for hit in range(1, 1000):
        directory = tmp_path / str(hit)
        directory.mkdir()
        url = f"{engine}:{directory}/store"
        if not crash_at(point, hit, url, directory, "reverting"):
            assert hit > 1
            return
        if (directory / "acknowledged").exists():  # Else the session or its steps were not there yet.
            await check(url, directory, caplog)

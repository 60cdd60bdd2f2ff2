"""A store on a full disk: it can be read, and what cannot be written is refused because the disk is full."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cli_store import Family, tk

from turnkeeper.model.refusal import Conflict
from turnkeeper.testing.reverting import opened, record_turn


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Path]:
    """A disk of two megabytes."""
    place = tmp_path / "small"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=False).returncode:
        pytest.skip("no disk can be mounted here")
    try:
        yield place
    finally:
        subprocess.run(["umount", "--lazy", place], check=True)


FULL = r"the disk with the snapshots of .* is full; make room and try again"


def fill(disk: Path) -> None:
    with suppress(OSError), (disk / "fill").open("wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass


def test_a_store_on_a_full_disk_can_be_read_and_refuses_writes_by_name(
    data: Path, small: Path, family: Family, tmp_path: Path
) -> None:
    shutil.copy(data / "turnkeeper.db", small)
    fill(small)
    listed = tk(small, "session", "list", "--all", "--json")
    assert (listed.code, family.root.id in listed.out) == (0, True)
    assert tk(small, "session", "messages", family.root.id).code == 0
    assert tk(small, "session", "export", family.root.id, "--output", str(tmp_path / "one.json")).code == 0
    assert tk(small, "doctor").code == 0
    refused = tk(small, "session", "rename", family.root.id, "new")
    assert (refused.code, "the disk was full" in refused.err) == (1, True)
    (small / "fill").unlink()
    assert tk(small, "session", "rename", family.root.id, "new").code == 0


async def test_an_undo_on_a_full_disk_changes_nothing_and_says_why(small: Path, tmp_path: Path) -> None:
    (tmp_path / "home").symlink_to(small)  # The snapshots are there; the store has a disk with room.
    kept = tmp_path / "place" / "kept"
    kept.parent.mkdir()
    kept.write_text("one\ntwo\nthree\n")
    async with opened(f"sqlite:{tmp_path}/store.db", tmp_path) as stage:
        session = await stage.session()
        await record_turn(stage, session, lambda _: kept.write_text("one\ntwo\nTHREE\n"))
        kept.write_text("ONE\ntwo\nTHREE\n")  # A change of the user, which must be stored before it is merged.
        fill(small)
        before = await stage.tk.state(session)
        for dry_run in (True, False):
            with pytest.raises(Conflict, match=FULL):
                await stage.tk.undo(session, dry_run=dry_run)
        assert kept.read_text() == "ONE\ntwo\nTHREE\n"
        after = await stage.tk.state(session)
        assert (after.session.revert, after.session.time) == (None, before.session.time)
        (small / "fill").unlink()
        assert (await stage.tk.undo(session)).problem is None
        assert kept.read_text() == "ONE\ntwo\nthree\n"
        kept.write_text("one\ntwo\nthree\n")
        fill(small)
        with pytest.raises(Conflict, match=FULL):
            await stage.tk.redo(session)
        (small / "fill").unlink()
        await stage.tk.redo(session)
        assert kept.read_text() == "one\ntwo\nTHREE\n"

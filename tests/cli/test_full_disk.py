"""A store on a full disk: it can be read, and what cannot be written is refused because the disk is full."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from cli_store import Family, tk


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


def test_a_store_on_a_full_disk_can_be_read_and_refuses_writes_by_name(
    data: Path, small: Path, family: Family, tmp_path: Path
) -> None:
    shutil.copy(data / "turnkeeper.db", small)
    with suppress(OSError), (small / "fill").open("wb", buffering=0) as file:
        while file.write(bytes(512)):
            pass
    listed = tk(small, "session", "list", "--all", "--json")
    assert (listed.code, family.root.id in listed.out) == (0, True)
    assert tk(small, "session", "messages", family.root.id).code == 0
    assert tk(small, "session", "export", family.root.id, "--output", str(tmp_path / "one.json")).code == 0
    assert tk(small, "doctor").code == 0
    refused = tk(small, "session", "rename", family.root.id, "new")
    assert (refused.code, "the disk was full" in refused.err) == (1, True)
    (small / "fill").unlink()
    assert tk(small, "session", "rename", family.root.id, "new").code == 0

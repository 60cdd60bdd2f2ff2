"""What the tests of the command line share."""

from pathlib import Path

import pytest
from cli_store import Family, api, fill
from workshop import Shop


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory."""
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture
def family(data: Path) -> Family:
    """The small store, in the data directory."""
    return api(data, fill)


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    """A small project of somebody who has configured nothing."""
    made = Shop(tmp_path / "data", tmp_path / "project", tmp_path / "home")
    for folder in made:
        folder.mkdir()
    (made.project / "tides.py").write_text("def hours(minutes):\n    return minutes / 100\n")
    (made.project / "README.md").write_text("# Tides\n")
    return made

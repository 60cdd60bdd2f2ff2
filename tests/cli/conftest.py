"""What the tests of the command line share."""

from pathlib import Path

import pytest
from cli_store import Family, api, fill


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

"""What the specification's tests share."""

from pathlib import Path

import pytest


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Where sessions work."""
    folder = tmp_path / "place"
    folder.mkdir()
    return folder.resolve()

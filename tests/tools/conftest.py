"""What the tests of tools share."""

from pathlib import Path

import pytest
from desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    project = tmp_path / "project"
    project.mkdir()
    return Desk(project, project)

"""Pictures of the guides show what the program prints."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_pictures_of_undo_are_true() -> None:
    command = [sys.executable, str(ROOT / "scripts/record_undo.py"), "--check"]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, "", "")

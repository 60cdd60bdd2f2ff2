"""The README's Python runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)


def test_the_readme_shows_python() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs_and_prints_what_it_made(example: str, tmp_path: Path) -> None:
    environment = {**os.environ, "TURNKEEPER_DATA": str(tmp_path)}
    command = [sys.executable, "-W", "error", "-c", example]
    run = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.startswith("Wind and tide ")

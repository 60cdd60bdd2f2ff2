"""The README is true: its Python runs as it stands, and its commands print what it shows."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), flags=re.DOTALL)


def test_the_readme_shows_python() -> None:
    assert EXAMPLES


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / "scripts/readme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


readme = load()
PAGE = (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("example", EXAMPLES)
def test_the_example_runs_and_prints_what_it_made(example: str, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "forecast.txt").touch()
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT / "src"),
        "TURNKEEPER_DATA": str(tmp_path / "data"),
    }
    command = [sys.executable, "-W", "error", "-c", example]
    run = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")
    assert "`forecast.txt`" in run.stdout
    assert re.search(r"tokens, 0\.0 dollars, kept in ses_\w+\n\Z", run.stdout)


def test_the_five_minutes_work_line_by_line_and_print_what_is_shown() -> None:
    assert readme.words(readme.fill(PAGE)) == readme.words(PAGE)


def test_every_output_is_of_a_command_that_the_reader_types() -> None:
    typed = readme.lines(PAGE)
    shown = [found[2] for found in readme.SHOWN.finditer(PAGE)]
    assert shown
    assert [command for command in shown if not any(line.startswith(command) for line in typed)] == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ses_1 now 3 files", "ses_2  2 h ago  4 files", True),
        ("On disk 12.3 KB", "On disk  466.9 KB", True),
        ("Verdict sound", "Verdict damaged", False),
    ],
)
def test_what_differs_from_day_to_day_is_not_compared(one: str, other: str, *, same: bool) -> None:
    def page(text: str) -> str:
        return f"<!-- output: x -->\n```text\n{text}\n```\n"

    assert (readme.words(page(one)) == readme.words(page(other))) is same


def test_a_command_that_fails_is_told() -> None:
    with pytest.raises(SystemExit, match="a command failed"):
        readme.outputs(["false"])

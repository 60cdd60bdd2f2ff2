"""The table of seed 000 in the documentation names every test of it, and every test is named after its sentence."""

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
TABLE = HERE.parents[1] / "docs/reference/seed-000.md"
ROW = re.compile(r"\| (\d+) \| (.+) \| `(test_\w+)` \|")


def words(sentence: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", sentence.lower()).strip("_")


def test_every_sentence_has_its_test_and_every_test_its_sentence() -> None:
    rows = [match.groups() for line in TABLE.read_text("utf-8").splitlines() if (match := ROW.fullmatch(line))]
    tree = ast.parse((HERE / "test_seed_000.py").read_text("utf-8"))
    tests = [one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)]
    assert [name for _, _, name in rows] == [name for name in tests if name.startswith("test_")]
    assert [int(number) for number, _, _ in rows] == list(range(1, len(rows) + 1))
    assert [name for _, sentence, name in rows if not words(sentence).startswith(name.removeprefix("test_"))] == []


def test_the_guide_to_the_context_does_what_it_says(tmp_path: Path) -> None:
    guide = (HERE.parents[1] / "docs/guides/context.md").read_text("utf-8")
    [program] = re.findall(r"<!-- run -->\n```python\n(.*?)```", guide, re.DOTALL)
    [printed] = re.findall(r"<!-- prints -->\n```text\n(.*?)```", guide, re.DOTALL)
    home, project = tmp_path / "home", tmp_path / "project"
    project.mkdir()
    environment = {**os.environ, "HOME": str(home), "XDG_CONFIG_HOME": str(home)}
    command = [sys.executable, "-W", "error", "-c", program]
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == (printed, "")

"""Each example works, is of sound types and is linked from the README."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from examples import EXAMPLES, LIMIT_S, ROOT, run, start

PRINTED = {
    "custom_tool.py": (
        "failure: There is no gauge at 'the lake'. There are: the bay, the harbour.\n"
        "result: High tide at the bay in 0 days: 6:12\n"
        "At 6:12.\n"
    ),
    "structured_output.py": "west 4 7\n",
    "custom_component.py": "at first: The wind is west.\nnews: The wind is north.\n",
    "custom_provider.py": "Pieces\nof\neight!\n['glob']\n",
    "fork_and_compare.py": ("acme/large: Reef the main and run.\nacme/small: Reef.\n2 messages in the first session\n"),
    "recorded_test.py": "replayed\n",
    "plan_then_build.py": (
        "asked: Plan\nplan: write: refused\nplan: write: done\nplan: plan_exit: done\n"
        "build: write: done\nbuild: Built as planned.\n"
    ),
    "parallel_children.py": (
        "2 coasts seen.\nthe north (@scout subagent): Nothing but sand.\n"
        "the south (@scout subagent): Nothing but sand.\n"
    ),
}


@pytest.mark.parametrize("script", PRINTED)
def test_an_example_prints_what_it_should(script: str, tmp_path: Path) -> None:
    assert run(script, place=tmp_path) == (PRINTED[script], "")


def test_an_agent_is_embedded_in_ten_lines(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/log.txt").write_text("wind west\n")
    out, _ = run("embed.py", place=tmp_path)
    assert "- `log.txt`" in out
    assert "tokens in, $0.0, kept in ses_" in out
    code = [line for line in (EXAMPLES / "embed.py").read_text().splitlines() if line and not line.startswith('"""')]
    assert len(code) <= 10


def test_a_script_that_is_run_again_asks_nothing_twice(tmp_path: Path) -> None:
    first, asked = run("after_a_kill.py", place=tmp_path)
    again, silence = run("after_a_kill.py", place=tmp_path)
    assert (first, asked.count("a provider was asked")) == (again, 3)
    assert silence == ""


def test_a_question_is_answered_in_another_process_after_the_first_was_killed(tmp_path: Path) -> None:
    asking = start("durable_question.py", "ask", place=tmp_path)
    with asking:
        while (waiting := run("durable_question.py", "list", place=tmp_path)[0]) == "":
            assert asking.poll() is None
        asking.kill()
        asking.wait(LIMIT_S)
    assert waiting == "waits: Which harbour?\n"
    assert run("durable_question.py", "answer", "North", place=tmp_path)[0] == "asked: Which harbour?\n"
    assert run("durable_question.py", "ask", place=tmp_path)[0] == "North it is.\n"


def test_every_example_is_run_here_and_linked() -> None:
    found = {path.name for path in EXAMPLES.glob("*.py")}
    assert found == {*PRINTED, "embed.py", "after_a_kill.py", "durable_question.py"}
    readme = (ROOT / "README.md").read_text("utf-8")
    assert [name for name in sorted(found) if f"(examples/{name})" not in readme] == []


@pytest.mark.parametrize("folder", [".", "compare/turnkeeper"])
def test_the_examples_pass_a_strict_type_checker(tmp_path: Path, folder: str) -> None:
    scripts = sorted(map(str, (EXAMPLES / folder).glob("*.py")))
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", f"--cache-dir={tmp_path}"]
    environ = {**os.environ, "MYPYPATH": str(ROOT / "src")}
    done = subprocess.run([*command, *scripts], env=environ, capture_output=True, text=True, check=False)
    assert done.stdout == f"Success: no issues found in {len(scripts)} source files\n", done.stdout


def test_no_example_needs_a_deep_import() -> None:
    allowed = ("import turnkeeper\n", "from turnkeeper.testing import recorded\n")
    for script in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("compare/turnkeeper/*.py")]:
        lines = [line for line in script.read_text("utf-8").splitlines(keepends=True) if "import" in line]
        assert [line for line in lines if "turnkeeper" in line and line not in allowed] == []

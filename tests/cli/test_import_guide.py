"""What the guide to imports shows on a terminal is what the commands print."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from histories import FIXTURES

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/import.md"
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
DEADLINE_S = 60


def printed(home: Path, block: str) -> str:
    """What a terminal shows when the commands of a block are entered."""
    program = home / "bin/turnkeeper"
    environ = {"HOME": str(home), "PATH": f"{program.parent}:/usr/bin:/bin", "COLUMNS": "100"}
    shown = ""
    for line in re.findall(r"^\$ (.*)$", block, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", line], cwd=home, env=environ, capture_output=True, text=True, check=False, timeout=DEADLINE_S
        )
        assert (done.returncode, done.stderr) == (0, "")
        shown += f"$ {line}\n{done.stdout}"
    return shown


@pytest.mark.timeout(120)
def test_the_guide_prints_what_it_says(tmp_path: Path) -> None:
    program = tmp_path / "bin" / "turnkeeper"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnkeeper.cli.main "$@"\n')
    program.chmod(0o755)
    for source, target in (("claude-code", ".claude"), ("codex", ".codex"), ("gemini", ".gemini")):
        shutil.copytree(FIXTURES / source, tmp_path / target)
    blocks = BLOCK.findall(GUIDE.read_text("utf-8"))
    shown = [printed(tmp_path, block) for block in blocks]
    assert shown == blocks
    assert len(shown) == 4

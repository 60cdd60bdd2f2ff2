"""What the guides to agents, commands and skills show on a terminal is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import Shop

GUIDES = Path(__file__).resolve().parents[2] / "docs/guides"
BLOCK = re.compile(r"(?:<!-- file: (?P<path>\S+) -->\n)?```(?P<kind>console|markdown)\n(?P<text>.*?)```", re.DOTALL)
DEADLINE_S = 60


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    """A directory with the program."""
    program = tmp_path / "bin" / "turnkeeper"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnkeeper.cli.main "$@"\n')
    program.chmod(0o755)
    return program.parent


@pytest.mark.timeout(240)
@pytest.mark.parametrize(("guide", "sessions"), [("agents", 3), ("commands", 4), ("skills", 1)])
def test_the_sessions_of_the_guide_print_what_it_says(shop: Shop, commands: Path, guide: str, sessions: int) -> None:
    environ = shop.environ()
    environ["PATH"] = f"{commands}:{environ['PATH']}"
    shown: list[str] = []
    for block in BLOCK.finditer((GUIDES / f"{guide}.md").read_text("utf-8")):
        if block["path"]:
            file = shop.project / block["path"]
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(block["text"])
            continue
        printed = ""
        for line in re.findall(r"^\$ (.*)$", block["text"], re.MULTILINE):
            done = subprocess.run(
                ["bash", "-c", line],
                cwd=shop.project,
                env=environ,
                capture_output=True,
                text=True,
                check=False,
                timeout=DEADLINE_S,
            )
            assert (done.returncode, done.stderr) == (0, "")
            printed += f"$ {line}\n{done.stdout.replace(str(shop.project), '~/project')}"
        assert printed == block["text"]
        shown.append(printed)
    assert len(shown) == sessions

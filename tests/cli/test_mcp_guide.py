"""What the guide to MCP servers shows on a terminal is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import Shop

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/mcp.md").read_text("utf-8")
SERVER = re.compile(r"<!-- file: work/tides.py -->\n```python\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)


@pytest.mark.timeout(180)
def test_the_session_of_the_guide_prints_what_it_says(shop: Shop) -> None:
    programs = shop.home / "bin"
    programs.mkdir()
    for name, words in (("turnkeeper", f"{sys.executable} -m turnkeeper.cli.main"), ("python", sys.executable)):
        (programs / name).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / name).chmod(0o755)
    [server], [session] = SERVER.findall(GUIDE), CONSOLE.findall(GUIDE)
    (shop.project / "tides.py").write_text(server)
    environ = shop.environ()
    environ["PATH"] = f"{programs}:{environ['PATH']}"
    printed = ""
    for line in re.findall(r"^\$ (.*)$", session, re.MULTILINE):
        done = subprocess.run(
            ["bash", "-c", line],
            cwd=shop.project,
            env=environ,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert (done.returncode, done.stderr) == (0, "")
        printed += f"$ {line}\n{done.stdout}"
    assert printed == session

"""The guide to sharing is true: its commands and its program print what stands there."""

import re
import subprocess
import sys
from pathlib import Path

from workshop import Shop

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/sharing.md").read_text("utf-8")
FILE = re.compile(r"<!-- file: (\S+) -->\n```json\n(.*?)```", re.DOTALL)
CONSOLE = re.compile(r"```console\n(.*?)```", re.DOTALL)
PROGRAM = re.compile(r"<!-- program -->\n```python\n(.*?)```\n\n```text\n(.*?)```", re.DOTALL)
DEADLINE_S = 120


def run(shop: Shop, words: list[str], path: Path) -> str:
    environ = shop.environ()
    environ["PATH"] = f"{path}:{environ['PATH']}"
    done = subprocess.run(
        words, cwd=shop.project, env=environ, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    assert (done.returncode, done.stderr) == (0, ""), done.stderr
    return done.stdout


def test_the_commands_of_the_guide_print_what_it_says(shop: Shop, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "turnkeeper"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnkeeper.cli.main "$@"\n')
    program.chmod(0o755)
    for name, text in FILE.findall(GUIDE):
        (shop.project / name).write_text(text)
    blocks = CONSOLE.findall(GUIDE)
    assert len(blocks) == 4
    for block in blocks:
        lines = re.findall(r"^\$ (.*)$", block, re.MULTILINE)
        printed = "".join(f"$ {line}\n{run(shop, ['bash', '-c', line], program.parent)}" for line in lines)
        assert printed == block


def test_the_program_prints_what_stands_below_it(shop: Shop) -> None:
    [(program, printed)] = PROGRAM.findall(GUIDE)
    assert run(shop, [sys.executable, "-c", program], shop.project) == printed

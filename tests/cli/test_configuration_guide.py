"""What the guide to configuration shows on a terminal is what the commands print."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from workshop import Shop

GUIDE = (Path(__file__).resolve().parents[2] / "docs/guides/configuration.md").read_text("utf-8")
BLOCK = re.compile(r"(?:<!-- file: (?P<path>\S+) -->\n)?```(?P<kind>\w+)\n(?P<text>.*?)```", re.DOTALL)
DEADLINE_S = 60


@pytest.mark.timeout(180)
def test_the_sessions_of_the_guide_print_what_it_says(shop: Shop) -> None:
    program = shop.home / "bin" / "turnkeeper"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m turnkeeper.cli.main "$@"\n')
    program.chmod(0o755)
    environ = {**shop.environ(TURNKEEPER_TRUST=""), "LOCAL_KEY": "s3cret"}
    environ["PATH"] = f"{program.parent}:{environ['PATH']}"
    shown = 0
    for block in BLOCK.finditer(GUIDE):
        if block["path"]:
            place = block["path"].replace("~/project", str(shop.project)).replace("~", str(shop.home))
            Path(place).parent.mkdir(parents=True, exist_ok=True)
            Path(place).write_text(block["text"])
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
            told = done.stdout.replace(str(shop.project), "~/project").replace(str(shop.home), "~")
            printed += f"$ {line}\n{told}"
        assert printed == block["text"]
        shown += 1
    assert shown == 4

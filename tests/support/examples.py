"""Runs the examples of the project as a reader would: each is a script."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
LIMIT_S = 120


def start(
    script: str, *arguments: str, place: Path, warnings: str = "error", **environ: str
) -> "subprocess.Popen[str]":
    """Begin an example in a directory, without the settings of this machine. A warning is an error by default."""
    path = os.pathsep.join([str(ROOT / "src"), *sys.path])
    kept = {"HOME": str(place), "PATH": os.environ["PATH"], "PYTHONPATH": path, **environ}
    command = [sys.executable, "-W", warnings, str(EXAMPLES / script), *arguments]
    (place / "work").mkdir(exist_ok=True)
    return subprocess.Popen(
        command, cwd=place / "work", env=kept, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def run(script: str, *arguments: str, place: Path, warnings: str = "error", **environ: str) -> tuple[str, str]:
    """What an example prints, on standard output and standard error. It must end well."""
    with start(script, *arguments, place=place, warnings=warnings, **environ) as process:
        out, err = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 0, err
    return out, err

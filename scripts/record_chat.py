"""Record a chat as docs/images/chat.svg: the real program in a terminal of 100 columns, in a scratch copy of sample/.

Needs tmux. The model is the one that needs no key.
"""

import os
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from record_run import ROOT, draw

sys.path.insert(0, str(ROOT / "tests/support"))

from pane import Pane, pane

IMAGE = ROOT / "docs/images/chat.svg"
SIZE = (100, 44)
WAITING = "sleep 60; python3 -m unittest -q"
PROMPT = f"read tides.py, then run `{WAITING}`"


def main() -> int:
    """Chat while a command runs, and draw the screen."""
    if shutil.which("tmux") is None:
        print("tmux is not installed", file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="tk-") as folder:
        home, project = Path(folder), Path(folder, "tides")
        shutil.copytree(ROOT / "sample", project, ignore=shutil.ignore_patterns("__pycache__"))
        environ = {
            "HOME": folder,
            "PATH": os.environ["PATH"],
            "LANG": "C.UTF-8",
            "TURNKEEPER_DATA": str(home / "data"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        command = [sys.executable, "-m", "turnkeeper.cli.main", "chat", "--plain", "--model", "offline/tk-1"]
        with pane(command, cwd=project, environ=environ, size=SIZE) as shown:
            lines = _walk(shown).rstrip().splitlines()
    draw(IMAGE, lines, width=SIZE[0], title="turnkeeper")
    return 0


def _walk(shown: Pane) -> str:
    shown.shows("»", "Alt-Enter")
    shown.types(PROMPT)
    shown.presses("Enter")
    shown.shows("Enter steers", r"unittest -q  \d+ s")
    shown.types("replace `/ 100` with `/ 60` in tides.py")
    shown.presses("Enter")
    shown.shows("steers: the model")
    shown.types("list the files")
    shown.presses("C-o")
    shown.shows("queued: sent")
    shown.types("/m")
    shown.shows("/model +show")
    return shown.screen(colours=True)


if __name__ == "__main__":
    sys.exit(main())

"""Record the real opencode terminal UI, attached to ``turnkeeper serve``, as docs/images/opencode-attached.svg.

Needs what ``make clients`` installs. The model is the one that needs no key.
"""

import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from record_run import ROOT, draw

sys.path.insert(0, str(ROOT / "tests/support"))

from clients import binary, environment, lacking
from pane import Pane, pane

IMAGE = ROOT / "docs/images/opencode-attached.svg"
TEST = "python3 -m unittest -q"
PROMPTS = (f"list the files, then run `{TEST}`", f"replace `/ 100` with `/ 60` in tides.py, then run `{TEST}`")
SIZE = (124, 54)
DONE = r"not a language model\.\)\s+▣  Build · .* · [\d.]+m?s\s*\n\s*\n(\s*┃.*\n)+\s*┃\s+Build"
"""The last words of an answer, the line below them, and below that nothing but the field for the next prompt."""


def main() -> int:
    """Prompt twice as in ``make run``, and draw the screen."""
    if reason := lacking(program=True, terminal=True):
        print(reason, file=sys.stderr)
        return 1
    with TemporaryDirectory(prefix="tk-") as folder:
        home, project = Path(folder), Path(folder, "tides")
        shutil.copytree(ROOT / "sample", project, ignore=shutil.ignore_patterns("__pycache__"))
        (home / "opencode.json").write_text(json.dumps({"model": "offline/tk-1"}), "utf-8")
        environ = {**environment(home), "OPENCODE_CONFIG": str(home / "opencode.json"), "PYTHONDONTWRITEBYTECODE": "1"}
        with (
            _serving(project, environ) as url,
            pane([str(binary()), "attach", url], cwd=project, environ=environ, size=SIZE) as ui,
        ):
            lines = _walk(ui).replace(str(project), "~/tides".ljust(len(str(project)))).splitlines()
    draw(IMAGE, lines, width=SIZE[0], title="opencode attach http://127.0.0.1:4096")
    return 0


def _walk(ui: Pane) -> str:
    ui.shows("Ask anything")
    for words in PROMPTS:
        ui.types(words)
        ui.presses("Enter")
        ui.shows(r"esc interrupt|Permission")
        while "Permission required" in ui.shows(rf"Permission required|{DONE}"):
            ui.presses("Enter")
            ui.hides("Permission required")
    return ui.screen(colours=True)


@contextmanager
def _serving(project: Path, environ: dict[str, str]) -> Iterator[str]:
    command = [sys.executable, "-m", "turnkeeper.cli.main", "serve", "--port", "0", "--json"]
    with subprocess.Popen(command, cwd=project, env=environ, stdout=subprocess.PIPE, text=True) as started:
        assert started.stdout is not None
        yield json.loads(started.stdout.readline())["url"]
        started.terminate()


if __name__ == "__main__":
    sys.exit(main())

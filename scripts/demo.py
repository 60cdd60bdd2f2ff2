"""The first minute: two prompts in a scratch copy of the sample project, without a key. Run by ``make run``."""

import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

SAMPLE = Path(__file__).resolve().parent.parent / "sample"
PAUSE_MS = 10
"""How slowly the offline model speaks to somebody who watches."""

TEST = "python3 -m unittest -q"
COMMANDS = (
    ["run", "-m", "offline/tk-1", f"list the files, then run `{TEST}`"],
    ["run", "-c", "-m", "offline/tk-1", f"replace `/ 100` with `/ 60` in tides.py, then run `{TEST}`"],
    ["stats", "--models"],
)


def main() -> int:
    """Run the commands, each shown as a person would have typed it; the first bad exit code."""
    with TemporaryDirectory(prefix="turnkeeper-") as folder:
        project = Path(folder) / "tides"
        shutil.copytree(SAMPLE, project, ignore=shutil.ignore_patterns("__pycache__"))
        print(
            f"# A scratch copy of {SAMPLE.name}/, and a model that needs no key: it follows simple rules.", flush=True
        )
        for words in COMMANDS:
            print(f"\n$ turnkeeper {shlex.join(words)}", flush=True)
            if code := _run(words, project, Path(folder)):
                return code
    print("\n# The copy and its store are gone. With a key (turnkeeper auth login PROVIDER) a real model answers.")
    return 0


def _run(words: list[str], project: Path, folder: Path) -> int:
    # Nothing of the person who tries it is read or written.
    own = {
        "TURNKEEPER_DATA": str(folder / "data"),
        "XDG_CONFIG_HOME": str(folder / "config"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    if sys.stdout.isatty():
        own["TURNKEEPER_OFFLINE_PAUSE_MS"] = str(PAUSE_MS)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TURNKEEPER_", "OPENCODE_"))}
    command = [sys.executable, "-m", "turnkeeper.cli.main", *words]
    with subprocess.Popen(command, cwd=project, env={**kept, **own}, stdin=subprocess.DEVNULL) as process:
        while True:
            try:
                return process.wait()
            except KeyboardInterrupt:
                continue  # The program has heard it too, and says itself what comes of it.


if __name__ == "__main__":
    sys.exit(main())

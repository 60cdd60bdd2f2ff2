"""The guided tour: a prompt, a change, undo, fork, compaction, a kill and what is left after it, without a key."""

import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Final, NamedTuple

from cyclopts import Parameter

from turnkeeper.cli.demo_project import FILES
from turnkeeper.cli.failures import OK, REFUSED, UsageError
from turnkeeper.cli.options import Options
from turnkeeper.cli.screen import Screen, show, wrapped

PAUSE_MS: Final = 10
"""How slowly the offline model streams its text, so that a viewer can follow."""
STARTED_S: Final = 120.0
"""How long the run that is killed may take to begin its command."""
TEST: Final = "python3 -m unittest -q"
WAITING: Final = "touch started && sleep 600"


class Step(NamedTuple):
    """A part of the tour: what it shows, in two sentences, and the commands for it."""

    title: str
    about: str
    do: "Callable[[Tour], None]"


def demo(
    *,
    yes: Annotated[bool, Parameter(name=("--yes", "-y"), help="Do not ask before each step.")] = False,
    options: Options,
) -> int:
    """Show what sessions can do, in a scratch project, with a model that needs no key.

    Seven steps: a prompt whose calls run, a change of a file, undo and redo, a
    fork, compaction, a process that is killed in the middle of a command, and the
    costs. Each is a command line that you could have typed. Before each you are
    asked: Enter runs it, s skips it, q ends the tour.

    Project and store are in a directory of their own, which is removed at the end.
    Nothing of yours is read or written.

    For example:
      turnkeeper demo
      turnkeeper demo --yes
    """
    if options.json:
        raise UsageError("the tour prints no JSON; the commands that it shows do, with --json")
    if not yes and not sys.stdin.isatty():
        raise UsageError("there is no terminal to ask on before each step; --yes does not ask")
    with TemporaryDirectory(prefix="turnkeeper-demo-") as folder:
        tour = Tour(Path(folder))
        try:
            for number, step in enumerate(STEPS, 1):
                tour.head(f"{number} of {len(STEPS)}  {step.title}", step.about)
                wish = "" if yes else tour.asked()
                if wish == "q":
                    break
                tour.is_quiet = wish == "s"
                step.do(tour)
        except StepFailed as error:
            tour.say(str(error))
            return REFUSED
        finally:
            tour.end()
    tour.head(
        "That was it.", "Project and store are gone. `turnkeeper` alone begins a chat, in any directory of yours."
    )
    return OK


class StepFailed(Exception):
    """A command of the tour ended otherwise than it should."""


class Tour:
    """Runs commands in a scratch project and shows them as a person would have typed them."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "tides"
        self._folder = folder
        self.is_quiet = False
        """Whether the step is skipped: what later steps need is done, and not shown."""
        self._running: subprocess.Popen[bytes] | None = None
        self.project.mkdir()
        (folder / "tmp").mkdir()
        for name, text in FILES.items():
            (self.project / name).write_text(text, "utf-8")

    # What is shown.

    def head(self, title: str, about: str) -> None:
        """A heading, with what comes."""
        screen = Screen.of(sys.stdout)
        show(f"\n{screen.paint(title, 'bold', 'cyan')}\n{wrapped(about)}")
        sys.stdout.flush()

    def say(self, text: str) -> None:
        """A sentence between two commands."""
        if not self.is_quiet:
            show(wrapped(text))
            sys.stdout.flush()

    def asked(self) -> str:
        """Whether the step is wanted: s to skip it, q to end."""
        print(Screen.of(sys.stderr).paint("Enter runs it, s skips it, q ends: ", "dim"), end="", file=sys.stderr)
        sys.stderr.flush()
        line = sys.stdin.readline()
        return line.strip().casefold()[:1] if line else "q"

    # What is done.

    def run(self, *words: str, shown: Sequence[str] | None = None) -> None:
        """Run a command of the program; ``shown`` is how a person would have typed it."""
        self._typed(f"turnkeeper {shlex.join(shown or words)}")
        process = self._start(words, hidden=self.is_quiet)
        while True:
            try:
                code = process.wait()
                break
            except KeyboardInterrupt:
                continue  # The command has heard it too, and says itself what comes of it.
        if code != OK:
            raise StepFailed(f"`turnkeeper {shlex.join(words)}` ended with {code}; the tour ends here.")

    def shell(self, line: str) -> None:
        """Run a command of the system."""
        self._typed(line)
        if not self.is_quiet:
            subprocess.run(["/bin/sh", "-c", line], cwd=self.project, env=self._environ(), check=False)

    def newest(self) -> str:
        """The slug of the newest session."""
        words = ["session", "list", "--directory", ".", "--limit", "1", "--json"]
        found = subprocess.run(
            self._command(words), cwd=self.project, env=self._environ(), stdout=subprocess.PIPE, check=True
        )
        return str(json.loads(found.stdout)["items"][0]["slug"])

    def kill(self, *words: str) -> None:
        """Start a command, and kill its process once its command runs."""
        marker = self.project / "started"
        self._typed(f"turnkeeper {shlex.join(words)} &")
        self._running = self._start(words, hidden=True)
        end = time.monotonic() + STARTED_S
        while not marker.exists():
            if self._running.poll() is not None or time.monotonic() > end:
                raise StepFailed("the run that was to be killed did not begin its command; the tour ends here.")
            time.sleep(0.05)
        self._typed(f"kill -9 {self._running.pid}")
        self.end()
        marker.unlink()

    def end(self) -> None:
        """End what still runs."""
        if self._running is not None:
            self._running.kill()
            self._running.wait()
            self._running = None

    def _typed(self, line: str) -> None:
        if not self.is_quiet:
            show(f"\n{Screen.of(sys.stdout).paint(f'$ {line}', 'bold')}")
            sys.stdout.flush()

    def _start(self, words: Sequence[str], *, hidden: bool) -> "subprocess.Popen[bytes]":
        out = subprocess.DEVNULL if hidden else None
        return subprocess.Popen(
            self._command(words),
            cwd=self.project,
            env=self._environ(),
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=out,
            start_new_session=hidden,  # What is killed does not hear the Ctrl-C of the tour.
        )

    def _command(self, words: Sequence[str]) -> list[str]:
        return [sys.executable, "-m", "turnkeeper.cli.main", *words]

    def _environ(self) -> dict[str, str]:
        """The environment without settings of the user's."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("TURNKEEPER_", "OPENCODE_"))}
        own = {
            "TURNKEEPER_DATA": str(self._folder / "data"),
            "XDG_CONFIG_HOME": str(self._folder / "config"),
            "TMPDIR": str(self._folder / "tmp"),
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        if sys.stdout.isatty() and not self.is_quiet:
            own["TURNKEEPER_OFFLINE_PAUSE_MS"] = str(PAUSE_MS)
        return {**kept, **own}


def _prompt(tour: Tour) -> None:
    tour.run("run", "-m", "offline/tk-1", f"list the files, then run `{TEST}`")


def _change(tour: Tour) -> None:
    tour.run("run", "-c", f"replace `/ 100` with `/ 60` in tides.py, then run `{TEST}`")
    tour.run("session", "diff", tour.newest())


def _undo(tour: Tour) -> None:
    session = tour.newest()
    tour.run("session", "undo", session, "--yes")
    tour.shell("grep -n 'return minutes' tides.py")
    tour.run("session", "redo", session, "--yes")
    tour.shell("grep -n 'return minutes' tides.py")


def _fork(tour: Tour) -> None:
    tour.run("run", "-c", "--fork", "read README.md")
    tour.run("session", "list")


def _compact(tour: Tour) -> None:
    session = tour.newest()
    tour.run("session", "compact", session, "--force")
    tour.run("session", "recall", session, "--query", "FAILED")


def _kill(tour: Tour) -> None:
    tour.kill("run", "--title", "a killed run", f"read tides.py, then run `{WAITING}`")
    session = tour.newest()
    tour.run("session", "status", session)
    tour.run("session", "resume", session)


def _cost(tour: Tour) -> None:
    tour.run("stats")
    tour.run("doctor")


STEPS: Final = (
    Step(
        "A prompt",
        "A prompt begins a session, and the calls of the model run in the project. The model here follows simple rules "
        "and needs no key; a real one is asked in the same way.",
        _prompt,
    ),
    Step(
        "A change",
        "A second prompt continues the session and mends the mistake that the test found. The session knows what it "
        "changed.",
        _change,
    ),
    Step(
        "Undo and redo",
        "Undo takes back the last prompt: its answers leave the history, and its files are put back. Redo brings both "
        "again.",
        _undo,
    ),
    Step(
        "A fork",
        "A fork is a copy of the session from which one goes on in another way. Both are in the list.",
        _fork,
    ),
    Step(
        "Compaction",
        "A summary takes the place of older history, for the model only. Everything stays in the log, and can be "
        "searched and read.",
        _compact,
    ),
    Step(
        "Kill and resume",
        "A process is killed in the middle of a command. What was recorded is kept; the next process says what was cut "
        "off, goes on, and runs nothing twice.",
        _kill,
    ),
    Step(
        "What it cost",
        "Every request is in a ledger, with its tokens and its price. The doctor checks that the store is what its "
        "logs say.",
        _cost,
    ),
)

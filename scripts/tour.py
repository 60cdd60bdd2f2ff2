"""A tour: the real commands on a scratch store, with what they print. Run by ``make tour``."""

import json
import os
import shlex
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

EXPORT = {
    "info": {
        "id": "ses_e1f51fd02ffeTOURTOURTOURTO",
        "slug": "breezy-harbour",
        "version": "1.0.0",
        "projectID": "global",
        "directory": "/home/user/weather",
        "title": "Add wind to the forecast",
        "time": {"created": 1794770000000, "updated": 1794770060000},
    },
    "messages": [
        {
            "info": {
                "id": "msg_1e0ae030a001TOURTOURTOURTO",
                "sessionID": "ses_e1f51fd02ffeTOURTOURTOURTO",
                "role": "user",
                "time": {"created": 1794770000000},
                "agent": "build",
                "model": {"providerID": "anthropic", "modelID": "claude-sonnet-4"},
            },
            "parts": [{"type": "text", "text": "The forecast shows no wind. Please add the gusts."}],
        },
        {
            "info": {
                "id": "msg_1e0ae030b001TOURTOURTOURTO",
                "sessionID": "ses_e1f51fd02ffeTOURTOURTOURTO",
                "role": "assistant",
                "parentID": "msg_1e0ae030a001TOURTOURTOURTO",
                "time": {"created": 1794770001000, "completed": 1794770060000},
                "modelID": "claude-sonnet-4",
                "providerID": "anthropic",
                "mode": "build",
                "agent": "build",
                "path": {"cwd": "/home/user/weather", "root": "/home/user/weather"},
                "cost": 0.0184,
                "tokens": {"input": 2400, "output": 310, "reasoning": 0, "cache": {"read": 9000, "write": 0}},
                "finish": "stop",
            },
            "parts": [
                {"type": "reasoning", "text": "The gusts are in the second column.", "time": {"start": 1, "end": 2}},
                {
                    "type": "tool",
                    "callID": "call_1",
                    "tool": "edit",
                    "state": {
                        "status": "completed",
                        "input": {"filePath": "/home/user/weather/forecast.py"},
                        "output": "1 replacement",
                        "title": "forecast.py",
                        "metadata": {},
                        "time": {"start": 1794770010000, "end": 1794770010400},
                    },
                },
                {"type": "text", "text": "The forecast now shows wind and gusts in knots."},
            ],
        },
    ],
}


class Tour:
    """Runs commands in a scratch directory and shows them as a person would have typed them."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._environment = {**os.environ, "TURNKEEPER_DATA": str(folder / "data")}
        self._environment.pop("TURNKEEPER_STORE", None)

    def say(self, text: str) -> None:
        """A line of explanation."""
        print(f"\n# {text}", flush=True)

    def show(self, command: str, *, expected: int = 0) -> None:
        """Run a command and let its output through."""
        print(f"$ {command}", flush=True)
        run = subprocess.run(self._words(command), cwd=self._folder, env=self._environment, check=False)
        self._check(command, run.returncode, expected)

    def newest(self, command: str) -> str:
        """Run a command that lists sessions and take the id of the first."""
        words = [*self._words(command), "--json"]
        run = subprocess.run(words, cwd=self._folder, env=self._environment, stdout=subprocess.PIPE, check=False)
        self._check(command, run.returncode, 0)
        return str(json.loads(run.stdout)["items"][0]["id"])

    def _words(self, command: str) -> list[str]:
        program, *rest = shlex.split(command)
        assert program == "turnkeeper", command
        return [sys.executable, "-m", "turnkeeper.cli.main", *rest]

    def _check(self, command: str, code: int, expected: int) -> None:
        if code != expected:
            sys.exit(f"tour: {command!r} ended with {code}, not {expected}")


def main() -> None:
    """Walk through sessions being made, read, forked, archived, searched, exported, damaged and diagnosed."""
    with TemporaryDirectory(prefix="turnkeeper-tour-") as folder:
        tour = Tour(Path(folder))
        (Path(folder) / "wind.json").write_text(json.dumps(EXPORT))
        _make(tour)
        _read(tour)
        _change(tour)
        _check(tour, Path(folder) / "data" / "turnkeeper.db")
        tour.say("That was a scratch store, and it is gone. Yours will be made by your first command.")


def _make(tour: Tour) -> None:
    tour.say("Make a session, and bring in one that was exported elsewhere. Importing again changes nothing.")
    tour.show('turnkeeper session create --title "Tide tables for the bay"')
    tour.show("turnkeeper session import wind.json")
    tour.show("turnkeeper session import wind.json")
    tour.show("turnkeeper session list")


def _read(tour: Tour) -> None:
    tour.say("Find something and read it. A slug, or the beginning of an id, names a session.")
    tour.show("turnkeeper session search gusts")
    tour.show("turnkeeper session messages breezy-harbour")


def _change(tour: Tour) -> None:
    tour.say("Try another way from the second message on, and put the first attempt away.")
    tour.show("turnkeeper session fork breezy-harbour --message msg_1e0ae030b001")
    tour.show("turnkeeper session archive breezy-harbour")
    tour.show("turnkeeper session list --all")
    tour.say("Take it elsewhere, as opencode would write it.")
    tour.show("turnkeeper session export breezy-harbour --output wind-again.json")
    fork = tour.newest("turnkeeper session list --search fork")
    tour.say("Remove the fork for good.")
    tour.show(f"turnkeeper session delete {fork} --yes")


def _check(tour: Tour, store: Path) -> None:
    tour.say("Is the store what its logs say?")
    tour.show("turnkeeper doctor")
    tour.say("Now somebody changes one word of an event behind our back.")
    with closing(sqlite3.connect(store)) as connection, connection:
        changed = connection.execute("UPDATE entry SET body = replace(CAST(body AS TEXT), 'gusts', 'calms')")
        print(f"$ sqlite3 {store.name} \"UPDATE entry SET body = replace(body, 'gusts', 'calms')\"", flush=True)
        assert changed.rowcount
    tour.show("turnkeeper doctor", expected=1)


if __name__ == "__main__":
    main()

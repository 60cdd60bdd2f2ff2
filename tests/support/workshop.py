"""A project to run sessions in, and ways to run them: in this process, as a process, and on a terminal."""

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from cli_store import Answer, command, environment, tk

from turnkeeper.testing.terminal_emulator import TerminalEmulator

SECRETS = ("KEY", "TOKEN", "SECRET", "OPENCODE", "TURNKEEPER", "XDG_")


class Shop(NamedTuple):
    """A project directory, and the directories of a person who has configured nothing."""

    data: Path
    project: Path
    home: Path

    def configure(self, **settings: object) -> None:
        """Write the project's configuration."""
        (self.project / "turnkeeper.json").write_text(json.dumps(settings))

    def environ(self, **more: str) -> dict[str, str]:
        """The environment of a process: nothing of the person who runs the tests."""
        kept = {
            name: value
            for name, value in environment(self.data).items()
            if not any(part in name for part in SECRETS) or name in ("TURNKEEPER_DATA", "TURNKEEPER_TRUST")
        }
        return {**kept, "HOME": str(self.home), "TERM": "xterm", **more}

    def run(self, *words: str, stdin: bytes = b"") -> Answer:
        """Run a prompt in this process with the offline model."""
        before, sys.stdin = sys.stdin, io.TextIOWrapper(io.BytesIO(stdin))
        try:
            model = () if "-m" in words else ("-m", "offline/tk-1")
            place = () if "--dir" in words else ("--dir", str(self.project))
            return tk(self.data, "run", *model, *place, *words)
        finally:
            sys.stdin = before

    def process(self, *words: str, stdin: str = "", **more: str) -> "subprocess.CompletedProcess[str]":
        """Run a command in a process of its own."""
        return subprocess.run(
            command(*words),
            env=self.environ(**more),
            cwd=self.project,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def messages(self, session_id: str) -> list[dict[str, Any]]:
        """The history of a session."""
        found = tk(self.data, "session", "messages", session_id, "--limit", "200", "--json").json
        return [one for one in found["items"] if one["info"]["role"] != "system"]

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, the newest first."""
        listed: list[dict[str, Any]] = tk(self.data, "session", "list", "--all", "--json").json["items"]
        return listed

    @contextmanager
    def terminal(
        self, *words: str, env: Mapping[str, str] | None = None, columns: int = 100, piped: bool = False
    ) -> Iterator["Seat"]:
        """The program on a terminal of its own; its answer goes there, too, or is ``piped``."""
        ours, its = pty.openpty()
        started = subprocess.Popen(
            command(*words),
            env={**self.environ(), **(env or {}), "COLUMNS": str(columns), "LINES": "40"},
            cwd=self.project,
            stdin=its,
            stdout=subprocess.PIPE if piped else its,
            stderr=its,
            start_new_session=True,
        )
        os.close(its)
        try:
            yield Seat(started, ours, [])
        finally:
            started.kill()
            started.wait()
            if started.stdout is not None:
                started.stdout.close()
            os.close(ours)


def plain(text: str) -> str:
    """What a terminal shows, without colours and movements."""
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", text).replace("\r", "")


class Seat(NamedTuple):
    """A person's place before a terminal."""

    process: "subprocess.Popen[bytes]"
    handle: int
    heard: list[str]

    @property
    def screen(self) -> list[str]:
        """What stands on the screen now."""
        emulator = TerminalEmulator(100)
        emulator.feed("".join(self.heard))
        return emulator.lines

    @property
    def shown(self) -> str:
        """The screen as one text."""
        return "\n".join(self.screen)

    @property
    def seen(self) -> str:
        """Everything so far, as it came."""
        return "".join(self.heard)

    def read_until(self, wanted: str) -> str:
        """What was shown since last asked, up to these words, or (empty) up to the program's end."""
        new = ""
        while not wanted or wanted not in plain(new):
            assert select.select([self.handle], [], [], 60)[0], f"the program stopped after {plain(new)[-2000:]}"
            try:
                more = os.read(self.handle, 65536)
            except OSError:  # The other end is closed: the program has ended.
                more = b""
            if not more:
                assert not wanted, f"the program ended after {plain(new)[-2000:]}"
                break
            new += more.decode("utf-8", "replace")
        self.heard.append(new)
        return plain(new)

    def types(self, text: str) -> None:
        """Press these keys."""
        os.write(self.handle, text.encode())

    def end(self) -> int:
        """Watch until it ends; the exit code."""
        self.read_until("")
        return self.process.wait(60)

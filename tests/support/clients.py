"""The official opencode clients as ``make clients`` installs them, and the words with which a test goes without one."""

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from turnkeeper.workspace.config import project_settings
from turnkeeper.workspace.trust import TrustedDirectories

HERE: Final = Path(__file__).parents[1] / "official"
INSTALLED: Final = HERE / "node_modules"
SDK: Final = INSTALLED / "@opencode-ai/sdk"
DEADLINE_S: Final = 120
"""How long a client may take before its test fails: a busy machine is slow, a client that waits for nothing is not."""


@dataclass
class Served:
    """A server that runs, and the provider it asks."""

    url: str
    provider: str
    process: subprocess.Popen[str]
    home: Path
    is_killed: bool = False

    def kill(self) -> None:
        """End it without a chance to write anything."""
        self.is_killed = True
        self.process.kill()
        self.process.wait(DEADLINE_S)

    def logs(self, words: str) -> None:
        """Wait until it has logged this."""
        assert self.process.stderr is not None
        said, end = "", time.monotonic() + DEADLINE_S
        while words not in said:
            ready = select.select([self.process.stderr], [], [], max(end - time.monotonic(), 0))[0]
            assert ready, f"it never logged {words!r}, but:\n{said}"
            said += os.read(self.process.stderr.fileno(), 1 << 16).decode()


@contextmanager
def serving(
    directory: Path, home: Path, provider: str, *words: str, port: str = "0", expected: str = "INFO ", **environ: str
) -> Iterator[Served]:
    """``turnkeeper serve``, started as a person would; it must end well, and may log only what is ``expected``."""
    command = [sys.executable, "-m", "turnkeeper.cli.main", "serve", "--port", port, "--json", "--trust", *words]
    given = {**environment(home), **environ}
    with subprocess.Popen(
        command, cwd=directory, env=given, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        try:
            assert started.stdout is not None
            line = started.stdout.readline()
            assert line, started.communicate()[1]
            served = Served(json.loads(line)["url"], provider, started, home)
            yield served
        finally:
            started.terminate()
        said = started.communicate(timeout=DEADLINE_S)[1]
    assert started.returncode == (-signal.SIGKILL if served.is_killed else 0), said
    complaints = [line for line in said.splitlines() if not line.startswith(("INFO ", expected))]
    assert not complaints, "\n".join(complaints)


def binary() -> Path | None:
    """The real opencode: its package for this platform holds it."""
    return next(INSTALLED.glob("opencode-*/bin/opencode"), None)


def lacking(*, program: bool = False, terminal: bool = False) -> str:
    """Why tests with the npm SDK, the program or the terminal cannot run here; empty if they can."""
    if not program and shutil.which("node") is None:
        return "node is not installed, so the npm SDK cannot be driven"
    if not program and not SDK.is_dir():
        return "the npm SDK is not installed: make clients could not, or was not run"
    if program and binary() is None:
        return "the opencode binary is not installed: make clients could not, or was not run"
    if terminal and shutil.which("tmux") is None:
        return "tmux is not installed, so the terminal UI cannot be looked at"
    return ""


def needs(**what: bool) -> pytest.MarkDecorator:
    """Skip with a reason a person understands."""
    reason = lacking(**what)
    return pytest.mark.skipif(bool(reason), reason=reason)


def environment(home: Path) -> dict[str, str]:
    """What a client is given: a home of its own, and nothing to fetch."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "TERM": "xterm-256color",
        "COLORTERM": "truecolor",
        "LANG": "C.UTF-8",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }


def opencode(home: Path, *words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run the real opencode to its end."""
    return subprocess.run(
        [str(binary()), *words],
        cwd=cwd,
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )


def configured(directory: Path, served: Served) -> Path:
    """A trusted project with one provider, one model, and commands that are asked about."""
    directory.mkdir()
    model = {"name": "Scripted One", "tool_call": True, "limit": {"context": 200_000, "output": 8_192}}
    fake = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "Scripted",
        "options": {"baseURL": served.provider, "apiKey": "no-secret"},
        "models": {"one": model},
    }
    given = {
        "provider": {"scripted": fake},
        "model": "scripted/one",
        "small_model": "scripted/one",
        "enabled_providers": ["scripted"],
        "permission": {"bash": "ask", "edit": "allow"},
        "autoupdate": False,
    }
    (directory / "opencode.json").write_text(json.dumps(given), "utf-8")
    # The server trusts what was there when it was started; this is newer.
    environ = environment(served.home)
    TrustedDirectories(environ).add(directory, settings=project_settings(directory, directory, environ).contents)
    return directory

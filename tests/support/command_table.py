"""Every command with arguments that it accepts, and a way to run many of them in one process.

A new command fails the tests that walk this table until it has a line here.
"""

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from cli_store import Answer, said
from cyclopts import App
from workshop import Shop

from turnkeeper.cli.commands import app

LISTS: Mapping[str, str] = {
    "session list": "--limit 1",
    "session children": "ROOT",
    "session messages": "ROOT",
    "session todo": "ROOT",
    "session search": "gust",
    "session diff": "ROOT",
    "session blame": "tides.py",
    "session status": "",
    "session recover": "",
    "session import": "exported.json",
    "session delete": "CHILD --yes",
    "permission list": "",
    "permission saved": "",
    "question list": "",
    "agent list": "",
    "command list": "",
    "skill list": "",
    "mcp list": "",
    "plugin list": "",
    "models": "",
    "auth list": "",
    "config fetch": "",
    "snapshot du": "--all",
    "snapshot gc": "--all",
    "import": "exported.json",
}
"""Commands that list things."""

OBJECTS: Mapping[str, str] = {
    "session show": "ROOT",
    "session create": "--title Another",
    "session fork": "ROOT",
    "session archive": "ROOT",
    "session restore": "ROOT",
    "session rename": "ROOT Wind",
    "session move": "ROOT .",
    "session tree": "ROOT",
    "session context": "ROOT",
    "session abort": "ROOT",
    "session redactions": "ROOT",
    "session share": "ROOT --yes",
    "session unshare": "ROOT",
    "session export": "ROOT",
    "session undo": "ROOT --dry-run",
    "agent show": "plan",
    "agent create": "greeter --description greets",
    "command show": "review",
    "skill show": "tide",
    "plugin new": "louder",
    "mcp add": "sea -- python",
    "mcp remove": "sea",
    "models default": "",
    "config show": "--origin",
    "config explain": "model",
    "config check": "",
    "trust": "",
    "cluster status": "",
    "stats": "",
    "export": "ROOT",
    "import opencode": "FIXTURES/opencode/opencode-1.18.db",
    "import claude-code": "FIXTURES/claude-code",
    "import codex": "FIXTURES/codex",
    "import gemini": "FIXTURES/gemini",
    "doctor": "",
    "db path": "",
    "store copy": "sqlite:copied.db files:copy",
}
"""Commands that answer about one thing."""

STREAMS: Mapping[str, str] = {
    "run": "hello -m offline/tk-1",
    "session log": "ROOT",
    "session watch": "ROOT",
    "session resume": "ROOT",
    "serve": "--port 0",
    "worker": "",
}
"""Commands that print one object a line."""

OTHERS: Mapping[str, str] = {
    "chat": "",
    "demo": "",
    "completion": "bash",
    "config edit": "",
    "config schema": "",
    "mcp serve": "",
    "mcp auth": "sea",
    "mcp logout": "sea",
    "mcp debug": "sea",
    "models test": "openai/gpt-5-mini",
    "auth login": "openai",
    "auth logout": "openai",
    "session redo": "ROOT",
    "session compact": "ROOT --force",
    "session recall": "ROOT r0123456789",
    "permission allow": "per_0123456789ab",
    "permission deny": "per_0123456789ab",
    "permission revoke": "psv_0123456789ab",
    "question answer": "que_0123456789ab yes",
    "question reject": "que_0123456789ab",
}
"""Commands that print no answer of their own, or that need more than a small store to print one."""


class Command(NamedTuple):
    """A command, and the module and name of its function as in ``commands.SERVED``."""

    name: str
    function: str


def commands(level: App = app, before: str = "") -> Iterator[Command]:
    """All commands of the program."""
    for name in level:
        if name.startswith("-"):
            continue
        found, whole = level[name], f"{before}{name}"
        yield from commands(found, f"{whole} ")
        if (function := found.default_command) is not None:
            module = str(function.__module__).removeprefix("turnkeeper.cli.")
            yield Command(whole, f"{module}:{function.__name__}")


def run_all(shop: Shop, lines: list[str]) -> list[Answer]:
    """Run these commands one after the other in a process that has the environment of the shop."""
    done = subprocess.run(
        [sys.executable, __file__],
        env={**shop.environ(), "PYTHONPATH": os.pathsep.join(sys.path)},
        cwd=shop.project,
        input=json.dumps([shlex.split(line) for line in lines]),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return [Answer(*one) for one in json.loads(done.stdout)]


if __name__ == "__main__":
    answers = [said(*words) for words in json.loads(sys.stdin.read())]
    sys.stdout.write(json.dumps(answers))

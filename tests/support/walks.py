"""Walks through an npm SDK: a script of ours calls its methods against our server, and tells what was answered."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients import DEADLINE_S, HERE, environment

NOT_SERVED = "is not served here"


@dataclass(frozen=True)
class Walk:
    """What a script told: answers by the name it gave them, and which methods it called."""

    told: Mapping[str, Any]
    called: Mapping[str, Mapping[str, bool]]

    def answer(self, name: str, status: int = 200) -> Any:
        """The body of an answer that must have had this status."""
        found = self.told[name]
        assert found["status"] == status, (name, found)
        return found.get("data")

    def refusal(self, name: str, status: int) -> Any:
        """The error as the SDK gives it."""
        found = self.told[name]
        assert found["status"] == status, (name, found)
        return found["error"]

    def unserved(self) -> set[str]:
        """The answers that say there is no such route."""
        return {
            name
            for name, found in self.told.items()
            if isinstance(found, dict) and found.get("status") == 404 and NOT_SERVED in json.dumps(found["error"])
        }

    def uncalled(self) -> Iterator[str]:
        """Methods the SDK has and the script forgot."""
        return (f"{group}.{name}" for group, names in self.called.items() for name, done in names.items() if not done)


def walk(script: str, *words: str, home: Path) -> Walk:
    """Run a script to its end."""
    done = subprocess.run(
        ["node", str(HERE / script), *words],
        env=environment(home),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    return Walk(found["told"], found["called"])


def texts(parts: list[dict[str, Any]]) -> list[str]:
    """What the text parts of a message say."""
    return [part["text"] for part in parts if part["type"] == "text"]

"""A server in a process of its own, as a person starts it."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import httpx2
from served import DEADLINE_S

from turnkeeper.testing.server import ScriptedServer


@dataclass
class Place:
    """A project and a home whose configuration knows one provider."""

    path: Path
    provider: ScriptedServer
    url: str = ""
    """The store, if it is not the default one."""

    @property
    def store(self) -> str:
        return self.url or f"sqlite:{self.path / 'data' / 'turnkeeper.db'}"

    def configure(self, key: str = "none") -> None:
        """Write the configuration. What is asked under a key of its own can be told from what others asked."""
        options = {"baseURL": self.provider.url, "apiKey": key}
        models = {"large": {"tool_call": True, "limit": {"context": 100_000, "output": 1_000}}}
        acme = {"npm": "@ai-sdk/openai-compatible", "options": options, "models": models}
        given = {
            "model": "acme/large",
            "small_model": "acme/large",
            "provider": {"acme": acme},
            "permission": {"*": "allow"},
        }
        (self.path / "turnkeeper.json").write_text(json.dumps(given))

    @asynccontextmanager
    async def serving(
        self, *options: str, **variables: str
    ) -> AsyncIterator[tuple[subprocess.Popen[str], httpx2.AsyncClient]]:
        """A server in a process of its own, as a person starts it, and a client of it."""
        async with (
            self.started("serve", "--port", "0", *options, **variables) as (process, said),
            httpx2.AsyncClient(base_url=said["url"], timeout=DEADLINE_S) as http,
        ):
            yield process, http

    @asynccontextmanager
    async def started(
        self, *words: str, **variables: str
    ) -> AsyncIterator[tuple[subprocess.Popen[str], dict[str, str]]]:
        """A command that goes on until it is killed, and what it said when it was ready."""
        environ = {"PATH": os.environ["PATH"], "HOME": str(self.path), "TURNKEEPER_TRUST": "1"}
        environ |= {"PYTHONPATH": os.pathsep.join(sys.path), **variables}
        environ |= {"TURNKEEPER_DATA": str(self.path / "data"), "TURNKEEPER_STORE": self.store}
        command = [sys.executable, "-m", "turnkeeper.cli.main", *words, "--json"]
        with subprocess.Popen(
            command, cwd=self.path, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as started:
            try:
                assert started.stdout is not None
                line = await anyio.to_thread.run_sync(started.stdout.readline)
                assert line, started.communicate()[1]
                yield started, json.loads(line)
            except Exception:
                started.kill()
                sys.stderr.write(started.communicate()[1])  # What it complained of; shown with the failure.
                raise
            finally:
                started.kill()

"""A server under test: the whole application over a scripted runtime, called in memory."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
import httpx2

from turnkeeper.providers.provider import Provider
from turnkeeper.providers.scripted import Scripted
from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.service import ServerOptions, Service
from turnkeeper.store.engine import Engine
from turnkeeper.testing import harness
from turnkeeper.testing.harness import Stage, stage

DEADLINE_S = 60
"""A test that waits for what never comes fails, and does not hang."""

PORT = 4096


@dataclass
class Served:
    """A server, and a client of it."""

    service: Service
    http: httpx2.AsyncClient
    stage: Stage
    app: App

    async def get(self, path: str, status: int = 200, **given: Any) -> Any:
        return await self.call("GET", path, status, **given)

    async def post(self, path: str, body: object = None, status: int = 200, **given: Any) -> Any:
        return await self.call("POST", path, status, json=body, **given)

    async def call(self, method: str, path: str, status: int = 200, **given: Any) -> Any:
        """The body of the answer, which must have this status."""
        answer = await self.http.request(method, path, **given)
        assert answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    async def session(self, **given: object) -> str:
        return str((await self.post("/session", given))["id"])

    async def ask(self, session_id: str, text: str, **given: object) -> dict[str, Any]:
        """Send a prompt and wait for what comes of it."""
        answered = await self.post(
            f"/session/{session_id}/message", {"parts": [{"type": "text", "text": text}], **given}
        )
        assert isinstance(answered, dict)
        return answered


@asynccontextmanager
async def served(
    directory: Path,
    provider: Provider | None = None,
    *,
    options: ServerOptions | None = None,
    host: str = f"127.0.0.1:{PORT}",
    store: str | Engine = "memory:",
    **given: Any,
) -> AsyncIterator[Served]:
    """Serve a scripted runtime in a directory."""
    settings = harness.StageOptions(**{"ask": None, "question": None, **given})
    with anyio.fail_after(DEADLINE_S):
        async with stage(store, directory, provider or Scripted(), settings) as opened:
            environ = {"HOME": str(directory), "TURNKEEPER_TRUST": "1"}
            service = Service(opened.tk, opened.directory, options or ServerOptions(environ=environ))
            app = App(service, routes.load)
            transport = httpx2.ASGITransport(app)
            async with httpx2.AsyncClient(transport=transport, base_url=f"http://{host}") as http:
                yield Served(service, http, opened, app)

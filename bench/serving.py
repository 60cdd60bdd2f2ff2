"""Serving: a request through the whole application, to the engine's bare reading or writing of the same bytes."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import turnkeeper
from bench.data import a_session
from bench.measure import Figure, best_of, ms
from bench.pages import fill
from turnkeeper.model.value import encode
from turnkeeper.server import routes
from turnkeeper.server.app import App
from turnkeeper.server.asgi import AsgiMessage
from turnkeeper.server.service import Service
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, Key

NOTE = encode({"noReply": True, "parts": [{"type": "text", "text": "Please look at the module. " * 8}]})

Work = Callable[[], Awaitable[object]]


async def measure(folder: Path) -> list[Figure]:
    """No socket: what a request costs beyond it is ours, what the network costs is everybody's."""
    async with turnkeeper.open(f"sqlite:{folder / 'serving.db'}") as tk:
        large = await a_session(tk, messages=5000, parts=1)
        await fill(tk, 20_000)
        app = App(Service(tk, folder), routes.load)
        engine, page, history = tk.store.engine, *await _documents(tk.store.engine, large.id)
        own = [keys.session(large.project_id, large.id)]
        path = f"/session/{large.id}"
        return [
            await _figure("get a session", _asking(app, path), lambda: engine.get(own), 8),
            await _figure(
                "newest 100 of 20,000 sessions",
                _asking(app, "/session", "directory=/somewhere"),
                lambda: engine.scan(("session", "global"), limit=100),
                10,
            ),
            await _figure(
                "page of 50 out of 5,000", _asking(app, f"{path}/message", "limit=50"), lambda: engine.get(page), 5
            ),
            await _figure("history of 5,000", _asking(app, f"{path}/message"), lambda: engine.get(history), 5, times=5),
            await _figure("append", _asking(app, f"{path}/message", body=NOTE), _appending(engine), 6, times=100),
        ]


async def _figure(what: str, ours: Work, floor: Work, aim: float, *, times: int = 50) -> Figure:
    await ours()
    bare, took = await best_of(times, floor), await best_of(times, ours)
    ratio = took / bare
    return Figure(f"served: {what}", ms(took), f"the engine alone: {ms(bare)}", ratio, f"<= {aim:g}", ratio <= aim)


async def _documents(engine: Engine, session_id: str) -> tuple[list[Key], list[Key]]:
    """The keys of what a page shows, and of what all of the history is."""
    infos = [key for key, _ in await engine.scan(("message", session_id))]
    groups = await engine.gather([("part", key[2]) for key in infos])
    parts = [key for group in groups for key, _ in group]
    return [*infos[-50:], *parts[-50:]], [*infos, *parts]


def _asking(app: App, path: str, query: str = "", *, body: bytes | None = None) -> Work:
    """A request in ASGI's own words; the answer must be a good one."""
    scope = {
        "type": "http",
        "method": "POST" if body is not None else "GET",
        "path": path,
        "query_string": query.encode(),
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
    }

    async def receive() -> AsgiMessage:
        return {"type": "http.request", "body": body or b""}

    async def send(message: AsgiMessage) -> None:
        assert message.get("status", 200) == 200, "a request that fails is no measure"

    return lambda: app(dict(scope), receive, send)


def _appending(engine: Engine) -> Work:
    """As many bytes and documents as a prompt has, without anything to decide."""
    length = 0

    async def append() -> None:
        nonlocal length
        documents: dict[Key, bytes | None] = {("bench", str(length), str(nth)): NOTE for nth in range(8)}
        await engine.append("bench", length, [NOTE, NOTE], documents, texts={("bench", str(length)): NOTE.decode()})
        length += 2

    return append

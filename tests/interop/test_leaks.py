"""Leaks: secrets of every kind at every place of sessions, looked for in what leaves by each door."""

import json
import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from html import unescape
from pathlib import Path

from leak_corpus import KINDS, Facts, Leak, leaky_sessions
from leak_places import PLACES

from turnkeeper.app import Turnkeeper, open_store
from turnkeeper.model.todo import Todo
from turnkeeper.server.share.live import GONE, frames

SEED, COUNT = 2026, 1_200
ALL = ("messages", "tools", "diffs", "todos", "reasoning", "outputs", "files", "usage")


def machine(home: Path) -> Facts:
    """A home and a project with what a redactor can know, and those facts."""
    project = home / "src/tides"
    project.mkdir(parents=True)
    env = ("quiet lagoon window", "7f3kd92kslq0", "pier-lantern-harbour-9", "Zq8vRk2LmX0pW4tY")
    (project / ".env").write_text("".join(f"VALUE_{nth}='{value}'\n" for nth, value in enumerate(env)))
    (home / ".gitconfig").write_text("[user]\n\tname = Ada\n\temail = lovelace@tidal.example\n")
    return Facts(
        directory=str(project),
        env=env,
        variable="northbound-kelp-ferry",
        home=str(home),
        user="adalove",
        host="kelpforest",
        email="lovelace@tidal.example",
    )


def environ(facts: Facts) -> Mapping[str, str]:
    """The environment of the process that shares."""
    return {"HOME": facts.home, "USER": facts.user, "HOSTNAME": facts.host, "FERRY_TOKEN": facts.variable}


async def left(tmp_path: Path, count: int = COUNT, seed: int = SEED) -> tuple[list[Leak], dict[str, list[Leak]]]:
    """All leaks, and those that are left in what leaves by each door."""
    facts = machine(tmp_path / "home/adalove")
    leaks: list[Leak] = []
    found: dict[str, list[Leak]] = {}
    async with open_store("memory:", directory=facts.directory, environ=environ(facts)) as tk:
        for session in leaky_sessions(seed, count, facts):
            file = tmp_path / "session.json"
            file.write_text(json.dumps(session.json))
            report = await tk.import_sessions(file)
            assert report.is_whole, report
            session_id = session.json["info"]["id"]
            tasks = [Todo(content=text, status="pending", priority="high") for text in session.todos]
            await tk.set_todos(session_id, tasks)
            leaks += session.leaks
            async for door, text in _doors(tk, session_id):
                found.setdefault(door, []).extend(
                    leak for leak in session.leaks if any(one in text for one in leak.gone)
                )
    return leaks, found


async def _doors(tk: Turnkeeper, session_id: str) -> AsyncIterator[tuple[str, str]]:
    """What leaves by each door, as a reader would have it; and the export that masks nothing."""
    yield "raw export", await _json(tk.export(session_id))
    yield "redacted export", await _json(tk.export(session_id, redact=True))
    yield "sanitised export", await _json(tk.export(session_id, sanitise=True))
    yield "page", _seen(await _joined(tk.export_html(session_id)))
    link = await tk.share(session_id, include=ALL)
    yield "link as JSON", _strings(list(await tk.shared(link.id, link.secret)))
    opened = await tk.open_share(link.id, link.secret)

    async def withdraw(_: float) -> None:
        await tk.unshare(session_id)

    told = [frame async for frame in frames(tk.store, opened, withdraw)]
    assert told[1:] == [GONE]
    first = json.loads(told[0][len("data: ") :])
    yield "link as a page", _seen("\n".join([first["title"], *first["changed"].values()]))
    yield "report", str(link.report)


async def _joined(pieces: AsyncIterator[bytes]) -> str:
    return b"".join([piece async for piece in pieces]).decode()


async def _json(pieces: AsyncIterator[bytes]) -> str:
    return _strings(json.loads(await _joined(pieces)))


def _strings(value: object) -> str:
    """All strings of a JSON value, each on its own; texts of neighbouring parts also joined."""
    match value:
        case str():
            return value
        case dict():
            return "\n".join(f"{_strings(key)}\n{_strings(one)}" for key, one in value.items())
        case list():
            return "\n".join(_strings(one) for one in value)
        case _:
            return ""


def _seen(page: str) -> str:
    """The text of a page without its tags."""
    return unescape(re.sub(r"<[^>]*>", "", page)) + unescape(page)


async def test_at_least_99_of_100_leaks_are_closed_at_every_door(tmp_path: Path) -> None:
    leaks, found = await left(tmp_path)
    assert len({leak.kind for leak in leaks}) == len(KINDS) >= 60
    assert len({leak.place for leak in leaks}) == len(PLACES) >= 20
    raw = found.pop("raw export")
    missed = {door: Counter((leak.kind, leak.place) for leak in some) for door, some in found.items()}
    assert len(raw) >= len(leaks) * 0.9, "the corpus is in the sessions"
    assert all(count.total() <= COUNT // 100 for count in missed.values()), missed

"""Killed between sampling and admission, or between admission and request: nothing is told twice, nothing is missed."""

import os
import sys
from pathlib import Path

import anyio
import context_child
import pytest
from context_world import admitted, epochs, news, prefixes, world, write
from narrow import first_text

from turnkeeper.model.event import TurnStarted
from turnkeeper.providers.scripted import Scripted
from turnkeeper.store.crash import EXIT_CODE, VARIABLE

BEFORE, AFTER = "boundary.before-admit", "boundary.after-admit"


async def killed_at(point: str, url: str, place: Path, session: str) -> None:
    """Another process says something in the session and dies there."""
    command = [sys.executable, context_child.__file__, url, str(place), session, "and now?"]
    died = await anyio.run_process(command, env={**os.environ, VARIABLE: point}, check=False)
    assert died.returncode == EXIT_CODE, died.stderr.decode()


def told(text: str, file: Path) -> str:
    return f"The instructions from {file} are now as follows, in place of any earlier version:\n{text}"


@pytest.mark.parametrize("engine", ["sqlite", "files"])
@pytest.mark.parametrize(
    ("point", "later", "expected"),
    [
        (BEFORE, None, ["second"]),
        (BEFORE, "third", ["third"]),
        (AFTER, None, ["second"]),
        (AFTER, "third", ["second", "third"]),
        (AFTER, "first", ["second", "first"]),
    ],
)
async def test_news_is_told_once_though_the_process_died_at_its_admission(
    place: Path, tmp_path: Path, engine: str, point: str, later: str | None, expected: list[str]
) -> None:
    url = f"{engine}:{tmp_path}/store"
    script = Scripted().says("Yes.").forever()
    file = write(place / "AGENTS.md", "first")
    async with world(place, script, url=url) as stage:
        session = await stage.session()
        await stage.ask(session, "hello")
        write(file, "second")
    await killed_at(point, url, place, session)
    if later is not None:
        write(file, later)
    async with world(place, script, url=url) as stage:
        started = [event for event in await stage.events(session) if isinstance(event, TurnStarted)]
        assert len(started) == 1, "the process died before it asked the model"
        assert (await stage.tk.run(session)).kind == "rested"
        assert news(script.requests[-1]) == [told(text, file) for text in expected]
        assert first_text(script.requests[-1].messages[2]) == "and now?"
        assert script.requests[-1].system == script.requests[0].system
        await stage.ask(session, "nothing is new")
        assert news(script.requests[-1]) == [told(text, file) for text in expected]
        assert len(await admitted(stage, session)) == len(expected)
        assert [one.cause for one in await prefixes(stage, session)] == ["epoch 1 began: start", None, None]
        assert await stage.is_sound(session)


@pytest.mark.parametrize(("point", "begun", "expected"), [(BEFORE, "second", []), (AFTER, "first", ["second"])])
async def test_an_epoch_begins_once_though_the_process_died_as_it_began(
    place: Path, tmp_path: Path, point: str, begun: str, expected: list[str]
) -> None:
    url = f"sqlite:{tmp_path}/store.db"
    script = Scripted().says("Yes.").forever()
    file = write(place / "AGENTS.md", "first")
    async with world(place, script, url=url) as stage:
        session = await stage.session()
    await killed_at(point, url, place, session)
    write(file, "second")
    async with world(place, script, url=url) as stage:
        await stage.tk.run(session)
        assert script.requests[-1].system[-1] == f"Instructions from: {file}\n{begun}"
        assert news(script.requests[-1]) == [told(text, file) for text in expected]
        assert len(await epochs(stage, session)) == 1

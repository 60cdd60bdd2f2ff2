"""A recorded exchange is replayed without a provider, and a changed request fails with the difference."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import turnkeeper
from turnkeeper.testing import RecordingChanged, Scripted, recorded

CONFIG = {
    "model": "acme/large",
    "provider": {
        "acme": {"protocol": "openai-chat", "api": "https://acme.example", "env": ["ACME_KEY"], "models": {"large": {}}}
    },
}


def tide(place: str) -> str:
    """When the tide is high."""
    return f"6:12 at {place}"


@pytest.fixture
def settings(tmp_path: Path) -> turnkeeper.Settings:
    return turnkeeper.Settings(environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin", "ACME_KEY": "sk-12345"})


@pytest.fixture
async def kept(tmp_path: Path, settings: turnkeeper.Settings) -> Path:
    """A recording of two sessions."""
    model = Scripted().calls("tide", place="the bay").then().says("At 6:12.").then().says("West.")
    (tmp_path / "first").mkdir()
    path = tmp_path / "recordings/tide.json"
    options: Any = {"config": CONFIG, "tools": [tide], "settings": settings, "directory": tmp_path / "first"}
    async with recorded(path, provider=model, record=True, **options) as tk:
        await talk(tk)
    return path


async def talk(tk: turnkeeper.Turnkeeper, wind: str = "Wind?") -> None:
    assert (await tk.ask("Tide?")).text == "At 6:12."
    assert (await tk.ask(wind)).text == "West."


def elsewhere(tmp_path: Path, **given: object) -> dict[str, Any]:
    """Another directory of another user, without a key."""
    place = tmp_path / "second/place"
    place.mkdir(parents=True)
    environ = {"HOME": str(tmp_path / "second"), "PATH": "/usr/bin:/bin"}
    settings = turnkeeper.Settings(environ=environ)
    return {"config": CONFIG, "tools": [tide], "settings": settings, "directory": place, **given}


async def test_a_recording_is_replayed_in_another_place_without_a_key(kept: Path, tmp_path: Path) -> None:
    assert "sk-12345" not in kept.read_text()
    assert str(tmp_path) not in kept.read_text()
    async with recorded(kept, **elsewhere(tmp_path)) as tk:
        await talk(tk)


async def test_another_prompt_fails_with_the_difference(kept: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with recorded(kept, **elsewhere(tmp_path)) as tk:
            await talk(tk, wind="Which wind?")

    with pytest.raises(RecordingChanged) as caught:
        await run()
    lines = str(caught.value).splitlines()
    assert "a request of session 2 differs" in lines[0]
    assert [line.strip() for line in lines if line[:1] in "-+"][2:] == [
        '-          "text": "Wind?"',
        '+          "text": "Which wind?"',
    ]
    assert "TURNKEEPER_RECORD=1" in lines[-1]


CHANGES: dict[str, Callable[[], dict[str, object]]] = {
    "another description of a tool": lambda: {"tools": [turnkeeper.tool(name="tide", description="Tides.")(tide)]},
    "another system prompt": lambda: {"agents": [turnkeeper.Agent("build", "You are a sailor.")]},
    "a further fact": lambda: {"components": [turnkeeper.component("acme/moon")(lambda: "The moon is full.")]},
}


@pytest.mark.parametrize("name", CHANGES)
async def test_any_change_of_a_request_fails(name: str, kept: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with recorded(kept, **elsewhere(tmp_path, **CHANGES[name]())) as tk:
            await talk(tk)

    with pytest.raises(RecordingChanged, match="a request of session 1 differs"):
        await run()


async def test_a_request_that_is_not_made_any_more_fails(kept: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with recorded(kept, **elsewhere(tmp_path)) as tk:
            await tk.ask("Tide?")

    with pytest.raises(RecordingChanged, match="1 recorded requests were not made"):
        await run()


async def test_a_request_that_was_not_recorded_fails(kept: Path, tmp_path: Path) -> None:
    async def run() -> None:
        async with recorded(kept, **elsewhere(tmp_path)) as tk:
            await talk(tk)
            await tk.ask("More?")

    with pytest.raises(RecordingChanged, match="a request of session 3 was not recorded"):
        await run()


async def test_without_a_recording_it_is_said_how_to_make_one(tmp_path: Path) -> None:
    async def run() -> None:
        async with recorded(tmp_path / "none.json", **elsewhere(tmp_path)):
            pass

    with pytest.raises(RecordingChanged, match="set TURNKEEPER_RECORD=1 to record it"):
        await run()

"""A function is a provider: what it returns or yields is the answer."""

import threading
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

import turnkeeper
from turnkeeper import ApiFailure, Call, Invalid, ModelRequest, Settings, TurnFailed


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(titles=False, snapshots=False, environ={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})


def plain(request: ModelRequest) -> str:
    return "West."


async def awaited(request: ModelRequest) -> str:
    return "West."


async def yielded(request: ModelRequest) -> AsyncIterator[str]:
    yield "We"
    yield "st."


@pytest.mark.parametrize("function", [plain, awaited, yielded])
async def test_a_function_that_returns_or_yields_answers(function: object, settings: Settings, tmp_path: Path) -> None:
    made = turnkeeper.provider(function)  # type: ignore[arg-type]  # One of three kinds.
    async with turnkeeper.open("memory:", directory=tmp_path, provider=made, settings=settings) as tk:
        assert (await tk.ask("Wind?")).text == "West."


async def test_plain_functions_run_at_the_same_time(settings: Settings, tmp_path: Path) -> None:
    both = threading.Barrier(2, timeout=60)

    def answer(request: ModelRequest) -> str:
        both.wait()
        return "West."

    made = turnkeeper.provider(answer)
    async with (
        turnkeeper.open("memory:", directory=tmp_path, provider=made, settings=settings) as tk,
        anyio.create_task_group() as group,
    ):
        for _ in range(2):
            group.start_soon(tk.ask, "Wind?")


async def test_a_function_calls_tools(settings: Settings, tmp_path: Path) -> None:
    async def answer(request: ModelRequest) -> AsyncIterator[str | Call]:
        yield "Done." if len(request.messages) > 1 else Call(id="", name="glob", input={"pattern": "*"})

    made = turnkeeper.provider(answer)
    async with turnkeeper.open("memory:", directory=tmp_path, provider=made, settings=settings) as tk:
        answer_given = await tk.ask("Files?")
        assert answer_given.text == "Done."
        assert [part.tool for part in answer_given.parts if isinstance(part, turnkeeper.ToolPart)] == ["glob"]


async def test_what_a_function_raises_fails_the_turn(settings: Settings, tmp_path: Path) -> None:
    def answer(request: ModelRequest) -> str:
        raise RuntimeError("no wind")

    made = turnkeeper.provider(answer)
    async with turnkeeper.open("memory:", directory=tmp_path, provider=made, settings=settings) as tk:
        with pytest.raises(TurnFailed, match="RuntimeError: no wind") as caught:
            await tk.ask("Wind?")
        assert isinstance(caught.value.error, ApiFailure)


def test_only_a_function_is_made_a_provider() -> None:
    with pytest.raises(Invalid):
        turnkeeper.provider("west")  # type: ignore[arg-type]  # Wrong on purpose.

"""Whatever makes room: every request obeys the laws, and extends the one before it but where an event says why not."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from turnkeeper.core.prefix import CHOICE, PASSED
from turnkeeper.core.pruning import ALWAYS, BEGINS, CHEAPER, COLD, FULL
from turnkeeper.model import event as e
from turnkeeper.model.request import ModelRequest, ToolTurn
from turnkeeper.model.stream import StreamEvent
from turnkeeper.providers import PROVIDERS
from turnkeeper.testing.harness import Stage, StageOptions, a_tool, stage
from turnkeeper.testing.laws import check
from turnkeeper.testing.windowed import Windowed, WindowedTurn, is_summary
from turnkeeper.tools.tool import ToolContext

WINDOW = 130_000
DECLARED = (ALWAYS, BEGINS, COLD, FULL, CHEAPER)


class Watched(Windowed):
    """Remembers every request that is not for a Summary."""

    def __init__(self) -> None:
        super().__init__(WINDOW, _answers)
        self.turns: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
        if not is_summary(request):
            self.turns.append(request)
        async for batch in super().stream(request):
            yield batch


def _answers(asked: str, results: ToolTurn | None) -> WindowedTurn:
    words = asked.split()
    if results is None and words[:1] == ["load"]:
        return WindowedTurn(text="I load.", tool="load", calls=tuple({"text": words[1]} for _ in range(int(words[2]))))
    return WindowedTurn(text="Loaded.")


async def _load(text: str, context: ToolContext) -> str:
    return "item\n" * (int(text) * 200)


STEPS = st.one_of(
    st.tuples(st.just("load"), st.integers(1, 10), st.integers(1, 3)),
    st.tuples(st.just("wait"), st.integers(1, 10), st.just(0)),
    st.tuples(st.just("compact"), st.just(0), st.just(0)),
    st.tuples(st.just("say"), st.integers(1, 2_000), st.just(0)),
)


async def live(folder: Path, prune: object, steps: Sequence[tuple[str, int, int]]) -> None:
    model = Watched()
    provider = {
        "protocol": "openai-chat",
        "options": {"baseURL": "http://localhost:1/v1"},
        "models": {"m": {"limit": {"context": WINDOW, "output": 4_000}, "cost": {"input": 3, "cache_read": 0.3}}},
    }
    config = {"model": "acme/m", "provider": {"acme": provider}, "compaction": {"prune": prune}}
    options = StageOptions(tools=(a_tool("load", _load),), config=config, in_a_hurry=True)
    async with stage("memory:", folder, model, options) as opened:
        session = await opened.session()
        for name, number, count in (*steps, ("say", 1, 0)):
            match name:
                case "load":
                    await opened.ask(session, f"load {number} {count}")
                case "wait":
                    opened.mint.advance(number * 60_000)
                case "compact":
                    await opened.tk.compact(session, force=True)
                case _:
                    await opened.ask(session, "and so on " * number)
        await examine(opened, session, model)


async def examine(opened: Stage, session: str, model: Watched) -> None:
    assert model.refused == 0
    for request in model.turns:
        for protocol in PROVIDERS:
            own = request.but(model=request.model.but(protocol=protocol))
            assert not check(own), f"{protocol} would not take it"
    log = await opened.events(session)
    started = [one for one in log if isinstance(one, e.TurnStarted) and not one.message.summary]
    assert len(started) == len(model.turns)
    for turn, before, request in zip(started[1:], model.turns, model.turns[1:], strict=False):
        assert turn.prefix is not None
        cause = turn.prefix.cause
        if cause in (None, PASSED, CHOICE):
            shared = len(before.messages)
            assert (request.system, request.tools) == (before.system, before.tools)
            assert request.messages[: shared - 1] == before.messages[: shared - 1]
        else:
            assert cause in DECLARED or cause.startswith("epoch "), f"nobody declared: {cause}"
    assert await opened.is_sound(session)


def lived(prune: object, steps: Sequence[tuple[str, int, int]]) -> None:
    with TemporaryDirectory() as folder:
        asyncio.run(live(Path(folder), prune, steps))


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(prune=st.sampled_from([False, "pays", "always"]), steps=st.lists(STEPS, max_size=14))
def test_room_is_made_only_at_declared_places_and_never_against_the_laws(
    prune: object, steps: list[tuple[str, int, int]]
) -> None:
    lived(prune, steps)


def test_a_life_in_which_all_of_it_happens() -> None:
    lived("pays", [*[("load", 10, 3)] * 6, ("wait", 6, 0), *[("load", 10, 3)] * 6, ("compact", 0, 0), ("load", 9, 2)])


@pytest.mark.soak
@settings(max_examples=500, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(prune=st.sampled_from([False, "pays", "always"]), steps=st.lists(STEPS, max_size=25))
def test_room_is_made_only_at_declared_places_in_hundreds_of_lives(
    prune: object, steps: list[tuple[str, int, int]]
) -> None:
    lived(prune, steps)

"""Sessions that go on for ever: the window is never exceeded, nothing loops, nothing that was known is lost."""

from statistics import mean

import pytest

from turnkeeper.core.handles import pieces
from turnkeeper.core.history import HistoryItem, visible
from turnkeeper.model import event as e
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import CompactionPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted
from turnkeeper.model.request import ToolTurn
from turnkeeper.testing.harness import MODEL, Play, Stage, a_tool
from turnkeeper.testing.windowed import Windowed, WindowedTurn
from turnkeeper.tools.recall import RECALL
from turnkeeper.tools.tool import ToolContext

WINDOW = 32_000
LARGE = 300_000


def models(context: int) -> dict[str, object]:
    own = {**MODEL, "limit": {"context": context, "output": 4_000}}
    provider = {"protocol": "openai-chat", "options": {"baseURL": "http://localhost:1/v1"}, "models": {"long": own}}
    return {"model": "acme/long", "provider": {"acme": provider}}


async def dig(text: str, context: ToolContext) -> str:
    number = int(text)
    return f"dug {number}\n" + "\n".join(f"line {line} of {number}" for line in range(number * 7919 % 400))


def digs(asked: str, results: ToolTurn | None) -> WindowedTurn:
    if results is None and asked.startswith("dig"):
        return WindowedTurn(text="I dig.", tool="dig", calls=({"text": asked.split()[1]},))
    return WindowedTurn(text=f"Dug: {asked[:60]}")


async def live(stage: Stage, session: str, turns: int) -> list[float]:
    """What each prompt cost."""
    costs: list[float] = []
    for number in range(turns):
        before = (await stage.tk.get(session)).cost
        outcome = await stage.ask(session, f"dig {number}")
        assert outcome.reason == "answered"
        costs.append((await stage.tk.get(session)).cost - before)
    return costs


async def check_a_long_life(play: Play, turns: int) -> None:
    model = Windowed(WINDOW, digs)
    async with play(model, config=models(WINDOW), tools=(a_tool("dig", dig),)) as stage:
        session = await stage.session()
        costs = await live(stage, session, turns)
        assert model.refused == 0, "a request was larger than the window"
        assert max(model.sizes) <= WINDOW
        assert model.summaries >= turns // 60
        assert len(model.sizes) <= 2 * turns + 2 * model.summaries + 2, "something was asked again and again"
        quarter = turns // 4
        early, late = mean(costs[quarter : 2 * quarter]), mean(costs[-quarter:])
        assert late <= 1.25 * early, "a turn becomes dearer as the session grows"
        history = await stage.tk.runtime.history(session)
        assert len(visible(history.entries)) < 200
        assert await stage.is_sound(session)


async def test_a_session_of_many_turns_stays_in_its_window_at_a_flat_price(play: Play) -> None:
    await check_a_long_life(play, 120)


@pytest.mark.soak
async def test_a_session_of_a_thousand_turns_stays_in_its_window_at_a_flat_price(play: Play) -> None:
    await check_a_long_life(play, 1_000)


NEEDLES, COMPACTIONS = 200, 5


def needle(number: int) -> str:
    return f"needle{number:03} is {number * 2_654_435_761 % 2**32:08x}"


async def hay(text: str, context: ToolContext) -> str:
    """Fifty kilobytes with two facts in them, one of which lies where output is cut."""
    number = int(text)
    straw = "\n".join(f"straw {number} {line:016}" for line in range(1_050))
    return f"{straw}\n{needle(number)}\n{straw}\n{needle(number + 1)}"


def hides(asked: str, results: ToolTurn | None) -> WindowedTurn:
    if results is None and asked.startswith("hay"):
        return WindowedTurn(tool="hay", calls=({"text": asked.split()[1]},))
    # What the model says is a fact too: the next but one.
    return (
        WindowedTurn(text=f"I note that {needle(int(asked.split()[1]) + 2)}.")
        if asked[:3] == "hay"
        else WindowedTurn(text="Noted.")
    )


@pytest.mark.parametrize("engine", ["sqlite"])  # Whose index finds words among megabytes.
async def test_two_hundred_facts_from_before_five_compactions_and_prunings_are_recalled_exactly(play: Play) -> None:
    model = Windowed(LARGE, hides)
    config = {**models(LARGE), "compaction": {"prune": "always"}}
    async with play(model, config=config, tools=(a_tool("hay", hay),)) as stage:
        session = await stage.session()
        for number in range(0, NEEDLES, 4):
            await stage.ask(session, f"hay {number} and remember: {needle(number + 3)}")
            if number % (NEEDLES // COMPACTIONS) == NEEDLES // COMPACTIONS - 4:
                assert (await stage.tk.compact(session, force=True)).summary is not None
        log = await stage.events(session)
        assert sum(isinstance(one, e.TurnEnded) and bool(one.message.summary) for one in log) == COMPACTIONS
        assert sum(isinstance(one, e.OutputsPruned) for one in log) >= COMPACTIONS
        found = 0
        for number in range(NEEDLES):
            hits = await stage.tk.recall_search(session, f"needle{number:03}")
            for hit in hits:
                if needle(number) in (await stage.tk.recall(session, hit.handle, limit=None)).text:
                    found += 1
                    break
        assert found == NEEDLES


async def test_every_byte_that_is_hidden_can_be_had_back_the_same(play: Play) -> None:
    model = Windowed(LARGE, hides)
    config = {**models(LARGE), "compaction": {"prune": "always"}}
    async with play(model, config=config, tools=(a_tool("hay", hay),)) as stage:
        session = await stage.session()
        for number in range(0, 64, 4):
            await stage.ask(session, f"hay {number}")
        log = await stage.events(session)
        assert any(isinstance(one, e.OutputsPruned) for one in log)
        await stage.tk.compact(session, force=True)
        count = 0
        for message in await stage.messages(session):
            for piece in pieces(HistoryItem(message=message.info, parts=message.parts)):
                page = await stage.tk.recall(session, piece.handle, limit=None)
                assert page.text == piece.text
                count += 1
        assert count > 40


async def test_a_model_recalls_what_it_is_no_longer_shown(play: Play) -> None:
    """The model itself asks by words, gets a handle, and reads the text behind it."""
    asked_for: list[str] = []

    def searches(asked: str, results: ToolTurn | None) -> WindowedTurn:
        if asked.startswith("hay"):
            return hides(asked, results)
        if results is None:
            return WindowedTurn(tool="recall", calls=({"query": "needle004"},))
        shown = "".join(part.text for result in results.results for part in result.output if hasattr(part, "text"))
        asked_for.append(shown)
        return WindowedTurn(text="There it is.")

    async with play(Windowed(LARGE, searches), config=models(LARGE), tools=(a_tool("hay", hay), RECALL)) as stage:
        session = await stage.session()
        for number in (0, 4, 8):
            await stage.ask(session, f"hay {number}")
        await stage.tk.compact(session, force=True)
        await stage.ask(session, "what was the fourth?")
        assert "needle004" in asked_for[0]


async def test_old_outputs_are_pruned_by_an_event_and_the_next_request_names_it(play: Play) -> None:
    model = Windowed(LARGE, hides)
    config = {**models(LARGE), "compaction": {"prune": "always"}}
    async with play(model, config=config, tools=(a_tool("hay", hay),)) as stage:
        session = await stage.session()
        for number in range(0, 64, 4):
            await stage.ask(session, f"hay {number}")
        log = await stage.events(session)
        prunings = [one for one in log if isinstance(one, e.OutputsPruned)]
        assert prunings
        parts = [part for m in await stage.messages(session) for part in m.parts if isinstance(part, ToolPart)]
        settled = {part.id: part.state for part in parts if isinstance(part.state, ToolCompleted)}
        pruned = {name: state for name, state in settled.items() if state.time.compacted is not None}
        assert pruned.keys() == {one for event in prunings for one in event.part_ids}
        assert all(state.output for state in pruned.values()), "what is pruned is kept"
        causes = [one.prefix.cause for one in log if isinstance(one, e.TurnStarted) and one.prefix is not None]
        assert sum(cause == prunings[0].reason for cause in causes) == len(prunings)
        assert await stage.is_sound(session)


async def test_by_default_nothing_is_pruned_while_the_cache_is_warm_and_much_once_it_is_cold(play: Play) -> None:
    model = Windowed(LARGE, hides)
    async with play(model, config=models(LARGE), tools=(a_tool("hay", hay),)) as stage:
        session = await stage.session()
        for number in range(0, 64, 4):
            await stage.ask(session, f"hay {number}")
        assert not any(isinstance(one, e.OutputsPruned) for one in await stage.events(session))
        stage.time.advance(6 * 60 * 1000)
        await stage.ask(session, "hay 64")
        [pruning] = [one for one in await stage.events(session) if isinstance(one, e.OutputsPruned)]
        assert "cold" in pruning.reason
        assert pruning.tokens > 20_000


async def test_pruning_comes_before_a_compaction_and_may_save_it(play: Play) -> None:
    model = Windowed(100_000, hides)
    async with play(model, config=models(100_000), tools=(a_tool("hay", hay),)) as stage:
        session = await stage.session()
        for number in range(0, 64, 4):
            await stage.ask(session, f"hay {number}")
        kinds = [type(one).__name__ for one in await stage.events(session)]
        messages = await stage.messages(session)
        marks = [part for m in messages for part in m.parts if isinstance(part, CompactionPart)]
        assert "OutputsPruned" in kinds
        assert not marks
        assert model.refused == 0


async def test_pruning_can_be_switched_off(play: Play) -> None:
    for given in (
        {"config": {**models(LARGE), "compaction": {"prune": False}}},
        {"config": {**models(LARGE), "compaction": {"prune": "always"}}, "environ": {"TURNKEEPER_DISABLE_PRUNE": "1"}},
    ):
        model = Windowed(LARGE, hides)
        async with play(model, tools=(a_tool("hay", hay),), **given) as stage:
            session = await stage.session()
            for number in range(0, 64, 4):
                await stage.ask(session, f"hay {number}")
            assert not any(isinstance(one, e.OutputsPruned) for one in await stage.events(session))


async def test_after_a_compaction_the_history_before_it_is_no_longer_held_in_memory(play: Play) -> None:
    model = Windowed(WINDOW, digs)
    async with play(model, config=models(WINDOW), tools=(a_tool("dig", dig),)) as stage:
        session = await stage.session()
        await live(stage, session, 40)
        history = await stage.tk.runtime.history(session)
        done = [one for one in history.entries if isinstance(one.message, AssistantMessage) and one.message.summary]
        assert len(done) == 1, "only the newest boundary counts"

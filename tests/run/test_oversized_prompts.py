"""A prompt that is too large for its model fails alone: later requests name it, and it can be recalled exactly."""

import pytest
from small_window import FETCH, SMALL, WINDOW, config, lives, texts, works

from turnkeeper.core.handles import handles_in
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play
from turnkeeper.testing.windowed import Windowed, honest


def oversized(windows: float) -> str:
    """A prompt of about so many windows, by the rule of four characters for a token."""
    return "".join(f"line {number:09}\n" for number in range(int(windows * WINDOW * 4 / 15)))


@pytest.mark.parametrize("windows", [1.5, 3], ids=["refused by the provider", "refused without asking"])
@pytest.mark.parametrize("before", [0, 2], ids=["first of all", "after others"])
async def test_after_a_prompt_that_is_too_large_the_session_goes_on_without_it(
    play: Play, windows: float, before: int
) -> None:
    model, large = Windowed(WINDOW, works, honest), oversized(windows)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await lives(stage, before)
        assert "OverflowFailure" in (await stage.ask(session, large)).reason
        for words in ("fetch it", "and now?"):
            assert (await stage.ask(session, words)).reason == "answered"
        [left_out] = [text for text in texts(model.requests[-1]) if "is left out" in text]
        [handle] = handles_in(left_out)
        assert (await stage.tk.recall(session, handle, limit=len(large))).text == large
        assert max(model.sizes[-3:]) < WINDOW
        assert await stage.is_sound(session)


async def test_the_words_beside_a_text_that_is_too_large_stay(play: Play) -> None:
    model = Windowed(WINDOW, works, honest)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        parts = (TextInput(text="Count these lines:"), TextInput(text=oversized(3)))
        await stage.tk.prompt(session, Prompt(parts=parts))
        await stage.tk.wait(session)
        assert (await stage.ask(session, "Never mind.")).reason == "answered"
        shown = texts(model.requests[-1])
        assert (shown[0], shown[-1], len(shown)) == ("Count these lines:", "Never mind.", 3)


async def test_prompts_that_are_too_large_only_together_are_left_out_until_the_rest_fits(play: Play) -> None:
    model = Windowed(WINDOW, works, honest)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await stage.session()
        for _ in range(3):
            await stage.say(session, "x" * (WINDOW * 2), resume=False)
        assert "OverflowFailure" in (await stage.tk.run(session)).reason
        assert (await stage.ask(session, "hello")).reason == "answered"


async def test_a_larger_model_gets_the_prompt_whole(play: Play) -> None:
    models = {"small": {"limit": {"context": WINDOW}}, "large": {"limit": {"context": WINDOW * 10}}}
    provider = {**SMALL["provider"]["acme"], "models": models}
    model, large = Windowed(WINDOW * 10, works, honest), oversized(3)
    async with play(model, config={**SMALL, "provider": {"acme": provider}}, tools=FETCH) as stage:
        session = await stage.session()
        assert "OverflowFailure" in (await stage.ask(session, large)).reason
        other = ModelChoice(provider_id="acme", model_id="large")
        assert (await stage.ask(session, "and you?", model=other)).reason == "answered"
        assert texts(model.requests[-1]) == [large, "and you?"]


@pytest.mark.parametrize("windows", [1.5, 3])
async def test_a_compaction_by_hand_leaves_a_prompt_that_is_too_large_out(play: Play, windows: float) -> None:
    model, large = Windowed(WINDOW, works, honest), oversized(windows)
    async with play(model, config=config(), tools=FETCH) as stage:
        session = await lives(stage, 1)
        assert "OverflowFailure" in (await stage.ask(session, large)).reason
        done = await stage.tk.compact(session, force=True)
        assert done.reason == "compacted"
        assert done.after < WINDOW < done.before
        assert (await stage.ask(session, "and now?")).reason == "answered"
        [left_out] = [text for text in texts(model.requests[-1]) if "is left out" in text]
        assert (await stage.tk.recall(session, *handles_in(left_out), limit=len(large))).text == large
        assert await stage.is_sound(session)


async def test_a_compaction_that_makes_nothing_smaller_says_so(play: Play) -> None:
    script = Scripted().says("a").then().fails(400).then().says("## Objective\ngo on with it")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.ask(session, "on" * 1000)
        done = await stage.tk.compact(session, force=True)
        assert (done.summary is not None, done.after >= done.before) == (True, True)
        assert done.reason != "compacted"
        assert "smaller" in done.reason

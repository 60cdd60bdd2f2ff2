"""Cards of requests on the full screen, when one request follows another."""

import anyio
import pytest
from screen_pilot import driven
from textual.widgets import Static
from workshop import Shop

from turnkeeper.cli.chat.tui.ask_card import AskCard
from turnkeeper.cli.chat.tui.asks import OpenAsk
from turnkeeper.model.permission import AskedBy, PermissionRequest, Reply
from turnkeeper.model.question import Option, Question, QuestionReply, QuestionRequest

STEPS = 30
TOOL = AskedBy(message_id="msg_1", call_id="call_1")
PERMISSION = PermissionRequest(
    id="per_1",
    session_id="ses_1",
    permission="bash",
    patterns=("ls",),
    metadata={"command": "ls"},
    always=("ls *",),
    tool=TOOL,
)
QUESTION = QuestionRequest(
    id="que_1",
    session_id="ses_1",
    questions=(Question(question="Which?", header="", options=(Option(label="aa", description=""),)),),
    tool=TOOL,
)


@pytest.mark.parametrize("does_tab", [False, True])
async def test_a_askedcan_follow_another_at_every_step_of_the_event_loop(shop: Shop, does_tab: bool) -> None:
    async with driven(shop) as seen:
        waiting = seen.place.asks.waiting
        for steps in range(STEPS):
            for request in (QUESTION, PERMISSION):
                waiting[:] = [OpenAsk(request)]
                seen.screen.sync()
                if does_tab:
                    seen.screen.action_turn()
                for _ in range(steps):
                    await anyio.lowlevel.checkpoint()
        [last] = waiting
        await seen.until(lambda: [card.ask for card in seen.screen.query(AskCard)] == [last])
        await seen.until(lambda: seen.screen.query_one(AskCard).has_focus_within or does_tab)
        waiting.clear()
        await seen.until(lambda: not seen.screen.query(AskCard) and seen.screen.box.has_focus)


async def test_a_askedthat_goes_at_any_step_leaves_the_focus_in_the_prompt(shop: Shop) -> None:
    async with driven(shop) as seen:
        for steps in range(STEPS):
            seen.place.asks.waiting[:] = [OpenAsk(PERMISSION)]
            seen.screen.sync()
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            seen.place.asks.waiting.clear()
            seen.screen.sync()
            await seen.until(lambda: not seen.screen.query(AskCard))
            await seen.pilot.pause()
            assert seen.screen.box.has_focus


def test_the_first_answer_to_a_askedholds() -> None:
    one = OpenAsk(PERMISSION)
    one.give(Reply(answer="reject"))
    one.give(Reply(answer="always"))
    assert one.reply == Reply(answer="reject")


async def test_a_card_names_the_tool_and_the_file_outside_the_project(shop: Shop) -> None:
    outside = shop.home / "notes.txt"
    outside.write_text("x\n")
    async with driven(shop, size=(160, 30)) as seen:
        await seen.says(f"read {outside}")
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: card.is_armed)
        shown = [str(one.render()) for one in card.query(Static)]
        assert str(card.border_title) == "WAITING FOR YOU · read"
        assert shown[0].splitlines() == ["? Leave the project?", f"  {shop.home}/*", f"  to reach: {outside}"]
        assert str(card.border_subtitle) == "y once · a always (the same) · n refuse · e advice · Tab the prompt"
        card.ask.give(Reply(answer="reject"))
        await seen.rests()


@pytest.mark.parametrize(
    ("width", "keys"),
    [
        (100, "y once · a always (ls *) · n refuse · e advice · Tab the prompt"),
        (60, "y once · a always (ls *) · n refuse · e advice"),
        (46, "y once · a always (ls *) · n refuse"),
        (40, "y once · n refuse"),
    ],
)
async def test_a_narrow_card_still_tells_how_to_refuse(shop: Shop, width: int, keys: str) -> None:
    async with driven(shop, size=(width, 12)) as seen:
        seen.place.asks.waiting[:] = [OpenAsk(PERMISSION)]
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: card.is_armed)
        assert str(card.border_subtitle) == keys
        seen.place.asks.waiting.clear()
        await seen.until(lambda: not seen.screen.query(AskCard))


@pytest.mark.parametrize(
    ("asked", "focused", "elsewhere"),
    [
        (
            PERMISSION,
            "y once · a always (ls *) · n refuse · e advice · Tab the prompt",
            "Tab, then y once · a always (ls *) · n refuse · e advice",
        ),
        (
            QUESTION,
            "the number of your choice, or your own words, or nothing to skip · Tab the prompt",
            "Tab, then the number of your choice, or your own words, or nothing to skip",
        ),
    ],
)
async def test_a_card_without_the_focus_says_that_tab_comes_first(
    shop: Shop, asked: PermissionRequest | QuestionRequest, focused: str, elsewhere: str
) -> None:
    async with driven(shop, size=(120, 30)) as seen:
        seen.place.asks.waiting[:] = [OpenAsk(asked)]
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: str(card.border_subtitle) == focused)
        await seen.pilot.press("tab")
        await seen.until(lambda: str(card.border_subtitle) == elsewhere)
        card.take_focus()
        await seen.until(lambda: str(card.border_subtitle) == focused)
        seen.place.asks.waiting.clear()
        await seen.until(lambda: not seen.screen.query(AskCard))


async def test_a_card_whose_last_question_was_answered_may_lose_the_focus(shop: Shop) -> None:
    async with driven(shop) as seen:
        one = OpenAsk(QUESTION)
        seen.place.asks.waiting[:] = [one]
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: card.is_armed and card.has_focus_within)
        await seen.pilot.press("1", "enter", "tab")
        await seen.until(lambda: not card.has_focus_within)
        assert one.reply == QuestionReply(answers=(("aa",),))
        seen.place.asks.waiting.clear()
        await seen.until(lambda: not seen.screen.query(AskCard))

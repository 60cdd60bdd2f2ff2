"""What the full screen does, driven without a terminal: the real application on a real store."""

import gc
import warnings

import anyio
from screen_pilot import Driven, driven
from textual.events import Key
from textual.widgets import Input, OptionList, Static
from workshop import Shop

from turnkeeper.app import Turnkeeper
from turnkeeper.cli.chat.tui.ask_card import AskCard
from turnkeeper.cli.chat.tui.conversation import MESSAGES, ScreenConversation
from turnkeeper.cli.chat.tui.dialogs import Agreement, Page, Picker
from turnkeeper.cli.chat.tui.prompt_box import PromptBox
from turnkeeper.cli.chat.tui.transcript_view import Row
from turnkeeper.model.event import MessageRecorded
from turnkeeper.model.message import MessageTime, ModelChoice, UserMessage
from turnkeeper.model.parts import TextPart
from turnkeeper.model.parts.base import Span
from turnkeeper.testing.server import ScriptedServer


async def newest(desk: ScreenConversation) -> None:
    [desk.session, *_] = (await desk.tk.list(limit=1)).items


async def test_a_prompt_is_answered_and_drawn(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("read tides.py")
        await seen.until(lambda: "has 2 lines" in "".join(seen.texts("text")))
        await seen.rests()
        rows = list(seen.screen.view.query(Row))
        assert [row.entry.id for row in rows] == list(seen.desk.transcript.entries)
        assert [one.kind for one in seen.desk.transcript.entries.values()].count("call") == 1


async def test_a_completion_that_the_next_key_replaces_leaves_no_warning(shop: Shop) -> None:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        async with driven(shop) as seen:
            for before in ("@t", "@ti", "@tid"):
                seen.screen.on_prompt_box_wanted(PromptBox.Wanted(before))
            await seen.pilot.pause()
        gc.collect()
    assert [str(one.message) for one in found if "never awaited" in str(one.message)] == []


async def test_a_text_is_drawn_block_by_block(shop: Shop) -> None:
    async with driven(shop) as seen:
        shown = seen.desk.transcript
        part = TextPart(id="prt_9", session_id="s", message_id="m", text="", time=Span(start=1))
        shown.opened(part)
        shown.grew("prt_9", "One.\n\nTwo")
        await seen.until(lambda: len(seen.screen.view.query(".block")) == 1)
        first = seen.screen.view.query(".block").first()
        shown.grew("prt_9", " three.\n\nFour")
        await seen.until(lambda: len(seen.screen.view.query(".block")) == 2)
        assert seen.screen.view.query(".block").first() is first
        shown.settled(part.but(text="One.\n\nTwo three.\n\nFour.", time=Span(start=1, end=2)))
        await seen.until(lambda: len(seen.screen.view.query(".block")) == 3)


async def test_a_text_that_grows_while_its_row_is_built_is_drawn_whole(shop: Shop) -> None:
    async with driven(shop) as seen:
        shown, view = seen.desk.transcript, seen.screen.view
        for steps in range(40):  # At every step of the event loop between the first drawing and the last.
            part = TextPart(id=f"prt_{steps}", session_id="s", message_id="m", text="", time=Span(start=1))
            shown.opened(part)
            shown.grew(part.id, "One.\n\nTwo")
            view.sync(is_tick=False)
            for _ in range(steps):
                await anyio.lowlevel.checkpoint()
            shown.settled(part.but(text="One.\n\nTwo three.\n\nFour.", time=Span(start=1, end=2)))
            view.sync(is_tick=False)
        blocks = sum(len(one.blocks) for one in shown.entries.values())
        assert blocks >= 2 * 40
        await seen.until(lambda: len(view.query(".block")) == blocks)


async def test_a_key_before_its_time_answers_no_request(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    async with driven(shop) as seen:
        await seen.says("run `echo hi`")
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        AskCard(card.ask, 0).action_give("once")  # A card that was not on the screen for long enough.
        assert not card.ask.is_answered.is_set()
        await seen.until(lambda: card.has_focus and card.is_armed)
        await seen.pilot.press("y")
        await seen.rests()
        assert any("echo hi" in str(one.part) for one in seen.desk.transcript.entries.values())
        assert not seen.screen.query(AskCard)


async def test_advice_refuses_and_is_told_to_the_model(shop: Shop) -> None:
    shop.configure(permission={"bash": "ask"})
    async with driven(shop) as seen:
        await seen.says("run `echo hi`")
        await seen.until(lambda: bool(seen.screen.query(AskCard)))
        card = seen.screen.query_one(AskCard)
        await seen.until(lambda: card.has_focus and card.is_armed)
        await seen.pilot.press("e")
        await seen.until(lambda: card.query_one(Input).has_focus)
        card.query_one(Input).value = "use printf"
        await seen.pilot.press("enter")
        await seen.until(lambda: not seen.screen.query(AskCard))
        await seen.until(lambda: any("use printf" in text for text in seen.texts("call")))


async def test_the_transcript_follows_until_the_user_moves_up(shop: Shop) -> None:
    async with driven(shop, size=(60, 14)) as seen:
        for _ in range(3):
            await seen.says("list the files")
            await seen.until(lambda: seen.texts("prompt"))
            await seen.rests()
        view = seen.screen.view
        await seen.until(lambda: view.max_scroll_y > 0 and view.scroll_y == view.max_scroll_y)
        await seen.pilot.press("pageup")
        await seen.until(lambda: view.scroll_y < view.max_scroll_y)
        stays = view.scroll_y
        seen.desk.note("a remark below")
        await seen.until(lambda: view.unseen == 1)
        await seen.pilot.pause()
        assert (view.scroll_y, view.is_following) == (stays, False)
        await seen.pilot.press("ctrl+end")
        await seen.until(lambda: view.scroll_y == view.max_scroll_y)
        assert (view.unseen, view.is_following) == (0, True)


async def test_older_messages_are_read_at_the_beginning(shop: Shop) -> None:
    async def long(desk: ScreenConversation) -> None:
        assert isinstance(desk.tk, Turnkeeper)
        desk.session = await desk.tk.create(title="Long")
        for number in range(MESSAGES + 10):
            message = UserMessage(
                id=f"msg_{number:026}",
                session_id=desk.session.id,
                time=MessageTime(created=number),
                agent="build",
                model=ModelChoice(provider_id="offline", model_id="tk-1"),
            )
            part = TextPart(
                id=f"prt_{number:026}", session_id=desk.session.id, message_id=message.id, text=f"prompt {number}"
            )
            await desk.tk.store.journal.append(desk.session.id, MessageRecorded(message=message, parts=(part,)))

    async with driven(shop, before=long) as seen:
        assert seen.texts("prompt")[0] == "prompt 10"
        await seen.pilot.press("tab")
        await seen.pilot.press("home", "home")
        await seen.until(lambda: seen.texts("prompt") == [f"prompt {number}" for number in range(MESSAGES + 10)])
        assert seen.desk.older is None
        await seen.until(lambda: len(seen.screen.view.query(Row)) == len(seen.desk.transcript.entries))


async def test_sessions_are_found_by_what_was_said(shop: Shop) -> None:
    await anyio.to_thread.run_sync(shop.run, "read tides.py")
    await anyio.to_thread.run_sync(shop.run, "read README.md")
    async with driven(shop) as seen:
        await seen.pilot.press("f2")
        await seen.until(lambda: isinstance(seen.app.screen, Picker))
        listed = seen.app.screen.query_one(OptionList)
        await seen.until(lambda: listed.option_count == 2)
        await seen.pilot.press(*"lines")
        await seen.until(lambda: listed.option_count == 1 and listed.highlighted == 0)
        await seen.pilot.press(*"zzz")
        await seen.until(lambda: listed.highlighted is None)
        assert [option.prompt for option in listed.options] == ["Nothing matches. Ctrl-N begins a new session."]
        await seen.pilot.press("enter")
        assert isinstance(seen.app.screen, Picker)
        await seen.pilot.press(*["backspace"] * 3)
        await seen.until(lambda: listed.option_count == 1 and listed.highlighted == 0)
        await seen.pilot.press("enter")
        await seen.until(lambda: seen.desk.session is not None and seen.desk.session.title == "Read tides.py")
        await seen.until(lambda: seen.texts("prompt") == ["read tides.py"])


async def test_enter_chooses_what_was_typed_also_before_the_list_has_followed(shop: Shop) -> None:
    await anyio.to_thread.run_sync(shop.run, "read tides.py")
    await anyio.to_thread.run_sync(shop.run, "read README.md")
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        async with driven(shop) as seen:
            await seen.pilot.press("f2")
            await seen.until(lambda: isinstance(seen.app.screen, Picker))
            listed = seen.app.screen.query_one(OptionList)
            await seen.until(lambda: listed.option_count == 2)
            for key in ("t", "i", "d", "e", "s", "enter"):  # As fast as a paste: nothing else runs in between.
                seen.app.post_message(Key(key, key if len(key) == 1 else None))
            await seen.until(lambda: not isinstance(seen.app.screen, Picker))
            await seen.until(lambda: seen.desk.session is not None and seen.desk.session.title == "Read tides.py")
        gc.collect()
    assert [str(one.message) for one in found if "never awaited" in str(one.message)] == []


async def test_an_undo_that_is_not_agreed_to_changes_nothing(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("replace `100` with `60` in tides.py")
        await seen.until(lambda: "60" in (shop.project / "tides.py").read_text())
        await seen.rests()
        await seen.pilot.press("ctrl+x", "u")
        await seen.until(lambda: isinstance(seen.app.screen, Agreement))
        await seen.pilot.press("enter")
        await seen.until(lambda: any("nothing was changed" in text for text in seen.texts("note")))
        assert "60" in (shop.project / "tides.py").read_text()


async def test_a_link_is_asked_for_in_a_dialog_and_made_after_a_yes(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("write notes.txt: password=hunter2hunter2")
        await seen.until(lambda: (shop.project / "notes.txt").exists())
        await seen.rests()
        await seen.pilot.press("ctrl+x", "s")
        await seen.until(lambda: isinstance(seen.app.screen, Agreement))
        assert "password (1 different)" in str(seen.app.screen.query(Static).first().render())
        await seen.pilot.press("n")
        await seen.until(lambda: any("nothing was shared" in text for text in seen.texts("note")))
        await seen.pilot.press("ctrl+x", "s")
        await seen.until(lambda: isinstance(seen.app.screen, Agreement))
        await seen.pilot.press("y")
        await seen.until(lambda: any("Who has this link can read the session" in text for text in seen.texts("note")))


async def test_help_lists_every_key_and_command(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.pilot.press("f1")
        await seen.until(lambda: isinstance(seen.app.screen, Page))
        shown = str(seen.app.screen.query(Static).first().render())
        for word in ("Ctrl-X", "Esc Esc", "/undo", "/fork"):
            assert word in shown


async def test_the_palette_offers_every_slash_command(shop: Shop) -> None:
    async with driven(shop) as seen:
        offered = {one.title for one in seen.app.get_system_commands(seen.screen)}
        assert {f"/{name}" for name in seen.desk.commands} <= offered


async def test_a_theme_is_remembered(shop: Shop) -> None:
    async with driven(shop) as seen:
        seen.app.theme = "turnkeeper-light"
        await seen.pilot.pause()
    async with driven(shop) as seen:
        assert seen.app.theme == "turnkeeper-light"


async def test_what_was_typed_comes_back_by_the_arrow_keys(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("/cost")
        await seen.says("/help")
        await seen.pilot.press("up", "up")
        assert seen.screen.box.text == "/cost"
        await seen.pilot.press("down", "down")
        assert seen.screen.box.text == ""


async def test_letters_that_mean_nothing_in_the_transcript_are_typed(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("read tides.py")
        await seen.until(lambda: "has 2 lines" in "".join(seen.texts("text")))
        await seen.rests()
        await seen.pilot.press("tab")
        await seen.until(lambda: seen.screen.view.has_focus_within and "f fork" in foot(seen))
        for key in "what":  # As the driver does with what one read returned.
            seen.app.post_message(Key(key, key))
        await seen.until(lambda: seen.screen.box.text == "what")
        await seen.until(lambda: "f fork" not in foot(seen))


async def test_after_a_fork_the_next_prompt_can_be_typed(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("read tides.py")
        await seen.until(lambda: "has 2 lines" in "".join(seen.texts("text")))
        await seen.rests()
        [before] = (await seen.desk.tk.list()).items
        await seen.pilot.press("tab", "k", "k")
        await seen.until(lambda: isinstance(seen.app.focused, Row) and seen.app.focused.entry.message_id)
        await seen.pilot.press("f")
        await seen.until(lambda: seen.desk.session is not None and seen.desk.session.id != before.id)
        await seen.until(lambda: seen.screen.box.has_focus)
        await seen.pilot.press(*"fine")
        await seen.until(lambda: seen.screen.box.text == "fine")


async def test_a_fork_before_a_prompt_has_it_in_its_box(shop: Shop) -> None:
    async with driven(shop) as seen:
        await seen.says("read tides.py")
        await seen.until(lambda: "has 2 lines" in "".join(seen.texts("text")))
        await seen.rests()
        assert seen.desk.session is not None
        [prompt, *_] = (await seen.desk.tk.messages(seen.desk.session.id)).items
        await seen.says(f"/fork {prompt.info.id}")
        await seen.until(lambda: seen.screen.box.text == "read tides.py")


def foot(seen: Driven) -> str:
    """The line below the prompt."""
    return str(seen.screen.query_one("#foot", Static).render())


async def test_a_prompt_that_waited_stands_where_it_took_effect_without_a_label(shop: Shop) -> None:
    async with driven(shop) as seen:
        shown, view = seen.desk.transcript, seen.screen.view
        await seen.says("run `until test -e go; do sleep 0.05; done`")
        await seen.until(lambda: any(not one.is_settled for one in shown.entries.values() if one.kind == "call"))
        await seen.says("read README.md", "ctrl+o")
        await seen.until(lambda: len(seen.texts("prompt")) == 2)
        await seen.says("read tides.py")
        await seen.until(lambda: len(seen.texts("prompt")) == 3)
        waiting = [one.about.partition(":")[0] for one in shown.entries.values() if one.kind == "prompt"]
        assert waiting == ["", "queued", "steers"]
        (shop.project / "go").touch()
        await seen.until(lambda: "`README.md` has 1 line" in "".join(seen.texts("text")))
        await seen.rests()
        said = [(one.text, one.about) for one in shown.entries.values() if one.kind in ("prompt", "text")]
        order = [text for text, _ in said if text.startswith("read ") or " has " in text]
        assert [text[:14] for text in order] == ["read tides.py", "`tides.py` has", "read README.md", "`README.md` ha"]
        assert all(not about for _, about in said)
        await seen.until(lambda: [one.entry.id for one in view.query(Row)] == list(shown.entries))


async def test_title_cost_and_model_are_shown_as_soon_as_they_are_known(shop: Shop) -> None:
    async with ScriptedServer() as provider:
        prices = {"large": {"cost": {"input": 1000, "output": 1000}}}
        acme = {"protocol": "openai-chat", "options": {"baseURL": provider.url, "apiKey": "k"}, "models": prices}
        shop.configure(model="acme/large", provider={"acme": acme})
        async with driven(shop) as seen:
            await seen.until(lambda: "new session · build · acme/large" in head(seen))
            await seen.says("[[bash true]] [[bash touch began; until test -e go; do sleep 0.05; done]] [[text end]]")
            await seen.until(lambda: len(seen.texts("call")) == 2)
            await seen.until(lambda: "$" in head(seen) and "$0.00" not in head(seen))
            await seen.until(lambda: "new session" not in head(seen))
            await seen.until((shop.project / "began").exists)
            assert seen.desk.state == "running"
            (shop.project / "go").touch()
            await seen.rests()
            await seen.until(lambda: "+0 -0" in head(seen))  # Empty files; counted after the answer.
            live = head(seen)
            await seen.desk.refresh()
            seen.screen.sync()
            assert head(seen) == live


async def test_the_chosen_entry_stays_in_view_when_every_call_is_unfolded(shop: Shop) -> None:
    async with driven(shop, size=(80, 16)) as seen:
        await seen.says("run `seq 1000 1040`, then run `seq 2000 2040`")
        await seen.until(lambda: len(seen.texts("call")) == 2)
        await seen.rests()
        view = seen.screen.view
        await seen.pilot.press("tab")
        await seen.until(lambda: isinstance(seen.app.focused, Row))
        chosen, before = seen.app.focused, view.max_scroll_y
        await seen.pilot.press("O")
        await seen.until(lambda: view.max_scroll_y > before + 60)
        await seen.until(lambda: chosen is not None and view.region.contains_region(chosen.region))


def head(seen: Driven) -> str:
    """The line above the transcript."""
    return str(seen.screen.query_one("#head", Static).render())

"""Titles: given beside the first turn, by a small model, and never in its way."""

from collections.abc import AsyncGenerator, Sequence

import pytest
from narrow import first_text, of_type
from small_window import SMALL, WINDOW

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.titles import cleaned, default_title, wants_title
from turnkeeper.core.view import SessionView
from turnkeeper.model import event as e
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.stream import StreamEvent, Usage
from turnkeeper.providers.script import Gate
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.builders import a_history, a_session, a_text, a_user
from turnkeeper.testing.harness import CONFIG, MODEL, Play, Stage


async def titled(stage: Stage, session: str) -> str:
    """The title, once it was given."""
    async for recorded in stage.tk.tail(session):
        if isinstance(recorded.event, e.SessionTitled):
            return recorded.event.title
    raise AssertionError("a tail never ends")


async def test_a_session_gets_its_title_beside_the_first_turn(play: Play) -> None:
    script = Scripted().says("Hello.").titles("A friendly greeting")
    async with play(script, titles=True) as stage:
        session = await stage.session()
        await stage.ask(session, "Hi there")
        assert await titled(stage, session) == "A friendly greeting"
        assert (await stage.tk.get(session)).title == "A friendly greeting"
        [asked] = [request for request in script.requests if not request.tools]
        _, prompt = asked.messages
        assert first_text(prompt) == "Hi there"


async def test_a_title_is_asked_for_once_and_never_for_a_named_session_or_a_child(play: Play) -> None:
    script = Scripted().says("ok").forever().titles("Given")
    async with play(script, titles=True) as stage:
        named = await stage.session(title="Mine")
        child = await stage.session(parent_id=named)
        await stage.ask(named, "go")
        await stage.ask(child, "go")
        assert all(request.tools for request in script.requests)
        plain = await stage.session()
        await stage.ask(plain, "one")
        await titled(stage, plain)
        await stage.tk.rename(plain, "Renamed")
        await stage.ask(plain, "two")
        assert sum(not request.tools for request in script.requests) == 1
        assert (await stage.tk.get(plain)).title == "Renamed"


async def test_a_name_that_the_user_gives_meanwhile_stays(play: Play) -> None:
    class Slow(Scripted):
        gate = Gate()

        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if not request.tools:
                await self.gate.pass_through()
            async for batch in super().stream(request):
                yield batch

    script = Slow().says("ok").titles("Too late")
    async with play(script, titles=True) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await Slow.gate.wait_reached()
        await stage.tk.rename(session, "Mine")
        Slow.gate.open()
        async for recorded in stage.tk.tail(session):
            if isinstance(recorded.event, e.UsageRecorded) and recorded.event.purpose == "title":
                break
        assert (await stage.tk.get(session)).title == "Mine"


async def test_a_title_is_asked_for_with_the_limit_of_an_answer_and_never_with_more_than_its_model_takes(
    play: Play,
) -> None:
    script = Scripted().says("ok").forever().titles("Given")
    async with play(script, config=SMALL, titles=True) as stage:
        short, long = await stage.session(), await stage.session()
        await stage.ask(short, "hello")
        assert await titled(stage, short) == "Given"
        assert [one.output_max for one in script.requests] == [1_000] * 2
        await stage.ask(long, "words " * WINDOW)
        assert await titled(stage, long) == "words words words words words words words words…"
        assert sum(not request.tools for request in script.requests) == 1


async def test_what_a_title_costs_is_in_the_ledger(play: Play) -> None:
    script = Scripted().says("ok").usage(Usage(input=1000, output=10)).titles("Given")
    async with play(script, titles=True) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await titled(stage, session)
        rows = [one for one in await stage.events(session) if isinstance(one, e.UsageRecorded)]
        assert sorted(row.purpose for row in rows) == ["title", "turn"]
        assert (await stage.tk.get(session)).cost == pytest.approx(sum(row.cost for row in rows))


async def test_a_model_that_fails_to_give_a_title_disturbs_nobody(play: Play) -> None:
    class Untitled(Scripted):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            if not request.tools:
                raise RuntimeError("no titles here")
            async for batch in super().stream(request):
                yield batch

    async with play(Untitled().says("ok"), titles=True) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "go")).reason == "answered"
        assert await stage.is_sound(session)


@pytest.mark.parametrize("answer", [Scripted().fails(500), Scripted().says("  ")])
async def test_a_session_that_no_model_gives_a_title_is_named_after_its_first_prompt(
    play: Play, answer: Scripted
) -> None:
    class Untitled(Scripted):
        async def stream(self, request: ModelRequest) -> AsyncGenerator[Sequence[StreamEvent], None]:
            answered = super().stream(request) if request.tools else answer.stream(request)
            async for batch in answered:
                yield batch

    async with play(Untitled().says("ok"), titles=True) as stage:
        session = await stage.session()
        await stage.ask(session, "  Why is\nthe sky blue? " + "And the sea? " * 10)
        assert await titled(stage, session) == "Why is the sky blue? And the sea? And the sea? And…"


async def test_a_session_whose_process_ended_before_it_had_a_title_gets_one_with_the_next_prompt(play: Play) -> None:
    script = Scripted().says("ok").forever().titles("Given")
    async with play(script, titles=True) as stage:
        session = await stage.session()
        await stage.say(session, "Hi there", no_reply=True)
        await stage.ask(session, "Are you there?")
        assert await titled(stage, session) == "Given"


async def test_a_small_model_without_an_address_is_no_traceback(play: Play, caplog: pytest.LogCaptureFixture) -> None:
    bare = {"bare": {"protocol": "openai-chat", "models": {"small": MODEL}}}
    known = of_type(dict, CONFIG["provider"])
    config = {"small_model": "bare/small", "provider": {**known, **bare}}
    async with play(Scripted().says("ok"), titles=True, config=config) as stage:
        session = await stage.session()
        await stage.ask(session, "Hi there")
        assert await titled(stage, session) == "Hi there"
        assert not [record for record in caplog.records if record.exc_info]


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        ("Parser fix", "Parser fix"),
        ("\n\n  Parser fix  \nmore", "Parser fix"),
        ("<think>Hm\nhm</think>\nParser fix", "Parser fix"),
        ("x" * 100, "x" * 100),
        ("x" * 101, "x" * 97 + "..."),
        ("  \n ", None),
        ("<think>only thoughts</think>", None),
    ],
)
def test_the_title_is_the_first_line_that_says_something(answer: str, title: str | None) -> None:
    assert cleaned(answer) == title


def test_only_what_the_user_said_makes_a_title_wanted() -> None:
    view = SessionView(session=a_session(title=default_title(0)), seq=1)
    real, other = (a_user("ses_one", name) for name in ("msg_a", "msg_b"))
    one = HistoryItem(message=real, parts=(a_text(real, "prt_a", "Hello"),))
    made_up = HistoryItem(message=other, parts=(a_text(other, "prt_b", "Go on.", synthetic=True),))
    assert wants_title(view, a_history((one,), seq=1))
    assert wants_title(view, a_history((made_up, one), seq=1))
    assert not wants_title(view, a_history((made_up,), seq=1))
    assert wants_title(view, a_history((one, one), seq=1))
    assert not wants_title(view.but(session=a_session(title="Mine")), a_history((one,), seq=1))
    assert not wants_title(view.but(session=view.session.but(parent_id="ses_two")), a_history((one,), seq=1))

"""Long texts are put aside in the store; the model is sent the texts, never what stands in their place."""

import pytest
from left_behind import STEP, TURN, left_behind

from turnkeeper.core.blobs import MARK
from turnkeeper.core.limits import BLOB_CHARS_MIN
from turnkeeper.model import event as e
from turnkeeper.model.parts.base import Span
from turnkeeper.model.request import ModelRequest
from turnkeeper.model.value import encode
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.builders import NOW, a_text
from turnkeeper.testing.harness import Play

pytestmark = pytest.mark.parametrize("engine", ["memory", "sqlite"])


def long(name: str) -> str:
    return f"{name} " * BLOB_CHARS_MIN


def shows(request: ModelRequest, *names: str) -> bool:
    """Whether a request has these long texts whole, and nothing in the place of any."""
    written = encode(tuple(request.messages)).decode()
    return MARK.strip("\x01") not in written and all(long(name) in written for name in names)


async def test_the_first_prompt_of_a_session_may_be_long(play: Play) -> None:
    script = Scripted().says("Yes.").then().says("Still.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, long("first"))
        await stage.ask(session, long("second"))
        assert shows(script.requests[0], "first")
        assert shows(script.requests[1], "first", "second")
        assert await stage.is_sound(session)


async def test_prompts_that_waited_are_sent_whole(play: Play) -> None:
    script = Scripted().says("Yes.").then().says("Still.")
    async with play(script) as stage:
        session = await stage.session()
        for name in ("one", "two"):
            await stage.say(session, long(name), resume=False)
        await stage.say(session, long("three"), delivery="queue", resume=False)
        await stage.tk.run(session)
        assert shows(script.requests[0], "one", "two")
        assert shows(script.requests[1], "one", "two", "three")


async def test_what_the_model_said_and_gave_to_tools_is_sent_whole(play: Play) -> None:
    script = Scripted().says(long("said")).calls("echo", text=long("given")).then().says("Yes.").then().says("Still.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        await stage.ask(session, "on")
        assert all(shows(request, "said", "given") for request in script.requests[1:])


async def test_what_a_dead_process_had_heard_is_sent_whole(play: Play) -> None:
    script = Scripted().says("I am back.").then().says("Still.")
    async with play(script) as stage:
        half = e.PartRecorded(part=a_text(TURN, "prt_1", long("half"), time=Span(start=NOW)))
        session = await left_behind(stage, STEP, half)
        await stage.ask(session, long("hello?"))
        await stage.ask(session, "and now?")
        assert all(shows(request, "half", "hello?") for request in script.requests)
        assert await stage.is_sound(session)

"""A prompt goes in and its answer comes out, once, also if it is asked again."""

import dataclasses
from pathlib import Path
from typing import Annotated, Any, TypedDict

import anyio
import msgspec
import pytest
from narrow import of_type

import turnkeeper
from turnkeeper import Conflict, Invalid, NotFound, Scripted, TurnFailed
from turnkeeper.model.status import IDLE
from turnkeeper.providers.script import Gate

TOOL = "StructuredOutput"
LIMIT_S = 60


class Weather(msgspec.Struct):
    """The weather."""

    wind: str
    force: Annotated[int, msgspec.Meta(ge=0, le=12)]


@dataclasses.dataclass
class Tide:
    """The tide."""

    high: str
    low: str | None = None


class Boat(TypedDict):
    """A boat."""

    name: str
    crew: list[str]


class Nested(msgspec.Struct):
    """One inside the other."""

    weather: Weather
    others: tuple[Weather, ...] = ()


class Tree(msgspec.Struct):
    """One that refers to itself."""

    name: str
    children: list["Tree"] = []


async def test_an_answer_has_text_parts_usage_and_where_it_is(opened: Any) -> None:
    model = Scripted().says("The wind is west.").usage(input=100, output=20)
    config = {
        "model": "acme/m",
        "provider": {
            "acme": {
                "protocol": "openai-chat",
                "options": {"baseURL": "http://localhost:1"},
                "models": {"m": {"cost": {"input": 3, "output": 15}, "limit": {"context": 9000, "output": 900}}},
            }
        },
    }
    async with opened(model, config=config) as tk:
        answer = await tk.ask("Where is the wind?")
        assert (answer.text, answer.output, answer.error, answer.finish) == (
            "The wind is west.",
            "The wind is west.",
            None,
            "stop",
        )
        assert (answer.usage.input, answer.usage.output, answer.cost) == (100, 20, 0.0006)
        assert str(answer.model) == "acme/m"
        prompt, turn = (await tk.messages(answer.session_id)).items
        assert (answer.prompt_id, answer.message_id) == (prompt.info.id, turn.info.id)
        assert answer.parts == turn.parts


async def test_an_answer_of_several_turns_has_all_their_parts_and_the_last_text(opened: Any) -> None:
    @turnkeeper.tool
    def wind(place: str) -> str:
        """Where the wind comes from."""
        return f"west at {place}"

    model = Scripted().says("Let me see.").calls("wind", place="the bay").then().says("West.").forever()
    async with opened(model, tools=[wind]) as tk:
        answer = await tk.ask("Wind?")
        [call] = [part for part in answer.parts if isinstance(part, turnkeeper.ToolPart)]
        assert of_type(turnkeeper.ToolCompleted, call.state).output == "west at the bay"
        texts = [part.text for part in answer.parts if isinstance(part, turnkeeper.TextPart)]
        assert (texts, answer.text) == (["Let me see.", "West."], "West.")
        assert answer.usage.input == 20


TYPED: dict[str, tuple[Any, dict[str, Any], object]] = {
    "struct": (Weather, {"wind": "west", "force": 4}, Weather("west", 4)),
    "dataclass": (Tide, {"high": "6:12"}, Tide("6:12")),
    "typed dict": (Boat, {"name": "Ilse", "crew": ["A"]}, {"name": "Ilse", "crew": ["A"]}),
    "nested": (Nested, {"weather": {"wind": "n", "force": 1}}, Nested(Weather("n", 1))),
    "recursive": (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
    "number": (int, {"value": 7}, 7),
    "list": (list[str], {"value": ["a", "b"]}, ["a", "b"]),
    "dict": (dict[str, int], {"a": 1}, {"a": 1}),
}


@pytest.mark.parametrize("name", TYPED)
async def test_an_output_is_of_the_type_that_was_asked_for(name: str, opened: Any) -> None:
    kind, given, expected = TYPED[name]
    model = Scripted().calls(TOOL, **given)
    async with opened(model) as tk:
        answer = await tk.ask("Tell me.", output_type=kind)
        assert answer.output == expected
        [offered] = [tool for tool in model.requests[0].tools if tool.name == TOOL]
        assert offered.schema["type"] == "object"
        assert "$ref" not in offered.schema


async def test_an_output_that_does_not_fit_is_asked_for_again(opened: Any) -> None:
    model = Scripted().calls(TOOL, wind="west", force=40).then().calls(TOOL, wind="west", force=4)
    async with opened(model) as tk:
        assert (await tk.ask("Wind?", output_type=Weather)).output == Weather("west", 4)


async def test_a_type_without_a_schema_is_refused_before_anything_is_sent(opened: Any) -> None:
    async with opened(Scripted()) as tk:
        with pytest.raises(Invalid, match="cannot be an output type"):
            await tk.ask("Wind?", output_type=anyio.Event)
        assert (await tk.list()).items == ()


async def test_a_failed_turn_raises_with_the_error_and_what_there_is(opened: Any) -> None:
    model = Scripted().says("Half an ").fails(400, message="no such thing")
    async with opened(model) as tk:
        with pytest.raises(TurnFailed, match="no such thing") as caught:
            await tk.ask("Wind?")
        assert of_type(turnkeeper.ApiFailure, caught.value.error).data.status_code == 400
        assert caught.value.answer.text == "Half an "
        assert caught.value.answer.error == caught.value.error


async def test_a_failed_turn_is_an_answer_with_an_error_if_asked_for(opened: Any) -> None:
    async with opened(Scripted().fails(400, message="no such thing")) as tk:
        answer = await tk.ask("Wind?", output_type=Weather, check=False)
        assert isinstance(answer.error, turnkeeper.ApiFailure)
        assert answer.output is None


async def test_a_refused_call_is_a_failure(opened: Any) -> None:
    model = Scripted().calls("bash", command="ls", description="Lists files")
    async with opened(model, config={"permission": {"bash": "ask"}}) as tk:
        with pytest.raises(TurnFailed, match="bash was refused"):
            await tk.ask("List the files.")


async def test_a_stopped_turn_is_a_failure(opened: Any) -> None:
    gate = Gate()
    model = Scripted().says("Half an ").waits(gate)
    async with opened(model) as tk:
        session = await tk.create()

        async def stop() -> None:
            await gate.wait_reached()
            assert await tk.stop(session.id) is True

        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(stop)
                with pytest.raises(TurnFailed) as caught:
                    await tk.ask("Wind?", session=session)
        assert isinstance(caught.value.error, turnkeeper.AbortedFailure)


async def test_a_prompt_with_an_id_is_asked_once(opened: Any) -> None:
    model = Scripted().says("West.")
    async with opened(model) as tk:
        first = await tk.ask("Wind?", id="the wind")
        assert await tk.ask("Wind?", id="the wind") == first
        assert len(model.requests) == 1
        with pytest.raises(
            Conflict, match=r"^the prompt with the id 'the wind': .*with other content; choose another id"
        ):
            await tk.ask("Tide?", id="the wind")


@pytest.mark.parametrize("id", ["", " \n", "msg_", "msg_a/b"])
async def test_an_id_that_names_no_prompt_is_refused_before_a_session_is_made(id: str, opened: Any) -> None:
    model = Scripted().says("Hm.").forever()
    prompt = turnkeeper.Prompt(message_id=id, parts=(turnkeeper.TextInput(text="Wind?"),))
    async with opened(model) as tk:
        for asked, key in (("Wind?", id), (prompt, None)):
            with pytest.raises(Invalid, match=r"the id of the prompt is empty|is not a message id"):
                await tk.ask(asked, id=key)
        with pytest.raises(Invalid):
            await anext(tk.stream("Wind?", id=id))
        assert (await tk.list()).items == ()
    assert model.requests == []


async def test_one_id_in_two_sessions_names_two_prompts(opened: Any) -> None:
    async with opened(Scripted().says("One.").then().says("Two.")) as tk:
        sessions = [await tk.create(), await tk.create()]
        assert [(await tk.ask("Wind?", id="wind", session=one)).text for one in sessions] == ["One.", "Two."]


async def test_a_prompt_with_an_id_that_failed_is_tried_again(opened: Any) -> None:
    model = Scripted().fails(400, message="no").then().says("West.")
    async with opened(model) as tk:
        with pytest.raises(TurnFailed):
            await tk.ask("Wind?", id="wind")
        assert (await tk.ask("Wind?", id="wind")).text == "West."


async def test_a_failed_prompt_is_not_tried_again_behind_a_later_one(opened: Any) -> None:
    model = Scripted().fails(400, message="no").then().says("High.")
    async with opened(model) as tk:
        session = await tk.create()
        with pytest.raises(TurnFailed):
            await tk.ask("Wind?", id="wind", session=session)
        assert (await tk.ask("Tide?", session=session)).text == "High."
        with pytest.raises(TurnFailed, match="no"):
            await tk.ask("Wind?", id="wind", session=session)
        assert len(model.requests) == 2


async def test_prompts_at_once_have_each_their_answer(opened: Any) -> None:
    gate = Gate()
    model = Scripted().waits(gate).says("One.").then().says("Two.").then().says("Three.")
    answers: dict[str, str] = {}
    async with opened(model) as tk:
        session = await tk.create()

        async def ask(text: str) -> None:
            answers[text] = (await tk.ask(text, session=session)).text

        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "first")
                await gate.wait_reached()
                async with tk.subscribe(session_id=session.id) as heard:
                    group.start_soon(ask, "second")
                    group.start_soon(ask, "third")
                    async for _ in heard:
                        if len((await tk.state(session.id)).messages) == 4:
                            break
                gate.open()
    assert answers["first"] == "One."
    assert sorted(answers.values()) == ["One.", "Three.", "Two."]


async def test_prompts_that_find_a_resting_session_at_once_have_each_their_answer(opened: Any) -> None:
    answers: dict[str, object] = {}

    def answered(request: turnkeeper.ModelRequest) -> turnkeeper.Call | str:
        if any(tool.name == TOOL for tool in request.tools):
            return turnkeeper.Call(id="", name=TOOL, input={"value": 7})
        said = [one for one in request.messages if isinstance(one, turnkeeper.UserTurn)]
        return f"answer {len(said)}"

    async with opened(turnkeeper.provider(answered)) as tk:
        session = await tk.create()

        async def ask(text: str, output_type: type[int] | None = None) -> None:
            answers[text] = (await tk.ask(text, session=session, output_type=output_type)).output

        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "first")
                group.start_soon(ask, "how many?", int)
                group.start_soon(ask, "second")
                group.start_soon(ask, "third")
    assert answers.pop("how many?") == 7
    assert len(set(answers.values())) == 3


async def test_a_prompt_that_is_sent_twice_at_once_in_a_busy_session_is_one(opened: Any) -> None:
    gate = Gate()
    model = Scripted().waits(gate).says("One.").then().says("Two.")
    answers: list[str] = []
    async with opened(model) as tk:
        session = await tk.create()

        async def ask(text: str, id: str | None = None) -> None:
            answers.append((await tk.ask(text, session=session, id=id)).text)

        with anyio.fail_after(LIMIT_S):
            async with anyio.create_task_group() as group:
                group.start_soon(ask, "first")
                await gate.wait_reached()
                group.start_soon(ask, "second", "second")
                group.start_soon(ask, "second", "second")
                while len((await tk.state(session.id)).messages) < 3:
                    await anyio.lowlevel.checkpoint()
                gate.open()
    assert sorted(answers) == ["One.", "Two.", "Two."]
    assert len(model.requests) == 2


async def test_an_unknown_session_model_or_agent_is_refused(opened: Any) -> None:
    async with opened(Scripted()) as tk:
        with pytest.raises(NotFound, match="ses_nope"):
            await tk.ask("Wind?", session="ses_nope")
        with pytest.raises(Invalid, match="names no model"):
            await tk.ask("Wind?", model="claude")
        with pytest.raises(Invalid, match="acme"):
            await tk.ask("Wind?", model="acme/claude")
        with pytest.raises(Invalid, match="no agent 'nobody'"):
            await tk.ask("Wind?", agent="nobody")


async def test_a_stream_gives_the_text_as_it_comes_and_then_the_answer(opened: Any) -> None:
    gate = Gate()
    model = Scripted().says("The wind ").waits(gate).says("is west.")
    async with opened(model) as tk:
        pieces = []
        with anyio.fail_after(LIMIT_S):
            async for piece in (stream := tk.stream("Wind?")):
                pieces.append(piece)
                with pytest.raises(Invalid, match="when its stream has ended"):
                    _ = stream.answer
                gate.open()
        assert "".join(pieces) == "The wind is west." == stream.answer.text
        assert pieces[0] == "The "


async def test_leaving_the_block_of_a_stream_stops_the_turn_and_keeps_what_was_said(opened: Any) -> None:
    gate = Gate()
    model = Scripted().says("The wind ").waits(gate).says("is west.").then().says("is west.")
    async with opened(model) as tk:
        with anyio.fail_after(LIMIT_S):
            async with tk.stream("Wind?") as answer:
                with pytest.raises(Invalid, match="take the first piece first"):
                    _ = answer.session_id
                assert await anext(answer) == "The "
            assert await tk.status(answer.session_id) == IDLE
            again = await tk.ask("Go on.", session=answer.session_id)
        first = (await tk.messages(answer.session_id)).items[1]
        assert of_type(turnkeeper.AssistantMessage, first.info).error is not None
        assert "".join(part.text for part in first.parts if isinstance(part, turnkeeper.TextPart)) == "The wind "
        assert again.text == "is west."


async def test_a_cancellation_in_the_block_of_a_stream_stops_the_turn(opened: Any) -> None:
    async with opened(Scripted().says("The wind ").waits(Gate()).says("is west.")) as tk:
        with anyio.fail_after(LIMIT_S):
            with anyio.CancelScope() as scope:
                async with tk.stream("Wind?") as answer:
                    await anext(answer)
                    scope.cancel()
                    await anyio.sleep_forever()
            assert await tk.status(answer.session_id) == IDLE


async def test_a_stream_that_ended_or_never_began_stops_nothing_when_its_block_ends(opened: Any) -> None:
    async with opened(Scripted().says("West.").forever()) as tk:
        async with tk.stream("Wind?") as answer:
            assert "".join([piece async for piece in answer]) == "West."
        assert answer.answer.error is None
        async with tk.stream("Wind?"):
            pass
        assert len((await tk.list()).items) == 1


async def test_one_question_opens_asks_and_closes(place: Path, settings: turnkeeper.Settings, tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 'one.db'}"
    model = Scripted().says("West.").then().calls(TOOL, value=4)
    one = await turnkeeper.ask("Wind?", store=store, directory=place, provider=model, settings=settings)
    force = await turnkeeper.ask(
        "How strong?",
        output_type=int,
        session=one.session_id,
        store=store,
        directory=place,
        provider=model,
        settings=settings,
    )
    assert (one.text, force.output, force.session_id) == ("West.", 4, one.session_id)
    async with turnkeeper.open(store) as tk:
        assert len((await tk.messages(one.session_id)).items) == 4
    with pytest.raises(TypeError, match="colour"):
        await turnkeeper.ask("Wind?", store="memory:", colour="red")  # type: ignore[call-overload]


async def test_a_stream_sets_turns_apart(opened: Any) -> None:
    model = Scripted().says("Let me see.").calls("glob", pattern="*").then().says("Nothing.")
    async with opened(model) as tk:
        assert "".join([piece async for piece in tk.stream("Files?")]) == "Let me see.\n\nNothing."


async def test_a_stream_of_a_failed_turn_raises_after_its_text(opened: Any) -> None:
    async with opened(Scripted().says("Half").fails(400, message="no")) as tk:
        stream = tk.stream("Wind?")
        assert await anext(stream) == "Half"
        with pytest.raises(TurnFailed, match="no"):
            await anext(stream)


async def test_a_stored_answer_is_streamed_again(opened: Any) -> None:
    model = Scripted().says("The wind is west.")
    async with opened(model) as tk:
        await tk.ask("Wind?", id="wind")
        assert "".join([piece async for piece in tk.stream("Wind?", id="wind")]) == "The wind is west."
        assert len(model.requests) == 1


async def test_the_old_way_to_read_a_history_is_told_the_new_one(opened: Any) -> None:
    async with opened(Scripted()) as tk:
        with pytest.raises(Invalid, match="iter_messages"):
            tk.stream("ses_e1e62050cffekYqu2axphrFwE3")


EMPTY: dict[str, Any] = {
    "nothing": "",
    "spaces": " \n\t ",
    "two empty texts": turnkeeper.Prompt(parts=(turnkeeper.TextInput(text=""), turnkeeper.TextInput(text=" "))),
}


@pytest.mark.parametrize("name", EMPTY)
async def test_a_prompt_without_words_is_neither_sent_nor_stored(name: str, opened: Any) -> None:
    model = Scripted().says("Hm.").forever()
    async with opened(model) as tk:
        session = await tk.create()
        for send in (tk.ask(EMPTY[name], session=session), tk.prompt(session.id, EMPTY[name])):
            with pytest.raises(Invalid, match="the prompt is empty; write something, or attach a file"):
                await send
        with pytest.raises(Invalid, match="the prompt is empty"):
            await anext(tk.stream(EMPTY[name], session=session))
        assert (await tk.messages(session.id)).items == ()
        with pytest.raises(Invalid, match="the prompt is empty"):
            await tk.ask(EMPTY[name])
        assert [one.id for one in (await tk.list()).items] == [session.id]
    assert model.requests == []


async def test_an_empty_text_with_an_attachment_is_sent(opened: Any, place: Path) -> None:
    (place / "wind.txt").write_text("west")
    file = turnkeeper.FileInput(mime="text/plain", url=(place / "wind.txt").as_uri())
    async with opened(Scripted().says("West.")) as tk:
        answer = await tk.ask(turnkeeper.Prompt(parts=(turnkeeper.TextInput(text=""), file)))
        assert answer.text == "West."


async def test_a_note_may_be_empty(opened: Any) -> None:
    async with opened(Scripted()) as tk:
        session = await tk.create()
        await tk.prompt(session.id, turnkeeper.Prompt(parts=(turnkeeper.TextInput(text=""),), no_reply=True))
        assert len((await tk.messages(session.id)).items) == 1

"""Structured answers: taken when they fit, asked for again when they do not, and given up in the end."""

import pytest
from narrow import of_type

from turnkeeper.model.failure import StructuredOutputFailure
from turnkeeper.model.message import JsonSchemaFormat
from turnkeeper.model.parts import ToolPart
from turnkeeper.model.parts.tool import ToolError
from turnkeeper.model.prompt import Prompt, TextInput
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.request import SystemTurn
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play

TOOL = "StructuredOutput"
SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "properties": {"age": {"type": "integer"}},
    "required": ["age"],
}
FORMAT = JsonSchemaFormat(schema=SCHEMA)


async def test_an_answer_that_fits_is_the_message_s_structured_answer(play: Play) -> None:
    script = Scripted().calls(TOOL, age=7)
    async with play(script) as stage:
        session = await stage.session()
        assert (await stage.ask(session, "How old?", format=FORMAT)).reason == "answered"
        [(message, _)] = await stage.turns(session)
        assert message.structured == {"age": 7}
        assert message.error is None
        [request] = script.requests
        assert request.tool_choice == "required"
        [offered] = [tool for tool in request.tools if tool.name == TOOL]
        assert "$schema" not in offered.schema


async def test_other_tools_may_be_used_first(play: Play) -> None:
    script = Scripted().calls("echo", text="7").then().calls(TOOL, age=7)
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        assert [message.structured for message, _ in await stage.turns(session)] == [None, {"age": 7}]


async def test_an_answer_that_does_not_fit_is_asked_for_again_with_what_is_wrong(play: Play) -> None:
    script = Scripted().calls(TOOL, age="seven").then().calls(TOOL, age=7)
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        (first, parts), (second, _) = await stage.turns(session)
        assert (first.structured, second.structured) == (None, {"age": 7})
        [call] = [part for part in parts if isinstance(part, ToolPart)]
        assert '$.age: "seven" is not of type "integer"' in of_type(ToolError, call.state).error


async def test_words_instead_of_an_answer_are_followed_by_a_reminder(play: Play) -> None:
    script = Scripted().says("Seven.").then().calls(TOOL, age=7)
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        assert (await stage.turns(session))[-1][0].structured == {"age": 7}
        assert isinstance(script.requests[1].messages[-1], SystemTurn)


async def test_after_the_allowed_tries_it_is_a_typed_failure_that_counts_them(play: Play) -> None:
    script = Scripted().calls("echo", text="x").then().says("No.").then().calls(TOOL, age="x").then().says("No.")
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        turns = await stage.turns(session)
        assert len(turns) == 4  # One with another tool, the first try and the two allowed after it.
        failure = turns[-1][0].error
        assert isinstance(failure, StructuredOutputFailure)
        assert failure.data.retries == 2
        assert await stage.is_sound(session)


WRONG: tuple[Scripted, ...] = (
    Scripted().calls(TOOL, age="x"),
    Scripted().calls(TOOL, age="x").calls("echo", text="x"),
    Scripted().calls(TOOL, age="x").cuts(),
    Scripted().calls_raw(TOOL, "{"),
)


@pytest.mark.parametrize("script", WRONG, ids=["alone", "beside another call", "cut off", "not even JSON"])
async def test_answers_that_never_fit_are_asked_for_as_often_as_allowed(play: Play, script: Scripted) -> None:
    async with play(script.forever()) as stage:
        session = await stage.session()
        outcome = await stage.ask(session, "How old?", format=FORMAT)
        turns = await stage.turns(session)
        assert (len(turns), len(script.requests)) == (3, 3)
        failure = turns[-1][0].error
        assert isinstance(failure, StructuredOutputFailure)
        assert failure.data.retries == 2
        assert outcome.reason == "the last turn failed: StructuredOutputFailure"
        assert await stage.is_sound(session)


async def test_calls_that_the_last_step_refuses_are_tries_too(play: Play) -> None:
    script = Scripted().calls("echo", text="7").forever()
    async with play(script, config={"agent": {"build": {"steps": 1}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        turns = await stage.turns(session)
        assert len(turns) == 3
        assert isinstance(turns[-1][0].error, StructuredOutputFailure)


async def test_without_further_tries_the_first_miss_is_the_failure(play: Play) -> None:
    async with play(Scripted().says("No.")) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT.but(retry_count=0))
        [(message, _)] = await stage.turns(session)
        assert isinstance(message.error, StructuredOutputFailure)
        assert message.error.data.retries == 0


async def test_the_last_step_may_still_give_the_structured_answer(play: Play) -> None:
    script = Scripted().calls(TOOL, age=7)
    async with play(script, config={"agent": {"build": {"steps": 1}}}) as stage:
        session = await stage.session()
        await stage.ask(session, "How old?", format=FORMAT)
        [(message, _)] = await stage.turns(session)
        assert message.structured == {"age": 7}
        assert script.requests[0].tool_choice == "required"


async def test_a_schema_that_cannot_be_used_is_refused_before_anything_is_recorded(play: Play) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        before = await stage.events(session)
        format = JsonSchemaFormat(schema={"$ref": "#/nowhere"})
        with pytest.raises(Invalid, match="nowhere"):
            await stage.tk.prompt(session, Prompt(parts=(TextInput(text="go"),), format=format))
        assert await stage.events(session) == before


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "array"},
        {"type": ["string", "null"]},
        {"enum": ["yes", "no"]},
        {"const": 1},
        {"$ref": "#/$defs/names", "$defs": {"names": {"type": "array"}}},
        {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        {"allOf": [{"type": "object"}, {"type": "string"}]},
    ],
    ids=str,
)
async def test_a_schema_that_no_object_fits_is_refused(play: Play, schema: dict[str, object]) -> None:
    async with play(Scripted()) as stage:
        session = await stage.session()
        before = await stage.events(session)
        format = JsonSchemaFormat(schema=schema)
        with pytest.raises(Invalid, match="an object"):
            await stage.tk.prompt(session, Prompt(parts=(TextInput(text="go"),), format=format))
        assert await stage.events(session) == before

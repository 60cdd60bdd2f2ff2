"""JSON that is nested too deeply comes from models and tools too: the call fails, and the session goes on."""

import pytest

from turnkeeper.core.limits import JSON_DEPTH_MAX
from turnkeeper.model.message import JsonSchemaFormat
from turnkeeper.model.parts import TextPart, ToolPart
from turnkeeper.model.parts.tool import ToolCompleted, ToolError
from turnkeeper.providers.scripted import Scripted
from turnkeeper.testing.harness import Play, a_tool
from turnkeeper.tools.tool import ToolContext, ToolOutput


def deep(levels: int) -> str:
    return '{"text":' * levels + "1" + "}" * levels


def nested(levels: int) -> dict[str, object]:
    inner: dict[str, object] = {}
    for _ in range(levels - 1):
        inner = {"inner": inner}
    return inner


async def outcome(play: Play, script: Scripted, **given: object) -> tuple[ToolPart, list[str]]:
    """The first call of a session, and what the model says in the end."""
    async with play(script, **given) as stage:
        session = await stage.session()
        await stage.ask(session, "go")
        turns = await stage.turns(session)
        [call] = [part for part in turns[0][1] if isinstance(part, ToolPart)]
        assert await stage.is_sound(session)
        return call, [part.text for part in turns[-1][1] if isinstance(part, TextPart)]


@pytest.mark.parametrize("levels", [JSON_DEPTH_MAX + 1, 950, 20_000])
async def test_an_input_that_is_too_deep_fails_its_call(play: Play, levels: int) -> None:
    call, said = await outcome(play, Scripted().calls_raw("echo", deep(levels)).then().says("Well."))
    assert isinstance(call.state, ToolError)
    assert call.state.input == {}
    assert said == ["Well."]


async def test_an_input_as_deep_as_the_bound_is_recorded(play: Play) -> None:
    call, _ = await outcome(play, Scripted().calls_raw("echo", deep(JSON_DEPTH_MAX)).then().says("Well."))
    assert call.state.input != {}


async def test_a_structured_answer_that_is_too_deep_is_asked_for_again(play: Play) -> None:
    script = Scripted().calls_raw("StructuredOutput", deep(JSON_DEPTH_MAX + 1)).then().calls("StructuredOutput", text=1)
    async with play(script) as stage:
        session = await stage.session()
        await stage.ask(session, "go", format=JsonSchemaFormat(schema={"type": "object"}))
        assert [message.structured for message, _ in await stage.turns(session)] == [None, {"text": 1}]


@pytest.mark.parametrize(
    "metadata",
    [nested(200), nested(5000), {"key": object()}],
    ids=["deep", "endlessly deep", "an object"],
)
async def test_a_result_that_cannot_be_stored_fails_its_call(play: Play, metadata: dict[str, object]) -> None:
    async def tell(text: str, context: ToolContext) -> ToolOutput:
        return ToolOutput(title="told", output="told", metadata=metadata)

    script = Scripted().calls("tell", text="x").then().says("Well.")
    call, said = await outcome(play, script, tools=(a_tool("tell", tell),))
    assert isinstance(call.state, ToolError)
    assert said == ["Well."]


async def test_progress_that_cannot_be_stored_fails_its_call(play: Play) -> None:
    async def report(text: str, context: ToolContext) -> str:
        await context.progress(metadata=nested(200))
        return "done"

    call, said = await outcome(
        play, Scripted().calls("report", text="x").then().says("Well."), tools=(a_tool("report", report),)
    )
    assert isinstance(call.state, ToolError)
    assert said == ["Well."]


async def test_metadata_as_deep_as_the_bound_is_kept(play: Play) -> None:
    async def tell(text: str, context: ToolContext) -> ToolOutput:
        return ToolOutput(title="told", output="told", metadata=nested(JSON_DEPTH_MAX))

    call, _ = await outcome(
        play, Scripted().calls("tell", text="x").then().says("Well."), tools=(a_tool("tell", tell),)
    )
    assert isinstance(call.state, ToolCompleted)
    assert call.state.metadata == {**nested(JSON_DEPTH_MAX), "truncated": False}

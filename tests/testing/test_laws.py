"""The laws of requests: each one, broken by hand, is found by its name; and a sound request breaks none."""

import pytest

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.request import (
    AssistantTurn,
    Call,
    Media,
    ModelMessage,
    ModelRequest,
    Reasoning,
    Result,
    SystemTurn,
    Text,
    ToolDefinition,
    ToolTurn,
    UserTurn,
)
from turnkeeper.testing.laws import LAWS, check

MODEL = ModelInfo(provider_id="acme", id="large", name="large", api_id="large", protocol="anthropic")
GO = UserTurn(content=(Text(text="go"),))


def call(id: str = "c1", **changes: object) -> Call:
    return Call(id=id, name="bash", input={"a": 1}).but(**changes)


def result(id: str = "c1", *output: Text | Media, **changes: object) -> Result:
    return Result(call_id=id, name="bash", output=output or (Text(text="done"),)).but(**changes)


def says(*content: Text | Reasoning | Call | Result) -> AssistantTurn:
    return AssistantTurn(content=content)


def results(*of: Result) -> ToolTurn:
    return ToolTurn(results=of)


def request(*messages: ModelMessage, **changes: object) -> ModelRequest:
    return ModelRequest(model=MODEL, system=("Be careful.",), messages=messages).but(**changes)


SOUND = [
    request(GO),
    request(SystemTurn(text="It is Monday."), GO),
    request(GO, says(Text(text="Yes.")), GO, SystemTurn(text="It is Tuesday.")),
    request(GO, says(Text(text=" "), call(), call("c2")), results(result(), result("c2"))),
    request(GO, says(call(executed=True), result(executed=True), Text(text="Found.")), GO),
    request(GO, says(Reasoning(text="", metadata={"encrypted": "x"}), Text(text="Yes.")), GO),
    request(UserTurn(content=(Media(mime="image/png", data="AAA="), Media(mime="a/b", url="https://x")))),
    request(GO, tools=(ToolDefinition(name="bash", description="", schema={}),)),
]

BROKEN = [
    ("the_user_speaks_first", request(says(Text(text="Hi.")), GO)),
    ("the_user_speaks_first", request(SystemTurn(text="x"))),
    ("the_user_speaks_first", request()),
    ("the_model_is_to_speak", request(GO, says(Text(text="Hi.")))),
    ("the_model_is_to_speak", request(GO, says(Text(text="Hi.")), SystemTurn(text="x"))),
    ("every_call_has_its_result", request(GO, says(call()), GO)),
    ("every_call_has_its_result", request(GO, says(call(), call("c2")), results(result()))),
    ("every_call_has_its_result", request(GO, says(call(), call("c2")), results(result("c2"), result()))),
    ("every_call_has_its_result", request(GO, says(call()), SystemTurn(text="x"), results(result()))),
    ("every_call_has_its_result", request(GO, says(Text(text="x")), results(result()))),
    ("every_result_has_its_call", request(GO, results(result()))),
    ("every_result_has_its_call", request(GO, says(Text(text="x")), results(), GO)),
    ("hosted_calls_are_paired_inside", request(GO, says(call(executed=True)), GO)),
    ("hosted_calls_are_paired_inside", request(GO, says(result(executed=True)), GO)),
    ("hosted_calls_are_paired_inside", request(GO, says(call(executed=True), result("c2")), GO)),
    ("call_ids_are_unique", request(GO, says(call()), results(result()), says(call()), results(result()))),
    ("call_ids_are_unique", request(GO, says(call("a b")), results(result("a b")))),
    ("call_ids_are_unique", request(GO, says(call("")), results(result("")))),
    ("call_ids_are_unique", request(GO, says(call("x" * 65)), results(result("x" * 65)))),
    ("names_are_plain", request(GO, says(call(name="do it")), results(result()))),
    ("names_are_plain", request(GO, tools=(ToolDefinition(name="a.b", description="", schema={}),))),
    ("inputs_are_objects", request(GO, says(call(input=[1])), results(result()))),
    ("nothing_is_empty", request(GO, AssistantTurn(content=()), GO)),
    ("nothing_is_empty", request(UserTurn(content=()))),
    ("nothing_is_empty", request(GO, SystemTurn(text=""))),
    ("nothing_is_empty", request(UserTurn(content=(Text(text=""),)))),
    ("nothing_is_empty", request(GO, says(call()), results(result("c1", Text(text=""))))),
    ("nothing_is_empty", request(GO, says(call(executed=True), result("c1", Text(text=""), executed=True)), GO)),
    ("nothing_is_empty", request(GO, system=("",))),
    ("users_do_not_send_blanks", request(UserTurn(content=(Text(text=" \n"),)))),
    ("everything_can_be_written", request(UserTurn(content=(Text(text="\ud800"),)))),
    ("everything_can_be_written", request(GO, says(call(input={"\udc00": 1})), results(result()))),
    ("everything_can_be_written", request(GO, says(Text(text="x", metadata={"a": "\ud800"})), GO)),
    ("everything_can_be_written", request(GO, system=("\ud800",))),
    ("everything_can_be_written", request(GO, says(Text(text="x", metadata={"a": object()})), GO)),
    ("media_can_be_read", request(UserTurn(content=(Media(mime="image", data="AAAA"),)))),
    ("media_can_be_read", request(UserTurn(content=(Media(mime="image/png"),)))),
    ("media_can_be_read", request(UserTurn(content=(Media(mime="image/png", data="not base64"),)))),
    ("media_can_be_read", request(GO, says(call()), results(result("c1", Media(mime="", data="AAAA"))))),
]


@pytest.mark.parametrize("sound", SOUND)
def test_a_sound_request_breaks_no_law(sound: ModelRequest) -> None:
    assert check(sound) == {}


@pytest.mark.parametrize(("law", "broken"), BROKEN)
def test_a_broken_law_is_found_by_its_name(law: str, broken: ModelRequest) -> None:
    assert law in check(broken)


def test_every_law_has_an_example_that_breaks_it() -> None:
    assert {law for law, _ in BROKEN} == set(LAWS)

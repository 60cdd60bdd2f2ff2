"""Doom Loop: the third identical call in a row."""

from turnkeeper.core.doom_loop import is_doom_loop
from turnkeeper.model.parts import Part, TextPart, ToolPart
from turnkeeper.model.parts.tool import (
    RunningTime,
    SettledTime,
    ToolCompleted,
    ToolError,
    ToolPending,
    ToolProvider,
    ToolRunning,
)
from turnkeeper.model.value import JsonObject

INPUT = {"command": "ls", "timeout": 5}


def call(tool: str = "bash", input: JsonObject = INPUT, message: str = "msg_1", *, executed: bool = False) -> ToolPart:
    state = ToolCompleted(input=input, output="", title="", metadata={}, time=SettledTime(start=1, end=2))
    provider = ToolProvider(executed=True) if executed else None
    return ToolPart(
        id="prt_1", session_id="ses_1", message_id=message, call_id="c", tool=tool, state=state, provider=provider
    )


def said(message: str = "msg_1") -> Part:
    return TextPart(id="prt_2", session_id="ses_1", message_id=message, text="hm")


def test_the_third_identical_call_is_a_loop_and_the_second_is_not() -> None:
    assert not is_doom_loop([], "bash", INPUT)
    assert not is_doom_loop([call()], "bash", INPUT)
    assert is_doom_loop([call(), call()], "bash", INPUT)
    assert is_doom_loop([call("read"), call(), call()], "bash", INPUT)


def test_calls_of_different_turns_count_together() -> None:
    assert is_doom_loop([call(message="msg_1"), said("msg_2"), call(message="msg_3")], "bash", INPUT)


def test_the_order_of_keys_makes_no_difference() -> None:
    assert is_doom_loop([call(), call(input={"timeout": 5, "command": "ls"})], "bash", INPUT)


def test_another_tool_or_input_in_between_breaks_the_row() -> None:
    assert not is_doom_loop([call(), call("read")], "bash", INPUT)
    assert not is_doom_loop([call(), call(input={"command": "ls"})], "bash", INPUT)
    assert not is_doom_loop([call(), call()], "read", INPUT)
    assert not is_doom_loop([call(), call(), call("read")], "bash", INPUT)


def test_calls_that_the_provider_ran_are_looked_past() -> None:
    assert is_doom_loop([call(), call("web_search", executed=True), call()], "bash", INPUT)
    assert not is_doom_loop([call(executed=True), call()], "bash", INPUT)


def test_failed_and_running_calls_count_and_those_still_being_written_do_not() -> None:
    failed = call().but(state=ToolError(input=INPUT, error="no", time=SettledTime(start=1, end=2)))
    running = call().but(state=ToolRunning(input=INPUT, time=RunningTime(start=1)))
    pending = call().but(state=ToolPending(input=INPUT, raw=""))
    assert is_doom_loop([failed, running, pending], "bash", INPUT)
    assert not is_doom_loop([failed, pending], "bash", INPUT)


def test_an_approved_loop_is_asked_about_again_after_two_more_calls() -> None:
    assert is_doom_loop([call()] * 2, "bash", INPUT)
    assert not is_doom_loop([call()] * 3, "bash", INPUT)
    assert is_doom_loop([call()] * 4, "bash", INPUT)
    assert not is_doom_loop([call()] * 5, "bash", INPUT)


def test_a_loop_that_was_not_approved_is_asked_about_with_every_call() -> None:
    refused = call().but(
        state=ToolError(input=INPUT, error="The user rejected this.", time=SettledTime(start=1, end=2))
    )
    waiting = call().but(state=ToolRunning(input=INPUT, time=RunningTime(start=1)))
    assert is_doom_loop([call(), call(), refused], "bash", INPUT)
    assert is_doom_loop([call(), call(), refused, refused], "bash", INPUT)
    assert is_doom_loop([call(), call(), waiting], "bash", INPUT)


def test_a_failing_call_that_is_repeated_is_a_loop_like_any_other() -> None:
    failed = call().but(state=ToolError(input=INPUT, error="no", time=SettledTime(start=1, end=2)))
    assert not is_doom_loop([failed], "bash", INPUT)
    assert is_doom_loop([failed, failed], "bash", INPUT)

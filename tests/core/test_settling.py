"""Settling: whether a call runs, and the state in which it ends."""

import pytest

from turnkeeper.core.limits import CALLS_PER_TURN_MAX
from turnkeeper.core.next_action import DISABLED, STRUCTURED_TOOL
from turnkeeper.core.settling import AnswerTaken, Refused, Runs, completed, failed, judge_call
from turnkeeper.model.parts import Part, ToolPart
from turnkeeper.model.parts.tool import SettledTime
from turnkeeper.model.value import JsonObject
from turnkeeper.testing.builders import NOW, a_call, an_assistant, running

MESSAGE = an_assistant("ses_one", "msg_2", "msg_1")
SCHEMA: JsonObject = {"type": "object", "required": ["a"]}
CALL = a_call(MESSAGE, "prt_1", running())
FITS = a_call(MESSAGE, "prt_2", running().but(input={"a": 1}), tool=STRUCTURED_TOOL)
MISSES = FITS.but(state=running())
LAST: JsonObject = {DISABLED: True}


@pytest.mark.parametrize(
    ("part", "earlier", "number", "schema", "is_last", "verdict", "metadata"),
    [
        (CALL, [], 0, None, False, Runs(), None),
        (CALL, [CALL], 1, None, False, Runs(), None),
        (CALL, [CALL, CALL], 2, None, False, Runs(is_doom_loop=True), None),
        (CALL, [CALL, CALL], 2, None, True, Refused, LAST),
        (CALL, [], CALLS_PER_TURN_MAX, None, True, Refused, {}),
        (CALL, [], 0, SCHEMA, False, Runs(), None),
        (FITS, [], 0, SCHEMA, False, AnswerTaken(), None),
        (FITS, [], 0, SCHEMA, True, AnswerTaken(), None),
        (MISSES, [], 0, SCHEMA, False, Refused, {}),
        (FITS, [], CALLS_PER_TURN_MAX, SCHEMA, False, Refused, {}),
        (FITS, [], 0, None, False, Runs(), None),
    ],
)
def test_a_call_is_refused_taken_or_runs(
    part: ToolPart,
    earlier: list[Part],
    number: int,
    schema: JsonObject | None,
    is_last: bool,
    verdict: object,
    metadata: JsonObject | None,
) -> None:
    found = judge_call(part, earlier, number, schema=schema, is_last=is_last)
    if verdict is Refused:
        assert isinstance(found, Refused)
        assert found.metadata == metadata
    else:
        assert found == verdict


def test_a_failed_call_keeps_what_it_reported() -> None:
    part = CALL.but(state=running().but(metadata={"output": "half"}, raw="{}"))
    state = failed(part, NOW + 5, "it broke", {"rejected": True})
    assert (state.error, state.metadata, state.raw) == ("it broke", {"output": "half", "rejected": True}, "{}")
    assert state.time == SettledTime(start=NOW, end=NOW + 5)


def test_a_call_that_is_done_has_its_input_and_its_times() -> None:
    state = completed(CALL, NOW + 5, "done", title="ls", metadata={})
    assert (state.input, state.output, state.time) == (CALL.state.input, "done", SettledTime(start=NOW, end=NOW + 5))

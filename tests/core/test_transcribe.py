"""The Scribe: what is recorded and published for what a provider says, event by event."""

from collections.abc import Sequence
from itertools import count

import pytest
from narrow import of_type

from turnkeeper.core.limits import CHECKPOINT_CHARS
from turnkeeper.core.lowering import INTERRUPTED
from turnkeeper.core.transcribe import NO_RESULT, Scribe, ScribeOutput, interrupted
from turnkeeper.model import stream as s
from turnkeeper.model.event import PartExtended, PartRecorded
from turnkeeper.model.failure import ApiData, ApiFailure
from turnkeeper.model.notification import Delta
from turnkeeper.model.parts import FilePart, ReasoningPart, StepStartPart, TextPart, ToolPart
from turnkeeper.model.parts.tool import RunningTime, ToolCompleted, ToolError, ToolPending, ToolRunning
from turnkeeper.testing.builders import NOW, a_call, an_assistant

TURN = an_assistant("ses_one", "msg_1", "msg_0")
FAILURE = ApiFailure(data=ApiData(message="no", is_retryable=True))


def a_scribe() -> Scribe:
    numbers = count(1)
    return Scribe(TURN, "/home/me/prj", lambda: f"prt_{next(numbers)}")


def feed(*batches: list[s.StreamEvent], scribe: Scribe | None = None) -> list[list[ScribeOutput]]:
    """What comes of each batch; a second passes between two."""
    scribe = scribe or a_scribe()
    return [list(scribe.feed(batch, NOW + number * 1000)) for number, batch in enumerate(batches)]


def told(acts: Sequence[ScribeOutput]) -> list[tuple[object, ...]]:
    """Acts in few words."""
    found: list[tuple[object, ...]] = []
    for act in acts:
        match act:
            case PartRecorded(part=TextPart(text=text, time=time) | ReasoningPart(text=text, time=time)):
                assert time is not None
                found.append(("record", text, "open" if time.end is None else "closed"))
            case PartRecorded(part=ToolPart(state=state)):
                found.append(("record", type(state).__name__))
            case PartRecorded(part=part):
                found.append(("record", type(part).__name__))
            case PartExtended(offset=offset, text=text):
                found.append(("save", offset, text))
            case Delta(offset=offset, delta=text):
                found.append(("send", offset, text))
    return found


def test_a_block_is_recorded_before_its_first_delta_and_whole_when_it_closes() -> None:
    begun, more, end = feed(
        [s.TextStart(id="a"), s.TextDelta(id="a", text="Hel"), s.TextDelta(id="a", text="lo")],
        [s.TextDelta(id="a", text=", you")],
        [s.TextDelta(id="a", text="!"), s.TextEnd(id="a")],
    )
    assert told(begun) == [("record", "", "open"), ("send", 0, "Hello")]
    assert told(more) == [("send", 5, ", you")]
    assert told(end) == [("send", 10, "!"), ("record", "Hello, you!", "closed")]
    acts = (*begun, *more, *end)
    assert len({act.part.id if isinstance(act, PartRecorded) else of_type(Delta, act).part_id for act in acts}) == 1


def test_a_block_that_opens_and_closes_in_one_batch_has_a_beginning_and_a_delta() -> None:
    [acts] = feed([s.TextStart(id="a"), s.TextDelta(id="a", text="Hello"), s.TextEnd(id="a")])
    assert told(acts) == [("record", "", "open"), ("send", 0, "Hello"), ("record", "Hello", "closed")]


ANSWER: list[s.StreamEvent] = [
    s.StartStep(),
    s.ReasoningStart(id="r"),
    s.ReasoningDelta(id="r", text="I should "),
    s.ReasoningDelta(id="r", text="look."),
    s.ReasoningEnd(id="r"),
    s.TextDelta(id="a", text="Looking"),
    s.TextDelta(id="a", text=" now."),
    s.ToolCall(id="c", name="bash", input={"command": "ls"}),
    s.ToolInputStart(id="d", name="bash"),
    s.TextDelta(id="b", text="More."),
    s.TextEnd(id="b"),
]


@pytest.mark.parametrize("size", [1, 2, 3, len(ANSWER)])
def test_the_deltas_of_every_text_add_up_to_it_however_the_answer_is_divided(size: int) -> None:
    scribe = a_scribe()
    batches = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
    acts = [act for batch in batches for act in scribe.feed(batch, NOW)] + list(scribe.close(NOW))
    said: dict[str, str] = {}
    for act in acts:
        match act:
            case PartRecorded(part=TextPart() | ReasoningPart() as part) if part.id not in said:
                assert part.text == ""
                said[part.id] = ""
            case PartRecorded(part=TextPart() | ReasoningPart() as part):
                assert part.text == said[part.id]
            case Delta(part_id=part_id, offset=offset, delta=text):
                assert offset == len(said[part_id])
                said[part_id] += text
    assert list(said.values()) == ["I should look.", "Looking now.", "More."]


@pytest.mark.parametrize("size", [1, 2, 3, len(ANSWER)])
def test_every_call_begins_as_pending_however_the_answer_is_divided(size: int) -> None:
    scribe = a_scribe()
    batches = [ANSWER[at : at + size] for at in range(0, len(ANSWER), size)]
    acts = [act for batch in batches for act in scribe.feed(batch, NOW)] + list(scribe.close(NOW))
    states: dict[str, list[type]] = {}
    for act in acts:
        if isinstance(act, PartRecorded) and isinstance(act.part, ToolPart):
            states.setdefault(act.part.call_id, []).append(type(act.part.state))
    assert states == {"c": [ToolPending, ToolRunning], "d": [ToolPending, ToolError]}


@pytest.mark.parametrize(
    "events",
    [
        [s.TextStart(id="a"), s.TextEnd(id="a")],
        [s.ReasoningStart(id="a"), s.ReasoningEnd(id="a")],
        [s.TextEnd(id="never begun")],
        [s.ToolInputEnd(id="never begun")],
        [s.ToolInputDelta(id="never begun", text="{")],
        [s.ToolResult(id="never begun", name="x", output=1)],
        [s.ToolFailed(id="never begun", name="x", error="?")],
        [s.Start(request_id="r"), s.Finish()],
    ],
)
def test_what_says_nothing_leaves_nothing(events: list[s.StreamEvent]) -> None:
    assert feed(events) == [[]]
    assert feed(*([event] for event in events)) == [[]] * len(events)


def test_metadata_alone_is_worth_recording() -> None:
    [acts] = feed([s.ReasoningStart(id="r"), s.ReasoningEnd(id="r", metadata={"openai": {"encrypted": "x"}})])
    [recorded] = acts
    assert isinstance(recorded, PartRecorded)
    assert isinstance(recorded.part, ReasoningPart)
    assert (recorded.part.text, recorded.part.metadata) == ("", {"openai": {"encrypted": "x"}})


def test_metadata_at_the_end_replaces_that_at_the_start() -> None:
    [acts] = feed(
        [
            s.ReasoningStart(id="r", metadata={"a": 1}),
            s.ReasoningDelta(id="r", text="hm"),
            s.ReasoningEnd(id="r", metadata={"b": 2}),
        ]
    )
    assert isinstance(acts[0], PartRecorded)
    assert of_type(ReasoningPart, acts[0].part).metadata == {"b": 2}


def test_a_delta_without_a_start_opens_its_block() -> None:
    [acts] = feed([s.ReasoningDelta(id="r", text="hm")])
    assert told(acts) == [("record", "", "open"), ("send", 0, "hm")]


def test_text_and_reasoning_under_one_id_are_two_blocks() -> None:
    [acts] = feed([s.TextDelta(id="1", text="said"), s.ReasoningDelta(id="1", text="thought")])
    assert [type(act.part) for act in acts if isinstance(act, PartRecorded)] == [TextPart, ReasoningPart]


def test_parts_are_recorded_in_the_order_in_which_they_began() -> None:
    events: list[s.StreamEvent] = [
        s.StartStep(),
        s.TextDelta(id="a", text="one"),
        s.ReasoningDelta(id="r", text="hm"),
        s.ToolInputStart(id="c", name="bash"),
        s.ToolCall(id="c", name="bash", input={}),
        s.ReasoningEnd(id="r"),
        s.TextEnd(id="a"),
    ]
    for batches in ([events], [[event] for event in events], [events[:3], events[3:]], [events[:2], events[2:]]):
        order: list[str] = []
        for act in (act for acts in feed(*batches) for act in acts):
            if isinstance(act, PartRecorded) and type(act.part).__name__ not in order:
                order.append(type(act.part).__name__)
        assert order == ["StepStartPart", "TextPart", "ReasoningPart", "ToolPart"]


def test_a_call_goes_from_pending_to_running_and_is_handed_out_once() -> None:
    scribe = a_scribe()
    start, middle, call = feed(
        [s.ToolInputStart(id="c", name="bash"), s.ToolInputDelta(id="c", text='{"a"')],
        [s.ToolInputDelta(id="c", text=":1}"), s.ToolInputEnd(id="c")],
        [s.ToolCall(id="c", name="bash", input={"a": 1}, metadata={"m": 1})],
        scribe=scribe,
    )
    assert (told(start), told(middle), told(call)) == (
        [("record", "ToolPending")],
        [],
        [("record", "ToolRunning")],
    )
    [part] = scribe.calls()
    assert (part.tool, part.call_id, part.metadata) == ("bash", "c", {"m": 1})
    assert part.state == ToolRunning(input={"a": 1}, raw='{"a":1}', time=RunningTime(start=NOW + 2000))
    assert scribe.calls() == []
    assert scribe.has_begun_tools
    assert scribe.has_output


def test_a_call_without_input_events_is_recorded_as_pending_and_then_as_running() -> None:
    [acts] = feed([s.ToolCall(id="c", name="bash", input=[1], raw="[1]")])
    assert told(acts) == [("record", "ToolPending"), ("record", "ToolRunning")]
    assert isinstance(acts[1], PartRecorded)
    assert isinstance(acts[1].part, ToolPart)
    assert (acts[1].part.state.input, acts[1].part.state.raw) == ({"value": [1]}, "[1]")


def test_a_call_that_the_provider_cannot_read_is_an_error_with_what_was_written() -> None:
    scribe = a_scribe()
    _, acts = feed(
        [s.ToolInputStart(id="c", name="bash"), s.ToolInputDelta(id="c", text='{"a')],
        [s.ToolFailed(id="c", name="bash", error="not JSON")],
        scribe=scribe,
    )
    assert isinstance(acts[0], PartRecorded)
    state = of_type(ToolPart, acts[0].part).state
    assert isinstance(state, ToolError)
    assert (state.error, state.raw, state.metadata) == ("not JSON", '{"a', None)
    assert scribe.calls() == []
    assert not scribe.has_begun_tools


def test_a_call_the_provider_runs_is_settled_by_its_result() -> None:
    scribe = a_scribe()
    _, acts = feed(
        [s.ToolCall(id="c", name="web", input={"q": "x"}, executed=True, metadata={"call": 1})],
        [s.ToolResult(id="c", name="web", output={"hits": 1}, metadata={"result": 2})],
        scribe=scribe,
    )
    [recorded] = acts
    assert isinstance(recorded, PartRecorded)
    assert isinstance(recorded.part, ToolPart)
    assert isinstance(recorded.part.state, ToolCompleted)
    assert recorded.part.state.structured == {"hits": 1}
    assert recorded.part.state.time.start == NOW
    assert recorded.part.provider is not None
    assert (recorded.part.provider.metadata, recorded.part.provider.result_metadata) == ({"call": 1}, {"result": 2})
    assert recorded.part.metadata == {"call": 1, "providerExecuted": True}
    assert (scribe.calls(), scribe.has_begun_tools) == ([], False)


def test_a_call_the_provider_runs_may_fail() -> None:
    _, acts = feed(
        [s.ToolCall(id="c", name="web", input={}, executed=True)], [s.ToolFailed(id="c", name="web", error="down")]
    )
    assert told(acts) == [("record", "ToolError")]


def test_the_results_of_our_own_calls_are_not_the_provider_s_to_say() -> None:
    _, acts = feed([s.ToolCall(id="c", name="bash", input={})], [s.ToolResult(id="c", name="bash", output="?")])
    assert acts == []


def test_a_call_said_twice_is_handed_out_once_and_another_under_its_id_is_another_call() -> None:
    scribe = a_scribe()
    call = s.ToolCall(id="c", name="bash", input={"a": 1})
    feed([s.ToolInputStart(id="c", name="bash"), call], [s.ToolInputStart(id="c", name="bash"), call], scribe=scribe)
    assert len(scribe.calls()) == 1
    feed([call.but(input={"a": 2})], scribe=scribe)
    [other] = scribe.calls()
    assert other.state.input == {"a": 2}


def test_large_text_is_saved_at_once_and_the_rest_at_the_next_checkpoint() -> None:
    scribe = a_scribe()
    large = "x" * CHECKPOINT_CHARS
    first, second = feed([s.TextDelta(id="a", text=large)], [s.TextDelta(id="a", text="y")], scribe=scribe)
    assert told(first) == [("record", "", "open"), ("send", 0, large), ("save", 0, large)]
    assert told(second) == [("send", CHECKPOINT_CHARS, "y")]
    assert told(scribe.checkpoint(NOW + 2000)) == [("save", CHECKPOINT_CHARS, "y")]
    assert scribe.checkpoint(NOW + 9000) == []


def test_a_checkpoint_leaves_alone_what_was_saved_a_moment_ago() -> None:
    scribe = a_scribe()
    feed([s.TextDelta(id="a", text="x")], scribe=scribe)
    assert scribe.checkpoint(NOW + 100, age_ms=125) == []
    assert told(scribe.checkpoint(NOW + 125, age_ms=125)) == [("save", 0, "x")]


def test_closing_ends_text_as_far_as_it_came_and_calls_that_never_became_complete() -> None:
    scribe = a_scribe()
    feed(
        [s.TextDelta(id="a", text="half"), s.ReasoningDelta(id="r", text="hm")],
        [s.ToolInputStart(id="c", name="bash"), s.ToolInputDelta(id="c", text='{"a')],
        [s.ToolCall(id="d", name="bash", input={}), s.ToolCall(id="e", name="web", input={}, executed=True)],
        scribe=scribe,
    )
    acts = scribe.close(NOW + 5000)
    assert told(acts) == [
        ("record", "half", "closed"),
        ("record", "hm", "closed"),
        ("record", "ToolError"),
        ("record", "ToolError"),
    ]
    cut = [act.part for act in acts if isinstance(act, PartRecorded) and isinstance(act.part, ToolPart)]
    # Our own call that runs is settled by who runs it.
    assert [part.call_id for part in cut] == ["c", "e"]
    assert all(of_type(ToolError, part.state).metadata == {"interrupted": True} for part in cut)
    assert cut[0].state.raw == '{"a'
    assert scribe.close(NOW + 6000) == []


@pytest.mark.parametrize(
    ("events", "has_output"),
    [
        ([s.StartStep()], False),
        ([s.TextDelta(id="a", text=" \n ")], False),
        ([s.ReasoningDelta(id="a", text="hm")], False),
        ([s.TextDelta(id="a", text=" "), s.TextDelta(id="a", text="x")], True),
        ([s.ToolInputStart(id="c", name="bash")], True),
    ],
)
def test_only_words_and_calls_are_output(events: list[s.StreamEvent], has_output: bool) -> None:
    scribe = a_scribe()
    feed(events, scribe=scribe)
    assert scribe.has_output is has_output


def test_finish_usage_and_failure_are_kept() -> None:
    scribe = a_scribe()
    feed([s.FinishStep(reason="stop", usage=s.Usage(input=1))], scribe=scribe)
    assert scribe.finish is not None
    assert (scribe.finish.reason, scribe.usage, scribe.failure) == ("stop", s.Usage(input=1), None)
    feed([s.StreamError(failure=FAILURE)], scribe=scribe)
    assert (scribe.failure, scribe.usage) == (FAILURE, s.Usage(input=1))
    feed([s.StreamError(failure=FAILURE, usage=s.Usage(input=2))], scribe=scribe)
    assert scribe.usage == s.Usage(input=2)


def test_the_parts_of_an_attempt_can_be_named_so_that_it_can_be_taken_back() -> None:
    scribe = a_scribe()
    acts = [act for acts in feed([s.StartStep(), s.TextDelta(id="a", text="x")], scribe=scribe) for act in acts]
    acts += scribe.close(NOW)
    assert list(scribe.recorded) == list(dict.fromkeys(act.part.id for act in acts if isinstance(act, PartRecorded)))
    assert isinstance(acts[0], PartRecorded)
    assert isinstance(acts[0].part, StepStartPart)


def test_an_interrupted_call_keeps_its_input_its_start_and_what_it_had_put_out() -> None:
    running = ToolRunning(input={"a": 1}, raw="r", metadata={"output": "half"}, time=RunningTime(start=NOW))
    state = interrupted(a_call(TURN, "prt_1", running), NOW + 7)
    assert (state.input, state.raw, state.error) == ({"a": 1}, "r", INTERRUPTED)
    assert state.metadata == {"output": "half", "interrupted": True}
    assert (state.time.start, state.time.end) == (NOW, NOW + 7)
    pending = interrupted(a_call(TURN, "prt_1", ToolPending(input={}, raw="")), NOW, "written so far")
    assert (pending.raw, pending.time.start) == ("written so far", NOW)


def test_a_file_that_the_model_made_is_a_part_at_its_place() -> None:
    scribe = a_scribe()
    [acts] = feed(
        [
            s.TextStart(id="a"),
            s.TextDelta(id="a", text="Look:"),
            s.TextEnd(id="a"),
            s.File(mime="image/png", url="data:image/png;base64,iVBO"),
        ],
        scribe=scribe,
    )
    recorded = {act.part.id: type(act.part) for act in acts if isinstance(act, PartRecorded)}
    assert list(recorded.values()) == [TextPart, FilePart]
    assert scribe.has_output


def test_a_hosted_call_without_a_result_in_a_whole_answer_was_not_interrupted() -> None:
    scribe = a_scribe()
    feed(
        [s.ToolCall(id="c", name="web", input={"q": "x"}, executed=True), s.FinishStep(reason="stop"), s.Finish()],
        scribe=scribe,
    )
    [act] = scribe.close(NOW + 5)
    match act:
        case PartRecorded(part=ToolPart(state=ToolCompleted(output=output, input=given))):
            assert (output, given) == (NO_RESULT, {"q": "x"})
        case other:
            pytest.fail(f"{other}")

"""The context window: what is usable of it, when a request is too large, and how large a request is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.lowering import Lowered
from turnkeeper.core.window import (
    IMAGE_TOKENS,
    OUTPUT_MAX,
    Gauge,
    Window,
    chars_of,
    estimate,
    output_room,
    overflows,
    tokens_of,
    usable,
    used,
    window,
)
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.config import CompactionConfig
from turnkeeper.model.failure import ApiData, ApiFailure
from turnkeeper.model.message import AssistantMessage
from turnkeeper.model.parts import FilePart, StepStartPart
from turnkeeper.model.request import AssistantTurn, Media, Result, SystemTurn, Text, ToolTurn, UserTurn
from turnkeeper.model.session import CacheTokens, Tokens
from turnkeeper.model.value import encode
from turnkeeper.testing.builders import a_call, a_text, a_user, an_assistant, completed

MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="anthropic")
FAILED = ApiFailure(data=ApiData(message="no", is_retryable=False))


@pytest.mark.parametrize(
    ("length", "tokens"), [(0, 0), (1, 0), (2, 1), (4, 1), (5, 1), (6, 2), (10, 3), (14, 4), (4000, 1000)]
)
def test_a_text_is_a_quarter_of_its_characters_with_halves_rounded_up(length: int, tokens: int) -> None:
    assert estimate("ü" * length) == tokens_of(length) == tokens


@pytest.mark.parametrize(
    ("limits", "settings", "room"),
    [
        # Appendix A.4.
        (Limits(context=200_000, output=64_000), Window(), 168_000),
        (Limits(context=400_000, input=200_000, output=64_000), Window(), 180_000),
        (Limits(context=400_000, input=200_000, output=64_000), Window(reserved=5_000), 195_000),
        (Limits(context=200_000, output=0), Window(), 168_000),
        # Section 4.3: what is reserved below an input limit is no more than an answer may need; a 0 is meant.
        (Limits(context=400_000, input=200_000, output=8_000), Window(), 192_000),
        (Limits(context=400_000, input=200_000, output=64_000), Window(reserved=0), 200_000),
        (Limits(context=400_000, input=10_000, output=64_000), Window(), 0),
        (Limits(input=200_000), Window(), 180_000),
        # The largest answer that room is kept for can be set.
        (Limits(context=200_000, output=64_000), Window(output_max=50_000), 150_000),
        (Limits(context=200_000, output=8_000), Window(output_max=50_000), 192_000),
        # A reserve holds for the whole window too.
        (Limits(context=200_000, output=64_000), Window(reserved=5_000), 195_000),
        (Limits(context=200_000, output=64_000), Window(reserved=0), 200_000),
        # A small model may claim its whole window for the answer.
        (Limits(context=32_000, output=32_000), Window(), 16_000),
        (Limits(context=8_000), Window(), 4_000),
        (Limits(context=8_000), Window(reserved=100_000), 4_000),
        # Nobody knows.
        (Limits(), Window(), None),
        (Limits(output=8_000), Window(reserved=5_000), None),
    ],
)
def test_the_usable_window_is_what_the_answer_leaves_of_it(limits: Limits, settings: Window, room: int | None) -> None:
    assert usable(limits, settings) == room


@pytest.mark.parametrize(("output", "room"), [(64_000, 32_000), (32_000, 32_000), (8_000, 8_000), (0, 32_000)])
def test_room_for_an_answer_is_the_model_s_limit_up_to_the_usual_one(output: int, room: int) -> None:
    assert output_room(Limits(context=200_000, output=output), Window()) == room


LARGE = Limits(context=200_000, output=64_000)


@pytest.mark.parametrize(
    ("count", "messages", "limits", "settings", "too_large"),
    [
        (167_999, 1, LARGE, Window(), False),
        (168_000, 1, LARGE, Window(), True),
        (10**9, 10**6, LARGE, Window(auto=False), False),
        (10**9, 10**6, LARGE, Window(auto=False, max_tokens=1, max_messages=2), False),
        (10**9, 10**6, Limits(), Window(), False),
        # Seed 003: above 50,000 tokens, or above 100 messages, whatever the model could take.
        (50_000, 1, LARGE, Window(max_tokens=50_000), False),
        (50_001, 1, LARGE, Window(max_tokens=50_000), True),
        (1, 100, LARGE, Window(max_messages=100), False),
        (1, 101, LARGE, Window(max_messages=100), True),
        (50_001, 101, Limits(), Window(max_tokens=50_000, max_messages=100), True),
        (168_000, 1, LARGE, Window(max_tokens=500_000, max_messages=1_000), True),
    ],
)
def test_a_request_is_too_large_from_the_usable_window_on_or_above_a_threshold_of_its_own(
    count: int, messages: int, limits: Limits, settings: Window, too_large: bool
) -> None:
    assert overflows(count, messages, limits, settings) is too_large


@pytest.mark.parametrize(
    ("tokens", "count"),
    [
        (Tokens(total=122_000, input=15_000, output=1_500, reasoning=500, cache=CacheTokens(read=1, write=0)), 122_000),
        (Tokens(input=1, output=20, reasoning=300, cache=CacheTokens(read=4_000, write=50_000)), 54_021),
        (Tokens(total=0, input=7, output=0, reasoning=9, cache=CacheTokens(read=0, write=0)), 7),
        (Tokens(input=0, output=0, reasoning=9, cache=CacheTokens(read=0, write=0)), 0),
    ],
)
def test_a_turn_took_what_its_provider_says_in_all_or_else_the_sum_without_reasoning(
    tokens: Tokens, count: int
) -> None:
    assert used(tokens) == count


@pytest.mark.parametrize(
    ("config", "environ", "expected"),
    [
        (CompactionConfig(), {}, Window()),
        (CompactionConfig(auto=True, prune=True), {}, Window()),
        (CompactionConfig(auto=False), {}, Window(auto=False)),
        (CompactionConfig(prune=False), {}, Window(prune="never")),
        (CompactionConfig(prune="pays"), {}, Window(prune="pays")),
        (CompactionConfig(prune="always"), {}, Window(prune="always")),
        (
            CompactionConfig(reserved=0, tail_turns=0, preserve_recent_tokens=0, max_tokens=50_000, max_messages=100),
            {},
            Window(reserved=0, tail_turns=0, preserve_recent_tokens=0, max_tokens=50_000, max_messages=100),
        ),
        # The environment wins, under the name clients know and under our own.
        (CompactionConfig(auto=True), {"OPENCODE_DISABLE_AUTOCOMPACT": "1"}, Window(auto=False)),
        (CompactionConfig(auto=True), {"TURNKEEPER_DISABLE_AUTOCOMPACT": "true"}, Window(auto=False)),
        (CompactionConfig(prune="always"), {"OPENCODE_DISABLE_PRUNE": "TRUE"}, Window(prune="never")),
        (CompactionConfig(prune=True), {"TURNKEEPER_DISABLE_PRUNE": "1"}, Window(prune="never")),
        (CompactionConfig(), {"OPENCODE_DISABLE_AUTOCOMPACT": "0", "TURNKEEPER_DISABLE_PRUNE": "false"}, Window()),
        (CompactionConfig(), {"OPENCODE_DISABLE_AUTOCOMPACT": "", "OPENCODE_DISABLE_PRUNE": ""}, Window()),
        (CompactionConfig(auto=False), {"OPENCODE_DISABLE_AUTOCOMPACT": "0"}, Window(auto=False)),
        (CompactionConfig(), {"OPENCODE_EXPERIMENTAL_OUTPUT_TOKEN_MAX": "50000"}, Window(output_max=50_000)),
        (CompactionConfig(), {"TURNKEEPER_OUTPUT_TOKEN_MAX": "7"}, Window(output_max=7)),
        (CompactionConfig(), {"TURNKEEPER_OUTPUT_TOKEN_MAX": "-7"}, Window(output_max=OUTPUT_MAX)),
        (CompactionConfig(), {"TURNKEEPER_OUTPUT_TOKEN_MAX": "0"}, Window(output_max=OUTPUT_MAX)),
        (CompactionConfig(), {"TURNKEEPER_OUTPUT_TOKEN_MAX": "many"}, Window(output_max=OUTPUT_MAX)),
    ],
)
def test_settings_come_from_the_configuration_and_switches_from_the_environment(
    config: CompactionConfig, environ: dict[str, str], expected: Window
) -> None:
    assert window(config, environ) == expected


def shown(media: Media) -> int:
    return chars_of(UserTurn(content=(Text(text="Look."), media)))


def test_an_image_counts_by_what_is_seen_in_it_and_not_by_its_bytes() -> None:
    small, large = Media(mime="image/png", data="AAAA"), Media(mime="image/png", data="A" * 4_000_000)
    assert shown(small) == shown(large)
    assert IMAGE_TOKENS <= tokens_of(shown(large)) < IMAGE_TOKENS + 50
    linked = Media(mime="image/png", url="https://example.com/a.png")
    assert IMAGE_TOKENS <= tokens_of(shown(linked)) < IMAGE_TOKENS + 50


def test_other_media_count_by_a_share_of_their_bytes() -> None:
    small, large = (Media(mime="application/pdf", data="A" * size) for size in (400, 400_000))
    assert tokens_of(shown(large) - shown(small)) == (400_000 - 400) // 40


def test_media_in_results_count_as_those_of_a_prompt_do() -> None:
    def result(data: str) -> ToolTurn:
        output = (Text(text="Here."), Media(mime="image/png", data=data))
        return ToolTurn(results=(Result(call_id="c", name="read", output=output),))

    assert chars_of(result("AAAA")) == chars_of(result("A" * 100_000))
    assert tokens_of(chars_of(result("A" * 100_000))) >= IMAGE_TOKENS


@pytest.mark.parametrize(
    "message",
    [UserTurn(content=(Text(text="Look."),)), AssistantTurn(content=(Text(text="Yes."),)), SystemTurn(text="News.")],
)
def test_a_message_of_words_counts_by_its_json_however_it_is_given(message: UserTurn) -> None:
    assert chars_of(message) == chars_of(message, encode(message)) == len(encode(message))


def answered(seq: int, total: int, **changes: object) -> AssistantMessage:
    tokens = Tokens(total=total, input=0, output=0, reasoning=0, cache=CacheTokens(read=0, write=0))
    return an_assistant("ses_one", f"msg_{seq}", "msg_0", seq=seq, tokens=tokens, finish="stop").but(**changes)


def test_before_any_report_a_request_is_as_large_as_its_characters_say() -> None:
    gauge = Gauge()
    gauge.add(4_000)
    assert gauge.tokens(400, since=0) == 1_100


def test_a_report_takes_the_place_of_the_estimate_and_what_came_after_it_is_added() -> None:
    gauge = Gauge()
    gauge.add(4_000)
    gauge.report(answered(7, 5_000), gauge.chars)
    assert gauge.tokens(400, since=0) == 5_000, "system and tools are in what the provider counted"
    gauge.add(800)
    assert gauge.tokens(400, since=0) == 5_200


def test_the_newest_report_counts() -> None:
    gauge = Gauge()
    gauge.report(answered(7, 5_000), 0)
    gauge.add(4_000)
    gauge.report(answered(9, 6_000), gauge.chars)
    assert gauge.tokens(0, since=0) == 6_000


@pytest.mark.parametrize(
    "unusable",
    [
        answered(7, 5_000, finish=None),
        answered(7, 5_000, error=FAILED),
        answered(7, 5_000, summary=True),
        answered(7, 0),
    ],
    ids=["unfinished", "failed", "a summary", "nothing counted"],
)
def test_a_turn_that_says_nothing_of_this_conversation_is_no_report(unusable: AssistantMessage) -> None:
    gauge = Gauge()
    gauge.add(4_000)
    gauge.report(unusable, gauge.chars)
    assert gauge.tokens(0, since=0) == 1_000


def test_a_report_from_before_the_history_was_rewritten_is_not_used() -> None:
    gauge = Gauge()
    gauge.add(4_000)
    gauge.report(answered(7, 5_000), gauge.chars)
    assert [gauge.tokens(400, since) for since in (6, 7, 8)] == [5_000, 1_100, 1_100]


def entries(output: str = "o" * 400) -> list[HistoryItem]:
    user = a_user("ses_one", "msg_1", seq=1)
    turn = answered(2, 5_000, finish="tool-calls")
    parts = (
        StepStartPart(id="prt_s", session_id="ses_one", message_id=turn.id),
        a_text(turn, "prt_t", "I look."),
        a_call(turn, "prt_c", completed(output)),
    )
    return [HistoryItem(message=user, parts=(a_text(user, "prt_u", "Look."),)), HistoryItem(message=turn, parts=parts)]


def test_results_of_the_calls_of_a_turn_came_after_its_report_and_are_added_to_it() -> None:
    lowered = Lowered(MODEL)
    lowered.add(entries())
    result = lowered.messages[-1]
    assert isinstance(result, ToolTurn)
    assert lowered.gauge.tokens(10**6, since=0) == 5_000 + tokens_of(chars_of(result))


def test_an_image_that_a_tool_gave_counts_as_an_image_behind_the_report() -> None:
    user, turn = entries()
    call = turn.parts[-1]
    file = FilePart(
        id="prt_f",
        session_id="ses_one",
        message_id="msg_2",
        mime="image/png",
        url=f"data:image/png;base64,{'A' * 8000}",
    )
    with_image = turn.but(parts=(*turn.parts[:-1], call.but(state=completed("o").but(attachments=(file,)))))
    lowered = Lowered(MODEL)
    lowered.add([user, with_image])
    assert 5_000 + IMAGE_TOKENS < lowered.gauge.tokens(0, since=0) < 5_000 + IMAGE_TOKENS + 100


def test_what_the_user_says_after_a_report_is_added_to_it() -> None:
    lowered = Lowered(MODEL)
    lowered.add(entries())
    before = lowered.gauge.tokens(0, since=0)
    later = a_user("ses_one", "msg_3", seq=3)
    lowered.add([HistoryItem(message=later, parts=(a_text(later, "prt_3", "x" * 4_000),))])
    assert 1_000 <= lowered.gauge.tokens(0, since=0) - before < 1_050


GROWTH = st.lists(
    st.one_of(st.integers(0, 5_000), st.tuples(st.integers(1, 100_000), st.booleans())), min_size=1, max_size=20
)


@given(GROWTH, st.integers(0, 25), st.integers(0, 10_000))
def test_the_size_is_the_newest_usable_report_and_the_estimate_of_all_behind_it(
    growth: list[int | tuple[int, bool]], since: int, around: int
) -> None:
    gauge = Gauge()
    known, behind = None, around
    for seq, step in enumerate(growth, 1):
        if isinstance(step, int):
            gauge.add(step)
            behind += step
            continue
        total, is_good = step
        gauge.report(answered(seq, total, error=None if is_good else FAILED), gauge.chars)
        if is_good:
            known, behind = (seq, total), 0
    if known is not None and known[0] > since:
        assert gauge.tokens(around, since) == known[1] + tokens_of(behind)
    else:
        assert gauge.tokens(around, since) == tokens_of(around + sum(s for s in growth if isinstance(s, int)))

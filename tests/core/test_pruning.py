"""Pruning: which old outputs leave the model's view, and that it never costs more than to leave them there."""

from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turnkeeper.core.history import HistoryItem
from turnkeeper.core.lowering import Lowered, cleared
from turnkeeper.core.pruning import (
    ALWAYS,
    BEGINS,
    CHEAPER,
    COLD,
    FULL,
    MINIMUM,
    PROTECT,
    STAND_IN,
    Occasion,
    Pruning,
    candidates,
    choose,
    pays,
)
from turnkeeper.core.window import PruneMode, estimate, tokens_of
from turnkeeper.model.catalog import ModelInfo, Price
from turnkeeper.model.parts import CompactionPart, FilePart, Part, ToolPart
from turnkeeper.model.parts.tool import SettledTime, ToolCompleted, ToolError, ToolProvider
from turnkeeper.model.value import encode
from turnkeeper.testing.builders import NOW, a_call, a_text, a_user, an_assistant, completed, running

MODEL = ModelInfo(provider_id="acme", id="large", name="Large", api_id="large", protocol="anthropic")
SONNET = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)


class Told:
    """A history that grows turn by turn."""

    def __init__(self) -> None:
        self.entries: list[HistoryItem] = []

    def user(self) -> "Told":
        message = a_user("ses_one", f"msg_{len(self.entries)}", seq=len(self.entries) + 1)
        self.entries.append(HistoryItem(message=message, parts=(a_text(message, f"prt_{message.id}", "Go on."),)))
        return self

    def turn(self, *outputs: int | ToolPart, **changes: object) -> "Told":
        """A turn whose calls gave so many tokens each, or these calls."""
        number = len(self.entries)
        message = an_assistant("ses_one", f"msg_{number}", "msg_0", seq=number + 1, finish="stop").but(**changes)
        parts = [
            call(size, f"prt_{number}_{nth}") if isinstance(size, int) else size for nth, size in enumerate(outputs)
        ]
        self.entries.append(HistoryItem(message=message, parts=tuple(parts)))
        return self

    def protected(self) -> "Told":
        """The two newest turns, which nobody touches."""
        return self.user().turn(100).user().turn(100)


def call(tokens: int, id: str = "prt_x", **changes: object) -> ToolPart:
    made = a_call(an_assistant("ses_one", "msg_x", "msg_0"), id, completed("x" * (tokens * 4)))
    return made.but(**changes)


def pruned(tokens: int, id: str = "prt_p") -> ToolPart:
    time = SettledTime(start=NOW, end=NOW, compacted=NOW)
    return call(tokens, id, state=completed("x" * (tokens * 4)).but(time=time))


def found(told: Told) -> list[str]:
    return [part.id for part in candidates(told.entries)]


def test_outputs_beyond_the_newest_forty_thousand_tokens_may_go_if_they_are_worth_twenty_thousand() -> None:
    told = Told().user().turn(15_000, 6_000).user().turn(40_000).protected()
    assert found(told) == ["prt_1_1", "prt_1_0"]


@pytest.mark.parametrize(("oldest", "goes"), [(MINIMUM, []), (MINIMUM + 1, ["prt_1_0"])])
def test_twenty_thousand_tokens_are_not_yet_worth_it(oldest: int, goes: list[str]) -> None:
    assert found(Told().user().turn(oldest).user().turn(PROTECT).protected()) == goes


@pytest.mark.parametrize(("newer", "goes"), [(PROTECT - 30_000, []), (PROTECT - 29_999, ["prt_1_0"])])
def test_the_output_that_crosses_the_forty_thousand_goes_as_a_whole(newer: int, goes: list[str]) -> None:
    assert found(Told().user().turn(30_000).user().turn(newer).protected()) == goes


def test_the_two_newest_turns_of_the_user_are_never_touched() -> None:
    told = Told().user().turn(500_000).user().turn(500_000)
    assert found(told) == []
    assert found(told.user()) == ["prt_1_0"]


def test_a_turn_of_many_messages_is_protected_as_a_whole() -> None:
    told = Told().user().turn(90_000).user().turn(90_000).turn(90_000).turn(90_000).user()
    assert found(told) == ["prt_1_0"]


def test_what_is_protected_does_not_count_among_the_newest_forty_thousand() -> None:
    assert found(Told().user().turn(30_000).user().turn(500_000).user()) == []


@pytest.mark.parametrize(
    "kept",
    [
        call(90_000, tool="skill"),
        call(90_000, tool="recall"),
        call(90_000, provider=ToolProvider(executed=True)),
        call(90_000, state=running()),
        call(90_000, state=ToolError(input={}, error="x" * 360_000, time=SettledTime(start=NOW, end=NOW))),
    ],
    ids=["skill", "recall", "run by the provider", "running", "failed"],
)
def test_what_was_asked_for_to_be_kept_and_what_is_no_output_of_ours_stays_and_does_not_count(kept: ToolPart) -> None:
    assert found(Told().user().turn(kept).protected()) == []
    assert found(Told().user().turn(30_000).turn(kept).protected()) == [], "it takes no room from the others"


def test_the_walk_ends_at_a_summary() -> None:
    told = Told().user().turn(90_000).turn(90_000, summary=True).user().turn(30_000).protected()
    assert found(told) == []
    assert found(Told().turn(90_000, summary=True).user().turn(90_000).protected()) == ["prt_2_0"]


def test_the_walk_ends_at_what_was_pruned_before() -> None:
    assert found(Told().user().turn(90_000).turn(30_000, pruned(90_000), 45_000).protected()) == ["prt_2_2"]
    assert found(Told().user().turn(90_000).turn(pruned(1), 30_000).protected()) == []


def test_outputs_of_a_protected_tool_that_were_pruned_do_not_end_the_walk() -> None:
    told = Told().user().turn(90_000).turn(pruned(1).but(tool="recall")).protected()
    assert found(told) == ["prt_1_0"]


def test_a_mark_of_a_compaction_is_a_turn_of_the_user() -> None:
    told = Told().user().turn(90_000).user()
    mark: Part = CompactionPart(id="prt_m", session_id="ses_one", message_id="msg_m", auto=True)
    entry = HistoryItem(message=a_user("ses_one", "msg_m", seq=9), parts=(mark,))
    assert [part.id for part in candidates([*told.entries, entry])] == ["prt_1_0"]


HEAVY = Told().user().turn(100_000).protected().entries
COUNT = 130_000


@pytest.mark.parametrize(
    ("mode", "occasion", "reason"),
    [
        ("never", Occasion(count=COUNT, is_after_run=True, begins=True, is_cold=True, room=90_000), None),
        ("pays", Occasion(count=COUNT, price=SONNET), None),
        ("pays", Occasion(count=COUNT, price=SONNET, is_after_run=True), None),
        ("pays", Occasion(count=COUNT, price=SONNET, begins=True), BEGINS),
        ("pays", Occasion(count=COUNT, price=SONNET, is_cold=True), COLD),
        ("pays", Occasion(count=COUNT, price=SONNET, room=90_000), FULL),
        ("pays", Occasion(count=COUNT, price=SONNET, room=20_000), None),
        ("pays", Occasion(count=105_000, price=SONNET), CHEAPER),
        ("pays", Occasion(count=105_000, price=Price()), None),
        ("always", Occasion(count=COUNT, price=SONNET, is_after_run=True), ALWAYS),
        ("always", Occasion(count=COUNT, price=SONNET), None),
        ("always", Occasion(count=COUNT, price=SONNET, is_cold=True), COLD),
        ("always", Occasion(count=COUNT, price=SONNET, room=90_000), FULL),
    ],
)
def test_when_it_is_done_and_why(mode: PruneMode, occasion: Occasion, reason: str | None) -> None:
    chosen = choose(HEAVY, mode, occasion)
    assert (chosen.reason if chosen is not None else None) == reason
    if chosen is not None:
        assert [part.id for part in chosen.parts] == ["prt_1_0"]
        assert 99_900 <= chosen.tokens <= 100_000


def test_without_anything_to_prune_no_occasion_prunes() -> None:
    light = Told().user().turn(1_000).protected().entries
    everything = Occasion(count=COUNT, price=SONNET, is_after_run=True, begins=True, is_cold=True, room=129_500)
    assert [choose(light, mode, everything) for mode in ("never", "pays", "always")] == [None, None, None]


@pytest.mark.parametrize(
    ("saved", "count", "price", "worth"),
    [
        # 100,000 from the cache are 0.03 dollars; as much is 8,000 written to it anew.
        (92_000, 100_000, SONNET, False),
        (92_001, 100_000, SONNET, True),
        (90_000, 100_000, Price(input=3, cache_read=0.3), False),
        (90_001, 100_000, Price(input=3, cache_read=0.3), True),
        (1, 100_000, Price(input=3), False),
        (1, 100_000, Price(), False),
        (100_001, 100_000, SONNET, True),
    ],
)
def test_a_warm_cache_is_given_up_only_for_less_than_it_costs_to_read(
    saved: int, count: int, price: Price, worth: bool
) -> None:
    assert pays(saved, count, price) is worth


# The price model, written without looking at how the choice is made. A request is a row of pieces; a provider that has
# just read a row reads the same beginning of the next one from its cache, and all behind it at the full price.


@dataclass(frozen=True)
class Provider:
    price: Price
    is_warm: bool

    def cost(self, first: list[int], cached: int, requests: int) -> float:
        """What ``requests`` requests cost, of which ``cached`` tokens of the first are still in the cache."""
        size, fresh = sum(first), max(self.price.input, self.price.cache_write)
        kept = cached if self.is_warm else 0
        return kept * self.price.cache_read + (size - kept) * fresh + (requests - 1) * size * self.price.cache_read


def lowered(entries: list[HistoryItem]) -> list[int]:
    whole = Lowered(MODEL)
    whole.add(entries)
    return [tokens_of(len(one)) for one in whole.encoded]


def without(entries: list[HistoryItem], chosen: Pruning) -> list[HistoryItem]:
    """The history with these outputs pruned, as the loop records it."""
    ids = {part.id for part in chosen.parts}

    def marked(part: Part) -> Part:
        if part.id not in ids or not isinstance(part, ToolPart) or not isinstance(part.state, ToolCompleted):
            return part
        return part.but(state=part.state.but(time=part.state.time.but(compacted=NOW)))

    return [entry.but(parts=tuple(map(marked, entry.parts))) for entry in entries]


# Few large outputs, or very many small ones: what stands for a pruned output has a size too. Built once: building them
# takes longer than choosing among them.
OLD = {
    name: Told().turn(*(call(size, f"prt_{name}_{nth}") for nth, size in enumerate(sizes))).entries[0]
    for name, sizes in {
        "one": [2_000],
        "two": [9_000, 9_000],
        "large": [30_000],
        "mixed": [2_000, 30_000, 3],
        "shorter": [24] * 840,
        "as long": [26] * 780,
        "longer": [30] * 670,
        "short": [60] * 400,
    }.items()
}


def history(turns: list[str]) -> list[HistoryItem]:
    """A history with these old turns, the newest 40,000 tokens of outputs behind them, and what is protected."""
    told = Told()
    for turn in turns:
        told.user().entries.append(OLD[turn])
    return told.user().turn(PROTECT).protected().entries


TURNS = st.lists(st.sampled_from(list(OLD)), min_size=1, max_size=3, unique=True)
PRICES = st.builds(
    Price,
    input=st.sampled_from([0, 0.1, 1, 3]),
    cache_read=st.sampled_from([0, 0.05, 0.3, 1, 3]),
    cache_write=st.sampled_from([0, 1, 3.75]),
)


@settings(max_examples=30)
@given(
    TURNS,
    PRICES,
    st.sampled_from(["warm", "cold", "begins"]),
    st.integers(1, 6),
    st.booleans(),
)
def test_where_it_pays_it_is_never_dearer_than_not_to_prune_however_many_requests_follow(
    turns: list[str], price: Price, cache: str, requests: int, is_after_run: bool
) -> None:
    entries = history(turns)
    before = lowered(entries)
    occasion = Occasion(
        count=sum(before), price=price, is_cold=cache == "cold", begins=cache == "begins", is_after_run=is_after_run
    )
    chosen = choose(entries, "pays", occasion)
    if chosen is None:
        return
    after = lowered(without(entries, chosen))
    provider = Provider(price, is_warm=cache == "warm")
    same = next(at for at, (one, other) in enumerate(zip(before, after, strict=True)) if one != other)
    goes_on = provider.cost(before, sum(before), requests)
    prunes = provider.cost(after, sum(after[:same]), requests)
    assert prunes <= goes_on + 1e-6, (chosen.reason, len(chosen.parts), sum(before), sum(after))
    assert chosen.tokens <= sum(before) - sum(after) + len(after), "and it saves what it says"


@settings(max_examples=25)
@given(TURNS, st.floats(0.3, 1.0))
def test_a_pruning_that_is_to_make_a_request_fit_does(turns: list[str], share: float) -> None:
    entries = history(turns)
    count = sum(lowered(entries))
    room = int(count * share)
    chosen = choose(entries, "pays", Occasion(count=count, room=room))
    if chosen is not None:
        after = lowered(without(entries, chosen))
        assert sum(after) < room + len(after), "but for rounding"


def test_no_output_goes_whose_place_would_take_more_than_itself() -> None:
    told = Told().user().turn(30_000, *[1] * 100).user().turn(PROTECT).protected()
    assert found(told) == [f"prt_1_{n}" for n in range(100, -1, -1)], "by the plain rule they would"
    chosen = choose(told.entries, "pays", Occasion(count=COUNT, is_cold=True))
    assert chosen is not None
    assert [part.id for part in chosen.parts] == ["prt_1_0"]
    plain = choose(told.entries, "always", Occasion(count=COUNT, is_after_run=True))
    assert plain is not None
    assert len(plain.parts) == 101


def test_a_short_output_with_an_image_still_goes() -> None:
    image = FilePart(id="f", session_id="ses_one", message_id="m", mime="image/png", url="data:image/png;base64,AAAA")
    seen = call(1, "prt_i", state=completed("Seen.").but(attachments=(image,)))
    told = Told().user().turn(30_000, seen).user().turn(PROTECT).protected()
    chosen = choose(told.entries, "pays", Occasion(count=COUNT, is_cold=True))
    assert chosen is not None
    assert [part.id for part in chosen.parts] == ["prt_i", "prt_1_0"]


def test_what_is_saved_is_less_what_stands_in_its_place() -> None:
    chosen = choose(HEAVY, "pays", Occasion(count=COUNT, is_cold=True))
    assert chosen is not None
    assert chosen.tokens == 100_000 - STAND_IN
    assert estimate(encode(cleared(completed("x" * 50_000))).decode()) == STAND_IN

"""Tokens are counted once and cost what the provider's price list says (checklist C1 to C3)."""

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turnkeeper.core.usage import add_costs, add_tokens, cost, price_at, step_tokens
from turnkeeper.model.catalog import ModelInfo, Price, PriceTier
from turnkeeper.model.session import ZERO_TOKENS, CacheTokens, Tokens
from turnkeeper.model.stream import Usage

SONNET = Price(input=3, output=15, cache_read=0.3, cache_write=3.75)
LONG = Price(input=6, output=22.5, cache_read=0.6, cache_write=7.5)
LONGER = Price(input=60, output=225, cache_read=6, cache_write=75)


def a_model(price: Price = SONNET, *tiers: PriceTier) -> ModelInfo:
    return ModelInfo(provider_id="p", id="m", name="M", api_id="m", protocol="x", price=price, tiers=tiers)


def tokens(total: int | None, input: int, output: int, reasoning: int, read: int, write: int) -> Tokens:
    return Tokens(
        total=total, input=input, output=output, reasoning=reasoning, cache=CacheTokens(read=read, write=write)
    )


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        pytest.param(
            Usage(input=120_000, output=2_000, reasoning=500, cache_read=100_000, cache_write=5_000, total=122_000),
            tokens(122_000, 15_000, 1_500, 500, 100_000, 5_000),
            id="the worked example",
        ),
        pytest.param(Usage(input=10, output=4), tokens(None, 10, 4, 0, 0, 0), id="nothing cached, no total"),
        pytest.param(Usage(input=10, cache_read=30), tokens(None, 0, 0, 0, 30, 0), id="more cached than read"),
        pytest.param(
            Usage(input=30, cache_read=20, cache_write=20), tokens(None, 0, 0, 0, 20, 10), id="read and written at once"
        ),
        pytest.param(Usage(output=3, reasoning=9), tokens(None, 0, 0, 9, 0, 0), id="more reasoning than output"),
        pytest.param(
            Usage(input=-5, output=-1, reasoning=-2, cache_read=-3, cache_write=-4, total=-6),
            tokens(0, 0, 0, 0, 0, 0),
            id="nothing below zero",
        ),
        pytest.param(Usage(), tokens(None, 0, 0, 0, 0, 0), id="nothing reported"),
    ],
)
def test_each_token_is_counted_under_one_kind(usage: Usage, expected: Tokens) -> None:
    assert step_tokens(usage) == expected


@pytest.mark.parametrize(
    ("metadata", "written"),
    [
        ({"anthropic": {"cacheCreationInputTokens": 7}}, 7),
        ({"vertex": {"cacheCreationInputTokens": 8}}, 8),
        ({"bedrock": {"usage": {"cacheWriteInputTokens": 9}}}, 9),
        ({"venice": {"usage": {"cacheCreationInputTokens": 6}}}, 6),
        ({"anthropic": {"cacheCreationInputTokens": -7}}, 0),
        ({"anthropic": {"cacheCreationInputTokens": float("nan")}}, 0),
        ({"anthropic": {"cacheCreationInputTokens": "7"}}, 0),
        ({"bedrock": 3}, 0),
        (None, 0),
    ],
)
def test_cache_writes_are_found_in_a_providers_own_words(metadata: dict[str, object] | None, written: int) -> None:
    assert step_tokens(Usage(input=20), metadata) == tokens(None, 20 - written, 0, 0, 0, written)


def test_a_reported_cache_write_is_stronger_than_metadata() -> None:
    reported = step_tokens(Usage(input=20, cache_write=5), {"anthropic": {"cacheCreationInputTokens": 7}})
    assert reported.cache.write == 5


def bill(usage: Usage, model: ModelInfo, metadata: dict[str, object] | None = None) -> Decimal:
    return cost(step_tokens(usage, metadata), usage, model, metadata)


def test_the_worked_example_costs_what_it_says() -> None:
    usage = Usage(input=120_000, output=2_000, reasoning=500, cache_read=100_000, cache_write=5_000, total=122_000)
    assert bill(usage, a_model()) == Decimal("0.12375")


@pytest.mark.parametrize(
    ("tokens_input", "price"),
    [(0, SONNET), (200_000, SONNET), (200_001, LONG), (500_000, LONG), (500_001, LONGER)],
)
def test_the_row_of_prices_is_the_highest_tier_that_the_whole_input_exceeds(tokens_input: int, price: Price) -> None:
    tiers = (PriceTier(above=500_000, price=LONGER), PriceTier(above=200_000, price=LONG))
    assert price_at(a_model(SONNET, *tiers), tokens_input) == price
    assert price_at(a_model(SONNET, *reversed(tiers)), tokens_input) == price


def test_a_long_request_pays_the_long_price_for_every_kind_of_token() -> None:
    usage = Usage(input=220_000, output=2_000, reasoning=500, cache_read=100_000, cache_write=5_000)
    # 115,000 x 6 + 2,000 x 22.5 + 100,000 x 0.6 + 5,000 x 7.5, a million each.
    assert bill(usage, a_model(SONNET, PriceTier(above=200_000, price=LONG))) == Decimal("0.8325")


def test_the_tier_is_chosen_by_the_input_with_its_cached_part() -> None:
    usage = Usage(input=200_001, cache_read=200_000)
    assert bill(usage, a_model(SONNET, PriceTier(above=200_000, price=LONG))) == Decimal("0.120006")


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -1.0])
def test_a_price_that_makes_no_sense_is_nothing(wrong: float) -> None:
    assert bill(Usage(input=1_000_000, output=1_000_000), a_model(Price(input=wrong, output=2))) == 2


@pytest.mark.parametrize(
    ("reported", "expected"),
    [(250_000_000, "0.0025"), (0, "0"), (1.5e9, "0.015"), (-1, "0.003"), ("1", "0.003"), (float("inf"), "0.003")],
)
def test_a_provider_that_bills_by_itself_is_believed(reported: object, expected: str) -> None:
    assert bill(Usage(input=1_000), a_model(), {"copilot": {"totalNanoAiu": reported}}) == Decimal(expected)


def test_tenths_of_cents_add_up_exactly() -> None:
    each = bill(Usage(input=1), a_model(Price(input=0.1)))
    assert sum([each] * 10) == Decimal("0.000001")


COUNTS = st.integers(min_value=-1000, max_value=10**9)
USAGES = st.builds(
    Usage, input=COUNTS, output=COUNTS, reasoning=COUNTS, cache_read=COUNTS, cache_write=COUNTS, total=COUNTS
)
PRICES = st.builds(
    Price,
    input=st.floats(0, 1000),
    output=st.floats(0, 1000),
    cache_read=st.floats(0, 1000),
    cache_write=st.floats(0, 1000),
)


@given(USAGES)
def test_no_usage_gives_a_negative_count(usage: Usage) -> None:
    found = step_tokens(usage)
    counts = [found.input, found.output, found.reasoning, found.cache.read, found.cache.write, found.total or 0]
    assert min(counts) >= 0


@given(*[st.integers(0, 10**9)] * 5)
def test_an_honest_usage_is_split_without_loss(fresh: int, read: int, write: int, said: int, thought: int) -> None:
    usage = Usage(
        input=fresh + read + write, output=said + thought, reasoning=thought, cache_read=read, cache_write=write
    )
    assert step_tokens(usage) == tokens(None, fresh, said, thought, read, write)


@given(USAGES, PRICES)
def test_a_cost_is_finite_never_negative_and_grows_with_use(usage: Usage, price: Price) -> None:
    model = a_model(price)
    before = bill(usage, model)
    after = bill(usage.but(output=max(usage.output, usage.reasoning, 0) + 1_000), model)
    assert before.is_finite()
    assert 0 <= before <= after


@given(USAGES, USAGES)
def test_tokens_add_up_by_kind(one: Usage, other: Usage) -> None:
    left, right = step_tokens(one), step_tokens(other)
    total = add_tokens(left, right)
    assert total == add_tokens(right, left)
    assert total.cache.read == left.cache.read + right.cache.read
    assert add_tokens(left, ZERO_TOKENS) == left.but(total=None)


def test_dollars_are_added_as_decimals() -> None:
    total: float = 0
    for one in [0.0012, 0.002456, 0.003712]:
        total = add_costs(total, one)
    assert (total, sum([0.0012, 0.002456, 0.003712])) == (0.007368, 0.0073679999999999995)


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        ((), 0),
        ((0.1, 0.2), 0.3),
        ((0.3, -0.1), 0.2),
        ((0.0073679999999999995, 0.0), 0.007368),
        ((1e-8, 1e-8), 2e-8),
        ((1e300, 1.0), 1e300),
    ],
)
def test_a_sum_of_dollars_has_no_false_digits(amounts: tuple[float, ...], total: float) -> None:
    assert repr(add_costs(*amounts)) == repr(total)

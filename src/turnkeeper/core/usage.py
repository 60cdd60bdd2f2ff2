"""Usage and cost: tokens by kind, and their cost in decimal arithmetic."""

from decimal import Decimal
from math import isfinite
from typing import Final, Literal

from turnkeeper.model.catalog import ModelInfo, Price
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.session import ZERO_TOKENS, CacheTokens, Tokens
from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json, JsonObject

COST_DIGITS: Final = 12
"""Decimal places of dollars: a token of the cheapest model costs ten thousand times the smallest amount."""
_MILLION: Final = Decimal(1_000_000)
_NANO_UNITS_PER_DOLLAR: Final = Decimal(100_000_000_000)

# Metadata paths of cache writes, for providers whose protocol has no field for them.
_CACHE_WRITES: Final = (
    ("anthropic", "cacheCreationInputTokens"),
    ("vertex", "cacheCreationInputTokens"),
    ("bedrock", "usage", "cacheWriteInputTokens"),
    ("venice", "usage", "cacheCreationInputTokens"),
)


def add_tokens(one: Tokens, other: Tokens) -> Tokens:
    """The sum by kind. ``total`` is a provider's own figure for one request and is not summed."""
    return _sum(one, other, 1)


def subtract_tokens(one: Tokens, other: Tokens) -> Tokens:
    """What ``one`` has more than ``other``, by kind."""
    return _sum(one, other, -1)


def add_costs(*dollars: float) -> float:
    """The sum of dollars, added as decimals: 0.1 and 0.2 are 0.3. Rounds sums that older versions added as floats."""
    if all(isinstance(one, int) for one in dollars):
        return sum(dollars)
    return round(float(sum(map(_decimal, dollars), Decimal(0))), COST_DIGITS)


def step_tokens(usage: Usage, metadata: JsonObject | None = None) -> Tokens:
    """The tokens of one turn: none is counted under two kinds, and no count is negative."""
    read = max(0, usage.cache_read)
    # A gateway may count the same tokens as read and as written.
    write = min(max(0, usage.cache_write) or _cache_write(metadata), max(0, usage.input - read))
    reasoning = max(0, usage.reasoning)
    return Tokens(
        total=None if usage.total is None else max(0, usage.total),
        input=max(0, usage.input - read - write),
        output=max(0, usage.output - reasoning),
        reasoning=reasoning,
        cache=CacheTokens(read=read, write=write),
    )


def cost(tokens: Tokens, usage: Usage, model: ModelInfo, metadata: JsonObject | None = None) -> Decimal:
    """US dollars for one turn. Reasoning has the price of output.

    A cost that the provider reports (``copilot.totalNanoAiu`` in its metadata) takes precedence. The price tier is
    chosen by the provider's count of the whole input, and holds for every kind of token.
    """
    billed = _number(_at(metadata, ("copilot", "totalNanoAiu")))
    if billed is not None:
        return billed / _NANO_UNITS_PER_DOLLAR
    price = price_at(model, usage.input)
    total = (
        tokens.input * _dollars(price.input)
        + tokens.output * _dollars(price.output)
        + tokens.reasoning * _dollars(price.output)
        + tokens.cache.read * _dollars(price.cache_read)
        + tokens.cache.write * _dollars(price.cache_write)
    )
    return max(Decimal(0), total / _MILLION)


def bill(
    purpose: Literal["turn", "title", "compaction"],
    model: ModelInfo,
    usage: Usage | None,
    *,
    message_id: str | None = None,
    attempt: int = 1,
    metadata: JsonObject | None = None,
) -> UsageRecorded:
    """The ledger row of one attempt; without tokens and cost if the provider counted nothing."""
    tokens = step_tokens(usage, metadata) if usage is not None else ZERO_TOKENS
    return UsageRecorded(
        purpose=purpose,
        provider_id=model.provider_id,
        model_id=model.id,
        message_id=message_id,
        attempt=attempt,
        tokens=tokens,
        cost=float(cost(tokens, usage, model, metadata)) if usage is not None else 0,
    )


def price_at(model: ModelInfo, tokens_input: int) -> Price:
    """The prices of a request with this many input tokens."""
    reached = [tier for tier in model.tiers if tokens_input > tier.above]
    return max(reached, key=lambda tier: tier.above).price if reached else model.price


def _sum(one: Tokens, other: Tokens, times: int) -> Tokens:
    read = one.cache.read + times * other.cache.read
    write = one.cache.write + times * other.cache.write
    return Tokens(
        input=one.input + times * other.input,
        output=one.output + times * other.output,
        reasoning=one.reasoning + times * other.reasoning,
        cache=CacheTokens(read=read, write=write),
    )


def _cache_write(metadata: JsonObject | None) -> int:
    for path in _CACHE_WRITES:
        found = _number(_at(metadata, path))
        if found is not None:
            return int(found)
    return 0


def _at(value: Json, path: tuple[str, ...]) -> Json:
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def _number(value: Json) -> Decimal | None:
    """A finite number that is not negative, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return None
    return _decimal(value)


def _dollars(price: float) -> Decimal:
    """A price; 0 if it is negative or not a number."""
    return _decimal(price) if isfinite(price) and price > 0 else Decimal(0)


def _decimal(value: float) -> Decimal:
    # From its shortest text, so that 0.3 is exactly three tenths.
    return Decimal(str(value))

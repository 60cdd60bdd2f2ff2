"""Usage and cost: tokens by kind, and what they cost, in decimal arithmetic."""

from decimal import Decimal
from math import isfinite
from typing import Final, Literal

from turnkeeper.model.catalog import ModelInfo, Price
from turnkeeper.model.event import UsageRecorded
from turnkeeper.model.session import ZERO_TOKENS, CacheTokens, Tokens
from turnkeeper.model.stream import Usage
from turnkeeper.model.value import Json, JsonObject

COST_DIGITS: Final = 12
"""Dollars are exact to so many decimal places: a token of the cheapest model costs ten thousand times as much."""
_MILLION: Final = Decimal(1_000_000)
_NANO_UNITS_PER_DOLLAR: Final = Decimal(100_000_000_000)

# Where providers that speak a protocol without the field report what they wrote to their cache.
_CACHE_WRITES: Final = (
    ("anthropic", "cacheCreationInputTokens"),
    ("vertex", "cacheCreationInputTokens"),
    ("bedrock", "usage", "cacheWriteInputTokens"),
    ("venice", "usage", "cacheCreationInputTokens"),
)


def add_tokens(one: Tokens, other: Tokens) -> Tokens:
    """The sum by kind. ``total`` is a provider's own figure for one request and is not summed."""
    cache = CacheTokens(read=one.cache.read + other.cache.read, write=one.cache.write + other.cache.write)
    return Tokens(
        input=one.input + other.input,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
        cache=cache,
    )


def add_costs(*dollars: float) -> float:
    """The sum of amounts of dollars, added as decimals: 0.1 and 0.2 are 0.3.

    Sums that an older version added as binary numbers lose their false digits here.
    """
    if all(isinstance(one, int) for one in dollars):
        return sum(dollars)
    return round(float(sum(map(_decimal, dollars), Decimal(0))), COST_DIGITS)


def step_tokens(usage: Usage, metadata: JsonObject | None = None) -> Tokens:
    """One turn's tokens, no token counted under two kinds. Nothing is ever negative, whatever a provider reports."""
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
    """US dollars for one turn. Reasoning costs what output costs.

    A provider that bills by itself (``copilot.totalNanoAiu`` in its metadata) is believed. The row of prices is
    chosen by the whole input as the provider counts it, and holds for every kind of token.
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
    """The row of the ledger for one attempt. If its provider counted nothing, it only says that there was one."""
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
    """The prices that hold for a request with this whole input."""
    reached = [tier for tier in model.tiers if tokens_input > tier.above]
    return max(reached, key=lambda tier: tier.above).price if reached else model.price


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
    """A number that can count something, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not isfinite(value) or value < 0:
        return None
    return _decimal(value)


def _dollars(price: float) -> Decimal:
    """A price that is not a number, or less than nothing, is nothing."""
    return _decimal(price) if isfinite(price) and price > 0 else Decimal(0)


def _decimal(value: float) -> Decimal:
    # By way of its shortest text: 0.3 is three tenths, not the binary number next to it.
    return Decimal(str(value))

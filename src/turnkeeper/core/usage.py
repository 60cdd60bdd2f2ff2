"""Usage: tokens added up by kind."""

from turnkeeper.model.session import CacheTokens, Tokens


def add_tokens(one: Tokens, other: Tokens) -> Tokens:
    """The sum by kind. ``total`` is a provider's own figure for one request and is not summed."""
    cache = CacheTokens(read=one.cache.read + other.cache.read, write=one.cache.write + other.cache.write)
    return Tokens(
        input=one.input + other.input,
        output=one.output + other.output,
        reasoning=one.reasoning + other.reasoning,
        cache=cache,
    )

"""Catalogue: what is known of a model: its limits, prices and what it can read."""

from typing import Literal

from turnkeeper.model.value import JsonObject, Value


class Price(Value):
    """US dollars for a million tokens. Reasoning is billed as output."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class PriceTier(Value):
    """Prices that hold once a request's whole input is larger than ``above`` tokens."""

    above: int
    price: Price


class Limits(Value):
    """Tokens. 0 is unknown."""

    context: int = 0
    input: int = 0
    output: int = 0


class ModelInfo(Value):
    """One model of one provider."""

    provider_id: str
    id: str
    name: str
    api_id: str
    """What the provider calls it in requests; usually ``id``."""
    protocol: str
    """Which wire protocol it speaks: a key of PROVIDERS."""
    limits: Limits = Limits()
    price: Price = Price()
    tiers: tuple[PriceTier, ...] = ()
    modalities: tuple[str, ...] = ("text",)
    """What it can read: ``text``, ``image``, ``pdf``, ``audio``, ``video``."""
    tool_call: bool = True
    reasoning: bool = False
    temperature: bool = True
    interleaved: str | None = None
    """The message field that must carry reasoning back (``reasoning_content``), for models that demand it."""
    family: str | None = None
    released: str | None = None
    status: Literal["active", "alpha", "beta", "deprecated"] = "active"
    options: JsonObject = {}
    variants: JsonObject = {}

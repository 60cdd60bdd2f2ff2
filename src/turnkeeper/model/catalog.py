"""Catalogue: the limits, prices and modalities of a model."""

from typing import Literal

from turnkeeper.model.value import JsonObject, Value


class Price(Value):
    """US dollars for a million tokens. Reasoning is billed as output."""

    input: float = 0
    output: float = 0
    cache_read: float = 0
    cache_write: float = 0


class PriceTier(Value):
    """Prices for requests with more than ``above`` input tokens."""

    above: int
    price: Price


class Limits(Value):
    """Limits in tokens. 0 is unknown."""

    context: int = 0
    input: int = 0
    output: int = 0


class ModelInfo(Value):
    """One model of one provider."""

    provider_id: str
    id: str
    name: str
    api_id: str
    """The model's name in requests; usually ``id``."""
    protocol: str
    """The wire protocol: a key of PROVIDERS."""
    limits: Limits = Limits()
    price: Price = Price()
    tiers: tuple[PriceTier, ...] = ()
    modalities: tuple[str, ...] = ("text",)
    """Accepted inputs: ``text``, ``image``, ``pdf``, ``audio``, ``video``."""
    tool_call: bool = True
    reasoning: bool = False
    temperature: bool = True
    interleaved: str | None = None
    """The message field in which a model demands its reasoning back (``reasoning_content``)."""
    family: str | None = None
    released: str | None = None
    status: Literal["active", "alpha", "beta", "deprecated"] = "active"
    options: JsonObject = {}
    variants: JsonObject = {}

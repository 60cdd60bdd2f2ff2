"""ProviderConfig: the settings of providers and models. The shape of models is that of models.dev.

The text below a field is its documentation: what it means, its default and an example (docs/reference/config.md).
"""

from collections.abc import Mapping
from typing import Literal

import msgspec

from turnkeeper.model.value import JsonObject, Value


def _as_written(name: str) -> str:
    return name


class Setting(Value, rename=_as_written):
    """Base of the objects in a configuration file."""


class PriceConfig(Setting):
    """US dollars for a million tokens."""

    input: float | None = None
    """Read. Example: `3`"""
    output: float | None = None
    """Written, thoughts too. Example: `15`"""
    cache_read: float | None = None
    """Read from the provider's cache. Example: `0.3`"""
    cache_write: float | None = None
    """Written to it. Example: `3.75`"""


class TierSize(Setting):
    """The input size at which a tier begins."""

    type: str = "context"
    """`context`; others are ignored. Example: `"context"`"""
    size: int = 0
    """The whole input is longer than so many tokens. Example: `200000`"""


class TierConfig(PriceConfig):
    """Prices for requests whose input is larger than the tier's size."""

    tier: TierSize = TierSize()
    """Where the tier begins."""


class CostConfig(PriceConfig):
    """A model's prices, with those for long requests."""

    tiers: tuple[TierConfig, ...] | None = None
    """Prices of long requests. Example: `[{"tier": {"size": 200000}, "input": 6}]`"""
    context_over_200k: PriceConfig | None = None
    """Prices above 200,000 tokens, for files that know no tiers."""


class LimitConfig(Setting):
    """Limits in tokens."""

    context: int | None = None
    """The context window. Example: `128000`"""
    input: int | None = None
    """The longest input, if that is less. Example: `100000`"""
    output: int | None = None
    """The longest answer. Example: `8000`"""


class ModalityConfig(Setting):
    """The inputs and outputs of a model."""

    input: tuple[str, ...] | None = None
    """Of `text`, `image`, `pdf`, `audio`, `video`. Example: `["text", "image"]`"""
    output: tuple[str, ...] | None = None
    """Of `text`, `image`, `pdf`, `audio`, `video`. Example: `["text"]`"""


class InterleavedConfig(Setting):
    """The message field in which reasoning is sent back."""

    field: str | None = None
    """In which field of a message. Example: `"reasoning_content"`"""


class RouteConfig(Setting):
    """The protocol or URL of a model, if it differs from its provider's other models."""

    npm: str | None = None
    """Its package. Example: `"@ai-sdk/anthropic"`"""
    api: str | None = None
    """Its address. Example: `"https://models.example/v1"`"""
    protocol: str | None = None
    """Its protocol. Example: `"anthropic"`"""


class ModelConfig(Setting):
    """One model: the shape of models.dev, of our vendored catalogue and of configuration files alike."""

    id: str | None = None
    """What the provider calls it, if that is another name. Example: `"large-2026-01"`"""
    name: str | None = None
    """Its name for people. Example: `"Large"`"""
    family: str | None = None
    """By which defaults are chosen, as `claude-sonnet`. Example: `"claude-sonnet"`"""
    release_date: str | None = None
    """By which the newest is told. Example: `"2026-01-31"`"""
    attachment: bool | None = None
    """Whether it takes files; `modalities` says which, and decides."""
    reasoning: bool | None = None
    """Whether it thinks before it answers."""
    temperature: bool | None = None
    """Whether it takes a temperature; that of an agent is sent only then."""
    tool_call: bool | None = None
    """Whether it calls tools."""
    interleaved: bool | InterleavedConfig | None = None
    """Whether its thoughts must be sent back."""
    cost: CostConfig | None = None
    """US dollars for a million tokens."""
    limit: LimitConfig | None = None
    """Tokens."""
    modalities: ModalityConfig | None = None
    """What it reads and writes."""
    status: Literal["active", "alpha", "beta", "deprecated"] | None = None
    """`active`, `alpha`, `beta` or `deprecated`."""
    options: JsonObject | None = None
    """Options of every request to it. Example: `{"reasoningEffort": "low"}`"""
    variants: JsonObject | None = None
    """Sets of options by name, chosen with the model. Example: `{"high": {"reasoningEffort": "high"}}`"""
    provider: RouteConfig | None = None
    """Another way to this model than to its provider's others."""


class ProviderOptions(Setting):
    """The key, URL, headers and timeouts of a provider. ``repr`` hides the key."""

    api_key: str | None = msgspec.field(default=None, name="apiKey")
    """Its key; better kept in a variable or by `turnkeeper auth login`. Example: `"{env:LOCAL_KEY}"`"""
    base_url: str | None = msgspec.field(default=None, name="baseURL")
    """Its address, with the version: `https://host/v1`; stronger than `api`. Example: `"http://127.0.0.1:8080/v1"`"""
    headers: Mapping[str, str] | None = None
    """Further headers. Example: `{"x-team": "tides"}`"""
    timeout: int | float | Literal[False] | None = None
    """Milliseconds for a whole answer; `false`: no limit, as if not set. Example: `600000`"""
    header_timeout: int | float | Literal[False] | None = msgspec.field(default=None, name="headerTimeout")
    """Milliseconds until an answer begins; `false`: no limit; 300000 if not set. Example: `60000`"""
    chunk_timeout: int | float | Literal[False] | None = msgspec.field(default=None, name="chunkTimeout")
    """Milliseconds between two pieces of an answer; `false`: no limit; 600000 if not set. Example: `120000`"""

    def __repr__(self) -> str:
        return f"ProviderOptions(base_url={self.base_url!r}, api_key={'set' if self.api_key else 'not set'})"


class ProviderConfig(Setting):
    """A provider: a new one, or changes to one of the catalogue."""

    npm: str | None = None
    """The package by which opencode's files say the same, as `@ai-sdk/openai-compatible`. Example:
    `"@ai-sdk/openai-compatible"`
    """
    protocol: str | None = None
    """What it speaks: `anthropic`, `openai-chat`, `openai-responses` or `gemini`. Example: `"openai-chat"`"""
    name: str | None = None
    """Its name for people. Example: `"Our server"`"""
    api: str | None = None
    """Its address, if it is not the catalogue's. Example: `"https://models.example/v1"`"""
    env: tuple[str, ...] | None = None
    """The variables that may hold its key. Example: `["LOCAL_KEY"]`"""
    options: ProviderOptions = ProviderOptions()
    """How to reach it; keys that are not listed here are handed to the protocol. Example: `{"baseURL":
    "http://127.0.0.1:8080/v1"}`
    """
    own_options: JsonObject = msgspec.field(default={}, name="$options")
    """Other keys under ``options`` in the file, which the protocol reads."""
    models: dict[str, ModelConfig] = {}
    """Its models by name. Example: `{"large": {"limit": {"context": 128000, "output": 8000}}}`"""
    whitelist: tuple[str, ...] | None = None
    """Only these models. Example: `["large"]`"""
    blacklist: tuple[str, ...] | None = None
    """Not these models. Example: `["tiny"]`"""

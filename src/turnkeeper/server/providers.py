"""Providers and models as clients receive them, without keys, headers and options, which may be secret."""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

import msgspec

from turnkeeper.model.catalog import ModelInfo, Price
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.providers import choice
from turnkeeper.providers.catalog import Catalog, ProviderInfo
from turnkeeper.workspace.auth import Credentials

PACKAGES: Final[Mapping[str, str]] = {
    "anthropic": "@ai-sdk/anthropic",
    "gemini": "@ai-sdk/google",
    "openai-chat": "@ai-sdk/openai-compatible",
    "openai-responses": "@ai-sdk/openai",
}
"""The npm package by which clients identify a protocol."""


class ModelApi(Value):
    """How clients identify a model's API. The URL is not sent."""

    id: str
    url: str
    npm: str


class MediaSupport(Value):
    """The media types that a model reads or writes."""

    text: bool
    audio: bool
    image: bool
    video: bool
    pdf: bool


class Interleaved(Value):
    """The message field that carries reasoning back to the model."""

    field: str


class Capabilities(Value):
    """What a model can do."""

    temperature: bool
    reasoning: bool
    attachment: bool
    toolcall: bool
    input: MediaSupport
    output: MediaSupport
    interleaved: Interleaved | bool


class CacheCost(Value):
    """Dollars for a million cached tokens."""

    read: float
    write: float


class TierSize(Value):
    """The context size from which a price tier applies."""

    type: Literal["context"]
    size: int


class TierCost(Value):
    """Prices for requests of this tier."""

    input: float
    output: float
    cache: CacheCost
    tier: TierSize


class Cost(Value):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache: CacheCost
    tiers: tuple[TierCost, ...] | None = None


class Limit(Value):
    """Limits of a model in tokens."""

    context: int
    input: int | None = None
    output: int


class Model(Value):
    """A model as clients receive it."""

    id: str
    provider_id: str
    api: ModelApi
    name: str
    family: str
    capabilities: Capabilities
    cost: Cost
    limit: Limit
    status: Literal["alpha", "beta", "deprecated", "active"]
    options: JsonObject
    headers: Mapping[str, str]
    release_date: str = msgspec.field(name="release_date")
    variants: JsonObject


class ProviderEntry(Value):
    """A provider as clients receive it."""

    id: str
    name: str
    source: Literal["env", "config", "custom", "api"]
    env: tuple[str, ...]
    options: JsonObject
    models: Mapping[str, Model]


class ConfiguredProviders(Value):
    """The providers that can be used, and the default model of each."""

    providers: tuple[ProviderEntry, ...]
    default: Mapping[str, str]


class AllProviders(Value):
    """Every provider, and the ids of those that can be used; the others are sent without models."""

    all: tuple[ProviderEntry, ...]
    default: Mapping[str, str]
    connected: tuple[str, ...]


def configured(catalog: Catalog, credentials: Credentials) -> ConfiguredProviders:
    """The providers that can be used."""
    usable = choice.available(catalog, credentials)
    return ConfiguredProviders(
        providers=tuple(_provider(one, credentials) for one in usable), default=_defaults(usable)
    )


def every(catalog: Catalog, credentials: Credentials) -> AllProviders:
    """All providers that the settings allow; those that can be used have their models."""
    usable = {one.id: one for one in choice.available(catalog, credentials)}
    return AllProviders(
        all=tuple(
            _provider(usable[name], credentials) if name in usable else _closed(catalog, name)
            for name in catalog.providers()
        ),
        default=_defaults(usable.values()),
        connected=tuple(usable),
    )


def _defaults(usable: Iterable[ProviderInfo]) -> dict[str, str]:
    return {one.id: model.id for one in usable if (model := choice.best(one)) is not None}


def _closed(catalog: Catalog, provider_id: str) -> ProviderEntry:
    """A provider without a key. Its models are not read: there are thousands, and they cannot be used."""
    return ProviderEntry(
        id=provider_id,
        name=catalog.title(provider_id),
        source="custom",
        env=catalog.variables(provider_id),
        options={},
        models={},
    )


def _provider(info: ProviderInfo, credentials: Credentials) -> ProviderEntry:
    found = choice.key(info, credentials)
    if info.configured:
        source: Literal["env", "config", "custom", "api"] = "config"
    elif found is None:
        source = "custom"
    else:
        source = "env" if found.origin.startswith("environment") else "api"
    return ProviderEntry(
        id=info.id,
        name=info.name,
        source=source,
        env=info.env,
        options={},
        models={name: _model(one) for name, one in info.models.items()},
    )


def _model(info: ModelInfo) -> Model:
    reads = frozenset(info.modalities)
    return Model(
        id=info.id,
        provider_id=info.provider_id,
        api=ModelApi(id=info.api_id, url="", npm=PACKAGES.get(info.protocol, info.protocol)),
        name=info.name,
        family=info.family or "",
        capabilities=Capabilities(
            temperature=info.temperature,
            reasoning=info.reasoning,
            attachment=bool(reads - {"text"}),
            toolcall=info.tool_call,
            input=MediaSupport(
                text=True, audio="audio" in reads, image="image" in reads, video="video" in reads, pdf="pdf" in reads
            ),
            output=MediaSupport(text=True, audio=False, image=False, video=False, pdf=False),
            interleaved=Interleaved(field=info.interleaved) if info.interleaved else False,
        ),
        cost=_cost(info),
        limit=Limit(context=info.limits.context, input=info.limits.input or None, output=info.limits.output),
        status=info.status,
        options={},
        headers={},
        release_date=info.released or "",
        variants=info.variants,
    )


def _cost(info: ModelInfo) -> Cost:
    tiers = tuple(
        TierCost(
            input=one.price.input,
            output=one.price.output,
            cache=_cache(one.price),
            tier=TierSize(type="context", size=one.above),
        )
        for one in info.tiers
    )
    return Cost(input=info.price.input, output=info.price.output, cache=_cache(info.price), tiers=tiers or None)


def _cache(price: Price) -> CacheCost:
    return CacheCost(read=price.cache_read, write=price.cache_write)

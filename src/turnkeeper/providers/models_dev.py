"""models.dev: the format of the catalogue, reduced to the fields in use, and its conversion to ModelInfo.

The shipped snapshot, a refreshed one and the ``provider`` section of a configuration file have this format.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from turnkeeper.model.catalog import Limits, ModelInfo, Price, PriceTier
from turnkeeper.model.config import CostConfig, InterleavedConfig, LimitConfig, ModelConfig, PriceConfig, Setting
from turnkeeper.model.refusal import Invalid


class SdkRoute(NamedTuple):
    """The protocol and base URL of an AI SDK package, by which models.dev and opencode name protocols."""

    protocol: str
    base_url: str | None = None


ROUTES: Final[Mapping[str, SdkRoute]] = {
    "@ai-sdk/anthropic": SdkRoute("anthropic", "https://api.anthropic.com/v1"),
    "@ai-sdk/openai": SdkRoute("openai-responses", "https://api.openai.com/v1"),
    "@ai-sdk/google": SdkRoute("gemini", "https://generativelanguage.googleapis.com/v1beta"),
    "@ai-sdk/azure": SdkRoute("openai-responses", "https://${AZURE_RESOURCE_NAME}.openai.azure.com/openai/v1"),
    "@ai-sdk/openai-compatible": SdkRoute("openai-chat"),
    "@ai-sdk/cerebras": SdkRoute("openai-chat", "https://api.cerebras.ai/v1"),
    "@ai-sdk/cohere": SdkRoute("openai-chat", "https://api.cohere.ai/compatibility/v1"),
    "@ai-sdk/deepinfra": SdkRoute("openai-chat", "https://api.deepinfra.com/v1/openai"),
    "@ai-sdk/gateway": SdkRoute("openai-chat", "https://ai-gateway.vercel.sh/v1"),
    "@ai-sdk/groq": SdkRoute("openai-chat", "https://api.groq.com/openai/v1"),
    "@ai-sdk/mistral": SdkRoute("openai-chat", "https://api.mistral.ai/v1"),
    "@ai-sdk/perplexity": SdkRoute("openai-chat", "https://api.perplexity.ai"),
    "@ai-sdk/togetherai": SdkRoute("openai-chat", "https://api.together.xyz/v1"),
    "@ai-sdk/vercel": SdkRoute("openai-chat", "https://api.v0.dev/v1"),
    "@ai-sdk/xai": SdkRoute("openai-chat", "https://api.x.ai/v1"),
    "@aihubmix/ai-sdk-provider": SdkRoute("openai-chat", "https://aihubmix.com/v1"),
    "@openrouter/ai-sdk-provider": SdkRoute("openai-chat", "https://openrouter.ai/api/v1"),
    "venice-ai-sdk-provider": SdkRoute("openai-chat", "https://api.venice.ai/api/v1"),
}
"""The supported AI SDK packages. Providers with another package are left out of the catalogue."""

_OVER_200K: Final = 200_000


class CatalogueProvider(Setting):
    """One provider of the catalogue."""

    name: str
    npm: str
    env: tuple[str, ...] = ()
    api: str | None = None
    models: dict[str, ModelConfig] = {}


def reduced(raw: bytes) -> bytes:
    """A models.dev download reduced to supported providers, models with text output and the fields in use."""
    try:
        everything = msgspec.json.decode(raw, type=dict[str, CatalogueProvider])
    except msgspec.DecodeError as error:
        raise Invalid(f"this is no models.dev catalogue: {error}") from error
    kept = {
        provider_id: entry.but(models={key: _slim(model, key) for key, model in entry.models.items() if _usable(model)})
        for provider_id, entry in everything.items()
        if entry.npm in ROUTES
    }
    return msgspec.json.encode({key: entry for key, entry in kept.items() if entry.models}, order="deterministic")


def model_info(provider_id: str, key: str, model: ModelConfig, protocol: str) -> ModelInfo:
    """The ModelInfo of a catalogue entry. ``protocol`` is the provider's; the model may have its own."""
    limit, cost = model.limit or LimitConfig(), model.cost or CostConfig()
    modalities = (model.modalities.input if model.modalities else None) or ("text",)
    return ModelInfo(
        provider_id=provider_id,
        id=key,
        name=model.name or key,
        api_id=model.id or key,
        protocol=own_protocol(model) or protocol,
        limits=Limits(context=limit.context or 0, input=limit.input or 0, output=limit.output or 0),
        price=price(cost),
        tiers=tiers(cost),
        modalities=modalities,
        tool_call=model.tool_call is not False,
        reasoning=bool(model.reasoning),
        temperature=bool(model.temperature),
        interleaved=model.interleaved.field if isinstance(model.interleaved, InterleavedConfig) else None,
        family=model.family,
        released=model.release_date,
        status=model.status or "active",
        options=model.options or {},
        variants=model.variants or {},
    )


def own_protocol(model: ModelConfig) -> str | None:
    """The protocol of a model, if it differs from its provider's."""
    route = model.provider
    if route is None:
        return None
    known = ROUTES.get(route.npm or "")
    return route.protocol or (known.protocol if known else None)


def price(cost: PriceConfig) -> Price:
    """The Price of a catalogue row; a missing price is zero."""
    return Price(
        input=cost.input or 0,
        output=cost.output or 0,
        cache_read=cost.cache_read or 0,
        cache_write=cost.cache_write or 0,
    )


def tiers(cost: CostConfig) -> tuple[PriceTier, ...]:
    """The price tiers of long requests, shortest first.

    models.dev repeats the first tier, of any size, as ``context_over_200k`` for readers without tiers. That copy is
    ignored: it would apply to shorter requests than the tier.
    """
    found = {row.tier.size: price(row) for row in cost.tiers or () if row.tier.type == "context"}
    if cost.context_over_200k is not None and (over := price(cost.context_over_200k)) not in found.values():
        found.setdefault(_OVER_200K, over)
    return tuple(PriceTier(above=size, price=row) for size, row in sorted(found.items()))


def _usable(model: ModelConfig) -> bool:
    own = model.provider
    speaks = own is None or own.npm is None or own.npm in ROUTES
    return speaks and model.modalities is not None and "text" in (model.modalities.output or ())


def _slim(model: ModelConfig, key: str) -> ModelConfig:
    inputs = model.modalities.input if model.modalities else None
    return model.but(
        id=None if model.id == key else model.id,
        attachment=None,
        status=None if model.status == "active" else model.status,
        reasoning=model.reasoning or None,
        temperature=model.temperature or None,
        tool_call=None if model.tool_call else False,
        modalities=None if inputs == ("text",) or model.modalities is None else model.modalities.but(output=None),
        provider=model.provider if own_protocol(model) or (model.provider and model.provider.api) else None,
    )

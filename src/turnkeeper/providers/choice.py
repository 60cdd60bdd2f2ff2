"""Choice: the default model, the small model for titles, and the endpoint of a model."""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal

from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.config import Config
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.refusal import NotFound
from turnkeeper.providers.catalog import OFFLINE, Catalog, ProviderInfo
from turnkeeper.providers.endpoint import Endpoint, Timeouts
from turnkeeper.workspace.auth import Credentials, FoundKey

PREFERRED: Final = ("anthropic", "openai", "google", "openrouter", "opencode")
"""The order of providers for the default model. Others follow by name."""

FAMILIES: Final = ("claude-sonnet", "claude-opus", "gpt", "gpt-codex", "gemini-pro", "kimi", "glm", "qwen", "deepseek")
"""The order of model families for the default model."""

SMALL_FAMILIES: Final = ("gemini-flash", "gpt-nano", "claude-haiku")
SMALL_FAMILIES_BY_PROVIDER: Final[Mapping[str, tuple[str, ...]]] = {
    "opencode": ("gpt-nano",),
    "github-copilot": ("gpt-mini", *SMALL_FAMILIES),
    # The owner of an Azure deployment chooses its name, so no model can be assumed to exist.
    "azure": (),
    "azure-cognitive-services": (),
}

# Tokens that users set for other programs: their provider can be used, but does not become the default.
_SHARED: Final = frozenset({"GITHUB_TOKEN", "GITLAB_TOKEN", "HF_TOKEN", "DIGITALOCEAN_ACCESS_TOKEN"})


def key(provider: ProviderInfo, credentials: Credentials) -> FoundKey | None:
    """The API key of a provider, and its origin."""
    return credentials.key(provider.id, provider.env, provider.options.api_key)


def available(catalog: Catalog, credentials: Credentials) -> list[ProviderInfo]:
    """The usable providers: those with a key, those with a configured base URL, and the offline one."""
    candidates = [each for each in catalog.providers() if _is_candidate(catalog, each, credentials)]
    return [each for each in map(catalog.provider, candidates) if _is_usable(each, credentials)]


def default_model(catalog: Catalog, config: Config, credentials: Credentials) -> ModelInfo:
    """The configured ``model``, else the best model of a usable provider, else the offline model.

    Raises NotFound if the configured model does not exist.
    """
    if config.model:
        return catalog.named(config.model)
    usable = [provider for provider in available(catalog, credentials) if provider.id != OFFLINE.provider_id]
    for provider in sorted(usable, key=_preference):
        found = key(provider, credentials)
        if found and found.origin.rpartition(" ")[2] in _SHARED:
            continue
        if model := best(provider):
            return model
    return OFFLINE


def small_model(catalog: Catalog, config: Config, provider_id: str) -> ModelInfo | None:
    """A cheap model for titles: the configured ``small_model``, else the newest of a small family, else None."""
    try:
        if config.small_model:
            return catalog.named(config.small_model)
        models = catalog.provider(provider_id).models.values()
    except NotFound:
        return None
    families = SMALL_FAMILIES_BY_PROVIDER.get(provider_id, SMALL_FAMILIES)
    return _newest_of(families, [model for model in models if model.status == "active"])


def find(catalog: Catalog, wanted: ModelChoice) -> ModelInfo:
    """A model of the catalogue, with its variant's options. Raises NotFound, which suggests similar ids."""
    if wanted.provider_id == OFFLINE.provider_id and wanted.model_id == OFFLINE.id:
        return OFFLINE
    model = catalog.find(wanted.provider_id, wanted.model_id)
    variant = model.variants.get(wanted.variant) if wanted.variant else None
    return model.but(options={**model.options, **variant}) if isinstance(variant, dict) else model


def endpoint(provider: ProviderInfo, model: ModelInfo, credentials: Credentials) -> Endpoint:
    """The endpoint of a model. Raises Invalid if its base URL needs a variable that is not set."""
    found = key(provider, credentials)
    options = provider.options
    offline = model.protocol == OFFLINE.protocol
    base_url = None if offline else _address(provider, model, credentials)
    return Endpoint(
        protocol=model.protocol,
        provider_id=provider.id,
        base_url=base_url,
        api_key=found.secret if found else None,
        key_required=bool(provider.env) and options.base_url is None and not _is_local(base_url or ""),
        headers=dict(options.headers or {}),
        options=provider.own_options,
        timeouts=Timeouts(
            first_byte_s=_seconds(options.header_timeout, Timeouts().first_byte_s),
            idle_s=_seconds(options.chunk_timeout, Timeouts().idle_s),
            total_s=_seconds(options.timeout, Timeouts().total_s),
        ),
    )


def _address(provider: ProviderInfo, model: ModelInfo, credentials: Credentials) -> str:
    """The base URL: from the configuration, else a variable such as ``OPENAI_BASE_URL``, else the catalogue."""
    variable = f"{provider.id.upper().replace('-', '_')}_BASE_URL"
    named = credentials.environ.get(variable, "").strip()
    if named and provider.options.base_url is None:
        return named.rstrip("/")
    return provider.base_url(model.protocol, credentials.environ)


def _is_candidate(catalog: Catalog, provider_id: str, credentials: Credentials) -> bool:
    """Whether a provider may be usable, decided without decoding its models."""
    if provider_id in (*credentials.stored, OFFLINE.provider_id) or catalog.is_configured(provider_id):
        return True
    return any(credentials.environ.get(name) for name in catalog.variables(provider_id))


def _is_usable(provider: ProviderInfo, credentials: Credentials) -> bool:
    if provider.id == OFFLINE.provider_id or key(provider, credentials) is not None:
        return True
    return provider.configured and bool(provider.models) and provider.options.base_url is not None


def _preference(provider: ProviderInfo) -> tuple[int, int]:
    """The sort key of a provider: configured ones first, then by PREFERRED; sorting keeps the order of equal keys."""
    if provider.configured:
        return (0, 0)
    return (1, PREFERRED.index(provider.id) if provider.id in PREFERRED else len(PREFERRED))


def best(provider: ProviderInfo) -> ModelInfo | None:
    """The default model of a provider; None if it has no models."""
    models = list(provider.models.values())
    able = [model for model in models if model.tool_call and model.status == "active"]
    if provider.configured and not any(model.released for model in models):
        return next(iter(able or models), None)  # All models are configured by hand: the first one is the default.
    return _newest_of(FAMILIES, able) or _newest(able) or next(iter(models), None)


def _newest_of(families: Iterable[str], models: list[ModelInfo]) -> ModelInfo | None:
    found = (_newest([model for model in models if model.family == family]) for family in families)
    return next((model for model in found if model is not None), None)


def _newest(models: list[ModelInfo]) -> ModelInfo | None:
    # Of equally new models the shorter name: the one without a date or a variant.
    return min(sorted(models, key=lambda model: (len(model.id), model.id)), key=_age, default=None)


def _age(model: ModelInfo) -> tuple[int, ...]:
    return tuple(-int(number) for number in re.findall(r"\d+", model.released or "0"))


def _is_local(url: str) -> bool:
    return re.match(r"https?://(localhost|127\.|\[::1\])", url) is not None


def _seconds(milliseconds: float | Literal[False] | None, default: float | None) -> float | None:
    if milliseconds is None:
        return default
    return None if milliseconds is False or milliseconds <= 0 else milliseconds / 1000

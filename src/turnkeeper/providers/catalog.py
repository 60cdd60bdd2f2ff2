"""Catalogue: the providers and models that can be used, with addresses and prices.

A snapshot of models.dev is shipped in ``data/``. A newer one fetched by ``refresh`` replaces it, and the configuration
adds to it and overrides it. Only ``refresh`` uses the network. Each provider is decoded on first use.
"""

import gzip
import re
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

import msgspec

from turnkeeper.core.settings import merged
from turnkeeper.model.catalog import Limits, ModelInfo
from turnkeeper.model.config import Config, ModelConfig, ProviderConfig, ProviderOptions, Setting
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.providers.models_dev import ROUTES, CatalogueProvider, SdkRoute, model_info, own_protocol

OFFLINE: Final = ModelInfo(
    provider_id="offline",
    id="tk-1",
    name="Offline stand-in",
    api_id="tk-1",
    protocol="offline",
    limits=Limits(context=200_000, output=8_000),
    reasoning=True,
    temperature=False,
    released="2025-01-01",
)
"""The rule-based model, available without network and key."""

_ADDRESSES: Final = {
    "azure-cognitive-services": "https://${AZURE_COGNITIVE_SERVICES_RESOURCE_NAME}.cognitiveservices.azure.com/openai/v1"
}


class ProviderInfo(Value):
    """A provider: its models and how to reach it. ``repr`` leaves out headers, which may hold secrets."""

    id: str
    name: str
    protocol: str
    """The protocol of its models, unless a model has its own."""
    env: tuple[str, ...] = ()
    """The environment variables that may hold its API key."""
    models: dict[str, ModelInfo]
    urls: dict[str, str] = {}
    """The base URL by protocol; may contain ``${VARIABLE}``."""
    options: ProviderOptions = ProviderOptions()
    own_options: JsonObject = {}
    """Configured options without a meaning of their own here; the codec reads them."""
    configured: bool = False
    """Whether the configuration has an entry for it."""

    def __repr__(self) -> str:
        return f"ProviderInfo(id={self.id!r}, protocol={self.protocol!r}, models={len(self.models)})"

    def base_url(self, protocol: str, environ: Mapping[str, str]) -> str:
        """The base URL for requests. Raises Invalid if there is none, or a variable in it is not set."""
        url = self.options.base_url or self.urls.get(protocol)
        if not url:
            raise Invalid(f"provider {self.id!r} has no address; set provider.{self.id}.options.baseURL")

        def value(variable: re.Match[str]) -> str:
            if not environ.get(variable[1]):
                raise Invalid(f"provider {self.id!r} needs the environment variable {variable[1]}")
            return environ[variable[1]]

        return re.sub(r"\$\{(\w+)\}", value, url).rstrip("/")


class _Head(Setting):
    """The fields of a catalogue entry that are read without decoding its models."""

    name: str = ""
    env: tuple[str, ...] = ()


class Catalog:
    """All providers and models that the configuration allows."""

    def __init__(self, config: Config, *, refreshed: Path | None = None) -> None:
        self._config = config
        self._entries = _snapshot(refreshed) if refreshed else _shipped()
        offline = ProviderInfo(
            id=OFFLINE.provider_id, name="Offline", protocol=OFFLINE.protocol, models={OFFLINE.id: OFFLINE}
        )
        self._known: dict[str, ProviderInfo] = {offline.id: offline}
        self._key_variables: frozenset[str] | None = None

    def providers(self) -> tuple[str, ...]:
        """The ids of all providers: configured ones first, in the configuration's order, then the others by name."""
        ids = dict.fromkeys([*self._config.provider, *sorted(self._entries), OFFLINE.provider_id])
        return tuple(provider_id for provider_id in ids if self._allows(provider_id))

    def provider(self, provider_id: str) -> ProviderInfo:
        """One provider. Raises NotFound, which suggests similar ids."""
        if provider_id not in self._known:
            if provider_id not in self.providers():
                raise NotFound(f"there is no provider {provider_id!r}{_like(provider_id, self.providers())}")
            entry = self._entries.get(provider_id)
            shipped = msgspec.json.decode(entry, type=CatalogueProvider) if entry else None
            self._known[provider_id] = _provider(provider_id, shipped, self._config.provider.get(provider_id))
        return self._known[provider_id]

    def is_configured(self, provider_id: str) -> bool:
        """Whether the configuration has an entry for a provider."""
        return provider_id in self._config.provider

    def variables(self, provider_id: str) -> tuple[str, ...]:
        """The environment variables of a provider in the snapshot, without decoding its models."""
        entry = self._entries.get(provider_id)
        return msgspec.json.decode(entry, type=_Head).env if entry else ()

    def key_variables(self) -> frozenset[str]:
        """The environment variables of all providers."""
        if self._key_variables is None:
            given = (one.env or () for one in self._config.provider.values())
            self._key_variables = frozenset(
                name for names in (*map(self.variables, self._entries), *given) for name in names
            )
        return self._key_variables

    def title(self, provider_id: str) -> str:
        """The display name of a provider, without decoding its models."""
        given, entry = self._config.provider.get(provider_id), self._entries.get(provider_id)
        named = given.name if given is not None else None
        return named or (msgspec.json.decode(entry, type=_Head).name if entry else "") or provider_id

    def find(self, provider_id: str, model_id: str) -> ModelInfo:
        """One model. Raises NotFound, which suggests similar ids."""
        models = self.provider(provider_id).models
        if model_id not in models:
            raise NotFound(f"provider {provider_id!r} has no model {model_id!r}{_like(model_id, models)}")
        return models[model_id]

    def named(self, name: str) -> ModelInfo:
        """One model by ``provider/model``. Raises NotFound, which suggests similar ids."""
        provider_id, slash, model_id = name.partition("/")
        if not slash or not model_id:
            raise NotFound(f"{name!r} names no model; write it as provider/model{_like(name, self.providers())}")
        return self.find(provider_id, model_id)

    def _allows(self, provider_id: str) -> bool:
        enabled = self._config.enabled_providers
        return provider_id not in self._config.disabled_providers and (enabled is None or provider_id in enabled)


def _provider(provider_id: str, entry: CatalogueProvider | None, config: ProviderConfig | None) -> ProviderInfo:
    given = config or ProviderConfig()
    # An unknown npm package is most likely an SDK for a host with the OpenAI chat protocol.
    route = ROUTES.get(given.npm or (entry.npm if entry else ""), SdkRoute("openai-chat"))
    protocol = given.protocol or route.protocol
    default = given.api or (entry.api if entry else None) or _ADDRESSES.get(provider_id) or route.base_url
    models = _models(entry.models if entry else {}, given)
    spoken = {own_protocol(model) or protocol for model in models.values()} | {protocol}
    urls = dict.fromkeys(sorted(spoken), default) if default else {}
    for model in models.values():
        if model.provider and model.provider.api:
            urls[own_protocol(model) or protocol] = model.provider.api
    return ProviderInfo(
        id=provider_id,
        name=given.name or (entry.name if entry else provider_id),
        protocol=protocol,
        env=_keys(given.env if given.env is not None else entry.env if entry else ()),
        models={key: model_info(provider_id, key, model, protocol) for key, model in models.items()},
        urls=urls,
        options=given.options,
        own_options=given.own_options,
        configured=config is not None,
    )


def _models(shipped: Mapping[str, ModelConfig], given: ProviderConfig) -> dict[str, ModelConfig]:
    """The models of the catalogue with the configuration's overrides, then the models that are only configured."""
    models = dict(shipped)
    for key, changes in given.models.items():
        # A configured model may be an alias of a catalogue model, named by ``id``.
        before = models.get(key) or models.get(changes.id or "") or ModelConfig()
        both = merged([msgspec.to_builtins(before), msgspec.to_builtins(changes)])
        models[key] = msgspec.convert(both, ModelConfig)
    return {
        key: model
        for key, model in models.items()
        if (given.whitelist is None or key in given.whitelist) and key not in (given.blacklist or ())
    }


def _keys(variables: tuple[str, ...]) -> tuple[str, ...]:
    """The variables that hold an API key; the others, such as a region or a host, are part of the base URL."""
    keys = tuple(name for name in variables if re.search(r"KEY|TOKEN|SECRET|_PAT$", name))
    return keys or variables


def _like(name: str, names: Mapping[str, object] | tuple[str, ...]) -> str:
    from difflib import get_close_matches  # Imported here: only error messages need it.

    lower = {known.lower(): known for known in names}
    near = get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    near += [known for known in lower if name and name.lower() in known and known not in near][: 3 - len(near)]
    return f"; did you mean {' or '.join(repr(lower[each]) for each in near)}?" if near else ""


@cache
def _shipped() -> dict[str, msgspec.Raw]:
    return _read(Path(__file__).parent / "data" / "models.json.gz")


def _snapshot(refreshed: Path) -> dict[str, msgspec.Raw]:
    """The catalogue that ``refresh`` fetched; the shipped one if that is missing or damaged."""
    try:
        return _read(refreshed)
    except (OSError, EOFError, zlib.error, msgspec.DecodeError):
        return _shipped()


def _read(packed: Path) -> dict[str, msgspec.Raw]:
    content = packed.read_bytes()
    plain = gzip.decompress(content) if content.startswith(b"\x1f\x8b") else content
    return msgspec.json.decode(plain, type=dict[str, msgspec.Raw])

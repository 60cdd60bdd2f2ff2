"""The commands about models: the list of them, and the catalogue of the current directory."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from turnkeeper.cli.failures import UsageError
from turnkeeper.cli.local_help import LOCAL_HELP
from turnkeeper.cli.options import Options
from turnkeeper.cli.output import answer_items, remark
from turnkeeper.cli.plugged import catalog_of, plugged_directory
from turnkeeper.cli.screen import Column, Screen, harmless, size, table
from turnkeeper.core import flags
from turnkeeper.model.refusal import Invalid, NotFound

if TYPE_CHECKING:
    from turnkeeper.model.catalog import ModelInfo
    from turnkeeper.model.config import Config
    from turnkeeper.providers.catalog import Catalog, ProviderInfo
    from turnkeeper.workspace.config import LoadedSettings


async def models(
    provider: Annotated[
        str | None, Parameter(metavar="PROVIDER", help="Only this provider, with or without a key.")
    ] = None,
    /,
    *,
    search: Annotated[
        str | None,
        Parameter(metavar="TEXT", help="Models of all providers that have these words in id, name or provider."),
    ] = None,
    refresh: Annotated[
        str | None, Parameter(metavar="URL", help="First fetch the catalogue of models.dev from here.")
    ] = None,
    fetch: Annotated[
        bool, Parameter(help="First fetch the catalogue from `catalog.url`; also OPENCODE_MODELS_URL.")
    ] = False,
    options: Options,
) -> None:
    """List the models that can be used, and where each provider's key is from.

    A provider is listed if it has a key, or a URL in the configuration. The
    default model answers prompts that name none; the small model writes titles.
    Prices are dollars per million tokens. Nothing is fetched without --refresh
    or --fetch. With --json the answer is {"items": [{"id", "name", "key",
    "models"}], "default", "small"}: the providers, and "key" is where the key was
    found, or null. There is no "default" if the configured model does not exist.

    --search looks through the whole catalogue, with or without keys, and gives
    the nearest ids if nothing fits. Its JSON is {"items": [{"id", "name",
    "provider", "key", "status", "context", "price"}], "search", "fits"}.

    For example:
      turnkeeper models
      turnkeeper models anthropic
      turnkeeper models --search "sonnet 4"
      turnkeeper models default anthropic/claude-sonnet-4-5
      turnkeeper models --json | jq -r '.items[].models[].id'
    """
    from turnkeeper.providers import refresh as catalogue

    if fetch and refresh is None:
        refresh = catalogue.address((await local_catalog(options.environ))[0].catalog.url, options.environ)
    if refresh is not None:
        if flags.DISABLE_MODELS_FETCH.is_on(options.environ):
            raise Invalid(f"{flags.DISABLE_MODELS_FETCH.names[0]} is set, so no catalogue is fetched; unset it")
        fetched = await catalogue.refresh(refresh, catalogue.location(options.environ))
        remark(options, f"Fetched the catalogue: {size(fetched)}.")
    if search is not None:
        await _search(search, provider, options)
        return
    usable = _Usable(*await local_catalog(options.environ), options.environ, provider)
    answer_items(options, usable.rows(), usable.text, default=usable.default, small=usable.small)
    if usable.problem is not None:
        remark(options, usable.problem)
    if not usable.has_keys:
        remark(options, "Only the offline model needs no key. `turnkeeper auth login PROVIDER` stores one.")


async def _search(text: str, provider: str | None, options: Options) -> None:
    from turnkeeper.providers import choice
    from turnkeeper.providers.model_search import search
    from turnkeeper.workspace import auth

    if not text.split():
        raise UsageError("--search needs a word")
    _, catalog = await local_catalog(options.environ)
    credentials = auth.credentials(options.environ)
    usable = [one.id for one in choice.available(catalog, credentials)]
    # Models that can be used come first, then those of the providers that most people use.
    known = catalog.providers()
    everywhere = dict.fromkeys([*usable, *(one for one in choice.PREFERRED if one in known), *known])
    providers = [provider] if provider is not None else list(everywhere)
    found = search(catalog, text, providers)
    keys = {one: choice.key(catalog.provider(one), credentials) for one in {each.provider_id for each in found.models}}
    origins = {name: key.origin if key else None for name, key in keys.items()}
    if not found.fits:
        near = "; these are the nearest" if found.models else ", and none is near"
        remark(options, f"No model has {text!r}{near}.")
    models = [_found(one, origins[one.provider_id]) for one in found.models]
    answer_items(
        options, models, lambda screen: _found_table(screen, found.models, usable), search=text, fits=found.fits
    )
    if any(one.provider_id not in usable for one in found.models):
        remark(options, "Where KEY is empty, `turnkeeper auth login PROVIDER` stores one.")


def _found(model: "ModelInfo", origin: str | None) -> dict[str, object]:
    return {
        "id": _name(model),
        "name": model.name,
        "provider": model.provider_id,
        "key": origin,
        "status": model.status,
        "context": model.limits.context,
        "price": {"input": model.price.input, "output": model.price.output},
    }


def _found_table(screen: Screen, models: "Sequence[ModelInfo]", usable: Sequence[str]) -> str:
    return table(
        screen,
        Column("MODEL", [harmless(_name(one)) for one in models], ("cyan",)),
        Column("KEY", ["yes" if one.provider_id in usable else "" for one in models], ("green",)),
        Column("", [one.status if one.status != "active" else "" for one in models], ("dim",)),
        *_facts(models),
    )


def _facts(models: "Sequence[ModelInfo]") -> list[Column]:
    """The columns of limits, prices and names."""
    return [
        Column("CONTEXT", [_tokens(one.limits.context) for one in models]),
        Column("INPUT", [_price(one.price.input) for one in models]),
        Column("OUTPUT", [_price(one.price.output) for one in models]),
        Column("NAME", [harmless(one.name) for one in models], ("dim",), least=12, is_optional=True),
    ]


models_app = App(name="models", version_flags=(), default_command=models, help_formatter=LOCAL_HELP)
models_app.command("turnkeeper.cli.model_default:default", name="default")
models_app.command("turnkeeper.cli.model_check:try_model", name="test")


async def local_catalog(environ: Mapping[str, str], directory: Path | None = None) -> "tuple[Config, Catalog]":
    """The configuration and the catalogue of a directory, by default the current one. Raises Invalid."""
    async with plugged_directory(environ, directory) as here:
        return here.config, catalog_of(here.config, environ)


async def local_settings(environ: Mapping[str, str], directory: Path | None = None) -> "tuple[LoadedSettings, Catalog]":
    """The settings with their sources, and the catalogue of a directory. Raises Invalid."""
    async with plugged_directory(environ, directory) as here:
        return here.changed, catalog_of(here.config, environ)


class _Usable:
    """The providers that can be used, with their models."""

    def __init__(self, config: "Config", catalog: "Catalog", environ: Mapping[str, str], only: str | None) -> None:
        from turnkeeper.providers import choice
        from turnkeeper.workspace import auth

        credentials = auth.credentials(environ)
        self.problem: str | None = None
        """Why no model answers, if the configured one does not exist: this is the list to find its name in."""
        self._default: ModelInfo | None = None
        try:
            self._default = choice.default_model(catalog, config, credentials)
        except NotFound as error:
            self.problem = f"The default model {config.model!r} cannot be used: {error}."
        provider = self._default.provider_id if self._default is not None else ""
        self._small = choice.small_model(catalog, config, provider) or self._default
        found = [catalog.provider(only)] if only is not None else choice.available(catalog, credentials)
        self._providers = [(one, choice.key(one, credentials)) for one in found]
        self.has_keys = any(one.id != "offline" for one in found)

    @property
    def default(self) -> str | None:
        """The name of the model that answers prompts that name none."""
        return _name(self._default) if self._default is not None else None

    @property
    def small(self) -> str | None:
        """The name of the model that writes titles."""
        return _name(self._small) if self._small is not None else None

    def rows(self) -> list[dict[str, object]]:
        """The providers as JSON, without headers and options, which may hold secrets."""
        return [
            {
                "id": one.id,
                "name": one.name,
                "key": key.origin if key else None,
                "models": [model.but(options={}) for model in one.models.values()],
            }
            for one, key in self._providers
        ]

    def text(self, screen: Screen) -> str:
        """As one table per provider."""
        return "\n\n".join(self._provider(screen, one, key.origin if key else None) for one, key in self._providers)

    def _provider(self, screen: Screen, provider: "ProviderInfo", origin: str | None) -> str:
        head = f"{screen.paint(provider.name, 'bold')}  {screen.paint(self._key(provider, origin), 'dim')}"
        listed = sorted(provider.models.values(), key=lambda one: (one.status == "deprecated", one.id))
        rows = table(
            screen,
            Column("MODEL", [harmless(_name(one)) for one in listed], ("cyan",)),
            Column("", [self._mark(one) for one in listed], ("green",)),
            *_facts(listed),
        )
        return f"{head}\n{rows}" if rows else head

    def _key(self, provider: "ProviderInfo", origin: str | None) -> str:
        if origin is not None:
            return f"key from {origin}"
        if provider.options.base_url is not None or not provider.env:
            return "needs no key"
        return f"no key: set {' or '.join(provider.env)}, or run `turnkeeper auth login {provider.id}`"

    def _mark(self, model: "ModelInfo") -> str:
        marks = {
            "default": _name(model) == self.default,
            "small": _name(model) == self.small,
            model.status: model.status != "active",
        }
        return ", ".join(mark for mark, holds in marks.items() if holds)


def _name(model: "ModelInfo") -> str:
    return f"{model.provider_id}/{model.id}"


def _tokens(count: int) -> str:
    if not count:
        return ""
    return f"{count / 1_000_000:g}M" if count >= 1_000_000 else f"{count / 1000:.0f}K"


def _price(dollars: float) -> str:
    return f"${dollars:,.2f}" if dollars else ""

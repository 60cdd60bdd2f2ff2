"""The command that says which models can be used, and where their keys come from."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from turnkeeper.cli import catalogue
from turnkeeper.cli.answer import answer, note
from turnkeeper.cli.options import EVERYWHERE, Options
from turnkeeper.cli.screen import Screen, harmless, size
from turnkeeper.cli.table import Column, table

if TYPE_CHECKING:
    from turnkeeper.model.catalog import ModelInfo
    from turnkeeper.providers.catalog import ProviderInfo
    from turnkeeper.workspace.auth import Credentials


async def models(
    provider: Annotated[
        str | None, Parameter(metavar="PROVIDER", help="Only this provider's, with or without a key.")
    ] = None,
    /,
    *,
    refresh: Annotated[
        str | None, Parameter(metavar="URL", help="First fetch the catalogue anew, as models.dev writes it.")
    ] = None,
    options: Options = EVERYWHERE,
) -> None:
    """List the models that can be used here and now, and where each provider's key comes from.

    A provider is listed if it has a key, or an address in the configuration. The default answers when nobody names
    a model; the small one writes titles. Prices are dollars for a million tokens. Nothing is fetched unless
    --refresh is given. With --json the answer is {"default", "small", "providers": [{"id", "name", "key",
    "models"}]}; "key" says where the key was found, and is null without one.

    Examples:
      turnkeeper models
      turnkeeper models anthropic
      turnkeeper models --json | jq -r '.providers[].models[] | "\\(.providerID)/\\(.id)"'
    """
    if refresh is not None:
        await _refresh(refresh, options)
    usable = await _usable(options, provider)
    answer(options, usable.wire(), usable.text)
    if not options.json and not usable.has_keys:
        note("Only the offline model needs no key. `turnkeeper auth login PROVIDER` keeps one.")


async def _refresh(url: str, options: Options) -> None:
    from turnkeeper.providers.refresh import refresh

    fetched = await refresh(url, catalogue.refreshed(options.environ))
    if not options.json:
        note(f"Fetched the catalogue: {size(fetched)}.")


async def _usable(options: Options, only: str | None) -> "_Usable":
    from turnkeeper.providers import choice
    from turnkeeper.workspace import auth

    config, catalog = await catalogue.here(options.environ)
    credentials = auth.credentials(options.environ)
    default = choice.default_model(catalog, config, credentials)
    small = choice.small_model(catalog, config, default.provider_id) or default
    found = [catalog.provider(only)] if only is not None else choice.available(catalog, credentials)
    return _Usable(found, default, small, credentials)


class _Usable:
    """What can be used."""

    def __init__(
        self, providers: "Sequence[ProviderInfo]", default: "ModelInfo", small: "ModelInfo", credentials: "Credentials"
    ) -> None:
        from turnkeeper.providers import choice

        self._default, self._small = default, small
        self._providers = [(one, choice.key(one, credentials)) for one in providers]
        self.has_keys = any(one.id != "offline" for one in providers)

    def wire(self) -> dict[str, object]:
        """As JSON. Headers and options may hold secrets and are left out."""
        return {
            "default": _name(self._default),
            "small": _name(self._small),
            "providers": [
                {
                    "id": one.id,
                    "name": one.name,
                    "key": key.origin if key else None,
                    "models": [model.but(options={}) for model in one.models.values()],
                }
                for one, key in self._providers
            ],
        }

    def text(self, screen: Screen) -> str:
        """As tables, one a provider."""
        return "\n\n".join(self._provider(screen, one, key.origin if key else None) for one, key in self._providers)

    def _provider(self, screen: Screen, provider: "ProviderInfo", origin: str | None) -> str:
        head = f"{screen.paint(provider.name, 'bold')}  {screen.paint(self._key(provider, origin), 'dim')}"
        listed = sorted(provider.models.values(), key=lambda one: (one.status == "deprecated", one.id))
        rows = table(
            screen,
            [
                Column("MODEL", [harmless(_name(one)) for one in listed], ("cyan",)),
                Column("", [self._mark(one) for one in listed], ("green",)),
                Column("CONTEXT", [_tokens(one.limits.context) for one in listed]),
                Column("INPUT", [_price(one.price.input) for one in listed]),
                Column("OUTPUT", [_price(one.price.output) for one in listed]),
                Column("NAME", [harmless(one.name) for one in listed], ("dim",), least=12, is_optional=True),
            ],
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
            "default": _name(model) == _name(self._default),
            "small": _name(model) == _name(self._small),
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

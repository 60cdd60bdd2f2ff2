"""Settings, providers, models and agents."""

from turnkeeper.model.value import JsonObject
from turnkeeper.server.catalogue import AgentEntry, Catalogue
from turnkeeper.server.providers import AllProviders, ConfiguredProviders
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.response import JSON, HttpResponse
from turnkeeper.server.route import route


async def config(call: PlainRequest) -> JsonObject:
    """The effective settings of a directory, without secrets."""
    return call.service.part(Catalogue).config(await call.place())


async def user_config(call: PlainRequest) -> JsonObject:
    """The user's own settings, without secrets."""
    return call.service.part(Catalogue).user_config()


async def configured(call: PlainRequest) -> HttpResponse:
    """The providers that can be used, with their models."""
    return HttpResponse(200, call.service.part(Catalogue).configured(await call.place()), (JSON,))


async def every(call: PlainRequest) -> HttpResponse:
    """Every provider, and which of them can be used."""
    return HttpResponse(200, call.service.part(Catalogue).every(await call.place()), (JSON,))


async def logins(call: PlainRequest) -> dict[str, tuple[JsonObject, ...]]:
    """Login methods of providers: none, because keys are stored by `turnkeeper auth login` and not by the server."""
    return {}


async def agents(call: PlainRequest) -> list[AgentEntry]:
    """The agents, with the effective permission rules of each."""
    return call.service.part(Catalogue).agents(await call.place())


ROUTES = (
    route("GET", "/config", "config.get", config),
    route("GET", "/global/config", "global.config.get", user_config),
    route("GET", "/config/providers", "config.providers", configured, answer=ConfiguredProviders),
    route("GET", "/provider", "provider.list", every, answer=AllProviders),
    route("GET", "/provider/auth", "provider.auth", logins),
    route("GET", "/agent", "app.agents", agents),
)

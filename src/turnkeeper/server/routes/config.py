"""Settings, providers, models and agents."""

from turnkeeper.model.value import JsonObject
from turnkeeper.server.catalogue import AgentEntry, Catalogue
from turnkeeper.server.providers import AllProviders, ConfiguredProviders
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.response import JSON, HttpResponse
from turnkeeper.server.route import Route


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
    Route(method="GET", path="/config", operation="config.get", handler=config, answer=JsonObject),
    Route(method="GET", path="/global/config", operation="global.config.get", handler=user_config, answer=JsonObject),
    Route(
        method="GET",
        path="/config/providers",
        operation="config.providers",
        handler=configured,
        answer=ConfiguredProviders,
    ),
    Route(method="GET", path="/provider", operation="provider.list", handler=every, answer=AllProviders),
    Route(
        method="GET",
        path="/provider/auth",
        operation="provider.auth",
        handler=logins,
        answer=dict[str, tuple[JsonObject, ...]],
    ),
    Route(method="GET", path="/agent", operation="app.agents", handler=agents, answer=list[AgentEntry]),
)

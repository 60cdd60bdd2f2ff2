"""Catalogue of a directory, second generation: agents, providers, models and other lists that clients read at start."""

from typing import Generic, Literal, TypeAlias, TypeVar

import msgspec

from turnkeeper.model.refusal import NotFound
from turnkeeper.model.skill import Skill
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server.catalogue import Catalogue
from turnkeeper.server.errors import Missing
from turnkeeper.server.providers import ConfiguredProviders, ProviderEntry
from turnkeeper.server.request import PlainRequest
from turnkeeper.server.route import route
from turnkeeper.server.v2 import catalogue
from turnkeeper.server.v2.catalogue import AgentInfo, CatalogueModel, CatalogueProviderInfo, CommandInfo, LocationInfo

T = TypeVar("T")


class Healthy(Value, omit_defaults=False):
    """The body of a health check."""

    healthy: Literal[True] = True


class Located(Value, Generic[T], omit_defaults=False):
    """A value about a directory, with that directory."""

    location: LocationInfo
    data: T


EmptyList: TypeAlias = Located[tuple[JsonObject, ...]]


async def health(call: PlainRequest) -> Healthy:
    """Health check."""
    return Healthy()


async def location(call: PlainRequest) -> LocationInfo:
    """The directory of the request and its project."""
    return catalogue.location(await call.place())


async def agents(call: PlainRequest) -> Located[tuple[AgentInfo, ...]]:
    """The agents of a directory."""
    place = await call.place()
    found = call.service.part(Catalogue).agents(place)
    return Located(location=catalogue.location(place), data=tuple(map(catalogue.agent, found)))


async def commands(call: PlainRequest) -> Located[tuple[CommandInfo, ...]]:
    """The commands of a directory that have templates."""
    place = await call.place()
    found = await call.service.part(Catalogue).commands(place)
    return Located(location=catalogue.location(place), data=tuple(map(catalogue.command, found)))


async def models(call: PlainRequest) -> Located[tuple[CatalogueModel, ...]]:
    """The models of all providers that can be used."""
    place = await call.place()
    found = await _providers(call)
    data = tuple(catalogue.model(model) for one in found for model in one.models.values())
    return Located(location=catalogue.location(place), data=data)


async def providers(call: PlainRequest) -> Located[tuple[CatalogueProviderInfo, ...]]:
    """The providers that can be used."""
    data = tuple(map(catalogue.provider, await _providers(call)))
    return Located(location=catalogue.location(await call.place()), data=data)


async def provider(call: PlainRequest) -> Located[CatalogueProviderInfo]:
    """A provider that can be used."""
    name = call.params["providerID"]
    found = next((one for one in await _providers(call) if one.id == name), None)
    if found is None:
        raise Missing("Provider", name)
    return Located(location=catalogue.location(await call.place()), data=catalogue.provider(found))


async def skills(call: PlainRequest) -> Located[tuple[Skill, ...]]:
    """The skills of a directory, with their texts."""
    place = await call.place()
    found = await call.directories.skills(place, await call.directories.look(place))
    return Located(location=catalogue.location(place), data=found.skills)


async def empty(call: PlainRequest) -> EmptyList:
    """An empty list: not implemented, but requested by clients at start."""
    return Located(location=catalogue.location(await call.place()), data=())


async def _providers(call: PlainRequest) -> tuple[ProviderEntry, ...]:
    known = call.service.part(Catalogue).configured(await call.place())
    return msgspec.json.decode(known, type=ConfiguredProviders).providers


ROUTES = (
    route("GET", "/api/health", "v2.health.get", health),
    route("GET", "/api/location", "v2.location.get", location),
    route("GET", "/api/provider/{providerID}", "v2.provider.get", provider, NotFound),
    route("GET", "/api/agent", "v2.agent.list", agents),
    route("GET", "/api/model", "v2.model.list", models),
    route("GET", "/api/provider", "v2.provider.list", providers),
    route("GET", "/api/integration", "v2.integration.list", empty),
    route("GET", "/api/reference", "v2.reference.list", empty),
    route("GET", "/api/command", "v2.command.list", commands),
    route("GET", "/api/skill", "v2.skill.list", skills),
)

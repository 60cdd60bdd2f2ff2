"""What there is in a directory, in the words of the second generation: its place, agents, providers and models."""

from datetime import UTC, datetime
from typing import Literal

from turnkeeper.model.permission import Ruleset
from turnkeeper.model.session import SessionModel
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server import providers
from turnkeeper.server.catalogue import AgentWords
from turnkeeper.server.providers import CacheCost, Cost, Limit, Model, ProviderEntry, TierSize
from turnkeeper.workspace.project import ProjectPlace


class LocatedProject(Value):
    """The project of a place."""

    id: str
    directory: str


class LocationInfo(Value):
    """A directory, and the project it belongs to."""

    directory: str
    project: LocatedProject


class Request(Value, omit_defaults=False):
    """What is added to each request. What may be a secret is not told, so nothing is."""

    headers: JsonObject = {}
    body: JsonObject = {}


class RuleInfo(Value):
    """One rule."""

    action: str
    resource: str
    effect: Literal["allow", "deny", "ask"]


class AgentInfo(Value):
    """An agent."""

    id: str
    model: SessionModel | None = None
    request: Request
    system: str | None = None
    description: str | None = None
    mode: Literal["primary", "subagent", "all"]
    hidden: bool
    steps: int | None = None
    permissions: tuple[RuleInfo, ...]


class Api(Value, tag_field="type", tag="aisdk"):
    """How it is reached: by which package clients name its protocol. The address is not told."""

    id: str | None = None
    package: str


class Capabilities(Value):
    """What a model can do."""

    tools: bool
    input: tuple[str, ...]
    output: tuple[str, ...]


class Variant(Value, omit_defaults=False):
    """A model with other settings."""

    id: str
    headers: JsonObject = {}
    body: JsonObject = {}


class Released(Value):
    """Milliseconds since 1970."""

    released: int


class CostInfo(Value):
    """Dollars for a million tokens."""

    input: float
    output: float
    cache: CacheCost
    tier: TierSize | None = None


class CatalogueModel(Value):
    """A model."""

    id: str
    provider_id: str
    family: str | None = None
    name: str
    api: Api
    capabilities: Capabilities
    request: Request
    variants: tuple[Variant, ...]
    time: Released
    cost: tuple[CostInfo, ...]
    status: Literal["alpha", "beta", "deprecated", "active"]
    enabled: bool
    limit: Limit


class CatalogueProviderInfo(Value):
    """A provider."""

    id: str
    name: str
    api: Api
    request: Request


def location(place: ProjectPlace) -> LocationInfo:
    """A place."""
    top = "/" if place.id == "global" else str(place.main_worktree)
    return LocationInfo(directory=str(place.directory), project=LocatedProject(id=place.id, directory=top))


def agent(words: AgentWords) -> AgentInfo:
    """An agent."""
    model = words.model
    return AgentInfo(
        id=words.name,
        model=SessionModel(id=model.model_id, provider_id=model.provider_id, variant=words.variant) if model else None,
        request=Request(),
        system=words.prompt,
        description=words.description,
        mode=words.mode,
        hidden=bool(words.hidden),
        steps=words.steps,
        permissions=rules(words.permission),
    )


def rules(given: Ruleset) -> tuple[RuleInfo, ...]:
    """Rules."""
    return tuple(RuleInfo(action=one.permission, resource=one.pattern, effect=one.action) for one in given)


def provider(given: ProviderEntry) -> CatalogueProviderInfo:
    """A provider. Its protocol is that of its models."""
    package = next((model.api.npm for model in given.models.values()), providers.PACKAGES["openai-chat"])
    return CatalogueProviderInfo(id=given.id, name=given.name, api=Api(package=package), request=Request())


def model(given: Model) -> CatalogueModel:
    """A model."""
    reads = given.capabilities.input
    return CatalogueModel(
        id=given.id,
        provider_id=given.provider_id,
        family=given.family or None,
        name=given.name,
        api=Api(id=given.api.id, package=given.api.npm),
        capabilities=Capabilities(
            tools=given.capabilities.toolcall,
            input=tuple(kind for kind in ("text", "audio", "image", "video", "pdf") if getattr(reads, kind)),
            output=("text",),
        ),
        request=Request(),
        variants=tuple(Variant(id=name) for name in given.variants),
        time=Released(released=_milliseconds(given.release_date)),
        cost=_costs(given.cost),
        status=given.status,
        enabled=True,
        limit=given.limit,
    )


def _costs(cost: Cost) -> tuple[CostInfo, ...]:
    tiers = [CostInfo(input=one.input, output=one.output, cache=one.cache, tier=one.tier) for one in cost.tiers or ()]
    return (CostInfo(input=cost.input, output=cost.output, cache=cost.cache), *tiers)


def _milliseconds(date: str) -> int:
    """The day a model came out; 0 if it is not known."""
    try:
        return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0

"""Shapes of the second generation for a directory: its project, agents, providers and models."""

from contextlib import suppress
from datetime import UTC, datetime
from typing import Literal

from turnkeeper.model.command import Command
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import SessionModel
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.server import providers
from turnkeeper.server.catalogue import AgentEntry
from turnkeeper.server.providers import CacheCost, Cost, Limit, Model, ProviderEntry, TierSize
from turnkeeper.workspace.project import ProjectPlace


class LocatedProject(Value):
    """The project of a directory."""

    id: str
    directory: str


class LocationInfo(Value):
    """A directory, and the project it belongs to."""

    directory: str
    project: LocatedProject


class Request(Value, omit_defaults=False):
    """What is added to each request to a model. Always empty, because it may be secret."""

    headers: JsonObject = {}
    body: JsonObject = {}


class RuleInfo(Value):
    """A permission rule."""

    action: str
    resource: str
    effect: Literal["allow", "deny", "ask"]


class AgentInfo(Value):
    """An agent as the second generation sends it."""

    id: str
    model: SessionModel | None = None
    request: Request
    system: str | None = None
    description: str | None = None
    mode: Literal["primary", "subagent", "all"]
    hidden: bool
    color: str | None = None
    steps: int | None = None
    permissions: tuple[RuleInfo, ...]


class CommandInfo(Value):
    """A command as the second generation sends it."""

    name: str
    template: str
    description: str | None = None
    agent: str | None = None
    model: SessionModel | None = None
    subtask: bool | None = None


class Api(Value, tag_field="type", tag="aisdk"):
    """The npm package by which clients identify a protocol. The URL is not sent."""

    id: str | None = None
    package: str


class Capabilities(Value):
    """What a model can do."""

    tools: bool
    input: tuple[str, ...]
    output: tuple[str, ...]


class Variant(Value, omit_defaults=False):
    """A variant of a model."""

    id: str
    headers: JsonObject = {}
    body: JsonObject = {}


class Released(Value):
    """The release date, in milliseconds since 1970."""

    released: int


class CostInfo(Value):
    """Dollars for a million tokens, of a price tier or of all requests."""

    input: float
    output: float
    cache: CacheCost
    tier: TierSize | None = None


class CatalogueModel(Value):
    """A model as the second generation sends it."""

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
    """A provider as the second generation sends it."""

    id: str
    name: str
    api: Api
    request: Request


def location(place: ProjectPlace) -> LocationInfo:
    """A directory and its project."""
    top = "/" if place.id == "global" else str(place.main_worktree)
    return LocationInfo(directory=str(place.directory), project=LocatedProject(id=place.id, directory=top))


def agent(words: AgentEntry) -> AgentInfo:
    """An agent as the second generation sends it."""
    model = words.model
    return AgentInfo(
        id=words.name,
        model=SessionModel(id=model.model_id, provider_id=model.provider_id, variant=words.variant) if model else None,
        request=Request(),
        system=words.prompt,
        description=words.description,
        mode=words.mode,
        hidden=bool(words.hidden),
        color=words.color,
        steps=words.steps,
        permissions=rules(words.permission),
    )


def command(given: Command) -> CommandInfo:
    """A command as the second generation sends it."""
    model: SessionModel | None = None
    with suppress(Invalid):  # The configuration may name anything; it is refused when the command is sent.
        if given.model is not None:
            named = ModelChoice.parse(given.model)
            model = SessionModel(id=named.model_id, provider_id=named.provider_id, variant=given.variant)
    return CommandInfo(
        name=given.name,
        template=given.template,
        description=given.description,
        agent=given.agent,
        model=model,
        subtask=given.subtask,
    )


def rules(given: Ruleset) -> tuple[RuleInfo, ...]:
    """Permission rules as the second generation sends them."""
    return tuple(RuleInfo(action=one.permission, resource=one.pattern, effect=one.action) for one in given)


def provider(given: ProviderEntry) -> CatalogueProviderInfo:
    """A provider as the second generation sends it, with the protocol of its first model."""
    package = next((model.api.npm for model in given.models.values()), providers.PACKAGES["openai-chat"])
    return CatalogueProviderInfo(id=given.id, name=given.name, api=Api(package=package), request=Request())


def model(given: Model) -> CatalogueModel:
    """A model as the second generation sends it."""
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
    """A release date in milliseconds since 1970; 0 if the date is unknown."""
    try:
        return int(datetime.fromisoformat(date).replace(tzinfo=UTC).timestamp() * 1000)
    except ValueError:
        return 0

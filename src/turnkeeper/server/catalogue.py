"""Catalogue: the settings, agents, providers and models of a directory, as clients receive them."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, Literal

import msgspec

from turnkeeper.core.agents import listed
from turnkeeper.model.agent import Agent
from turnkeeper.model.command import Command
from turnkeeper.model.config import Config, ProviderConfig
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.refusal import Refusal
from turnkeeper.model.value import Json, JsonObject, Value, encode
from turnkeeper.providers.catalog import Catalog
from turnkeeper.server import providers
from turnkeeper.server.mask import Mask
from turnkeeper.server.service import Service
from turnkeeper.workspace import auth, paths
from turnkeeper.workspace.auth import Credentials
from turnkeeper.workspace.config import LoadedSettings
from turnkeeper.workspace.project import ProjectPlace

SHOWN: Final = ("$schema", "autoupdate", "layout", "share", "snapshot", "username")
"""Settings that only clients use and that hold no secrets; they are sent as they are written."""


OURS: Final = frozenset({"catalog", "mcp", "recovery", "timezone"})
"""Settings that clients do not receive: opencode does not have them, or, of MCP servers, they are full of secrets."""

ANSWERS_MAX: Final = 32
"""Lists of providers that are cached; the least recently used are dropped first. With many models one takes 300 KB."""


class AgentEntry(Value):
    """An agent as clients receive it."""

    name: str
    description: str | None = None
    mode: Literal["primary", "subagent", "all"]
    native: bool | None = None
    hidden: bool | None = None
    top_p: float | None = None
    temperature: float | None = None
    color: str | None = None
    permission: Ruleset
    model: ModelChoice | None = None
    variant: str | None = None
    prompt: str | None = None
    options: JsonObject
    steps: int | None = None


class Catalogue:
    """Settings, agents and providers of directories. Lists of providers are cached until a setting or a key changes."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._environ = service.options.environ
        self._answers: dict[tuple[str, str], tuple[Catalog, object, bytes]] = {}

    def config(self, place: ProjectPlace) -> JsonObject:
        """The effective settings of a directory, without secrets."""
        return shown(self._settings(place.directory, place.worktree), self.mask(place))

    def mask(self, place: ProjectPlace) -> Mask:
        """The mask that hides the secrets of a directory's settings."""
        filled = self._settings(place.directory, place.worktree).filled

        def is_model(name: str) -> bool:
            provider_id, _, model_id = name.partition("/")
            try:
                self._service.turnkeeper.runtime.directories.catalog(place)[1].find(provider_id, model_id)
            except Refusal:
                return False
            return provider_id not in filled and model_id not in filled

        return Mask(filled, is_model)

    def user_config(self) -> JsonObject:
        """The user's own settings, without secrets."""
        folder = paths.config(self._environ)
        loaded = self._settings(folder, folder)
        return shown(loaded, Mask(loaded.filled))

    def _settings(self, directory: Path, worktree: Path) -> LoadedSettings:
        return self._service.turnkeeper.runtime.directories.settings(directory, worktree)

    def configured(self, place: ProjectPlace) -> bytes:
        """The providers that can be used, as JSON."""
        return self._cached("configured", place, providers.configured)

    def every(self, place: ProjectPlace) -> bytes:
        """Every provider, as JSON."""
        return self._cached("every", place, providers.every)

    def agents(self, place: ProjectPlace) -> list[AgentEntry]:
        """All agents: the default one first, then by name."""
        known, mask = self._service.turnkeeper.runtime.directories.config(place), self.mask(place)
        return [masked(agent_entry(one), mask) for one in listed(known.agents, known.agent(None).name)]

    async def commands(self, place: ProjectPlace) -> list[Command]:
        """The commands that clients can send, by name. Actions are left out: clients have their own, so named."""
        known, mask = await self._service.turnkeeper.runtime.directories.commands(place), self.mask(place)
        return [masked_command(one, mask) for one in known.values() if one.kind == "prompt"]

    def _cached(self, kind: str, place: ProjectPlace, make: Callable[[Catalog, Credentials], Value]) -> bytes:
        _, catalog = self._service.turnkeeper.runtime.directories.catalog(place)
        credentials = auth.credentials(self._environ)
        # A changed configuration gives a new catalogue object; changed keys do not.
        keys = (dict(credentials.stored), tuple(sorted(self._environ.items())))
        known = self._answers.pop((kind, str(place.directory)), None)
        if known is None or known[0] is not catalog or known[1] != keys:
            made = encode(make(catalog, credentials))
            if (mask := self.mask(place)).filled:
                made = encode(_without_secrets(msgspec.json.decode(made), mask))
            known = (catalog, keys, made)
        self._answers[kind, str(place.directory)] = known
        if len(self._answers) > ANSWERS_MAX:
            del self._answers[next(iter(self._answers))]
        return known[2]


def agent_entry(agent: Agent) -> AgentEntry:
    """An agent as clients receive it."""
    return AgentEntry(
        name=agent.name,
        description=agent.description or None,
        mode=agent.mode,
        native=agent.native or None,
        hidden=agent.hidden or None,
        top_p=agent.top_p,
        temperature=agent.temperature,
        color=agent.color,
        permission=agent.permission,
        model=agent.model,
        variant=agent.variant,
        prompt=agent.prompt,
        options=agent.options,
        steps=agent.steps,
    )


def shown(loaded: LoadedSettings, mask: Mask) -> JsonObject:
    """Settings without secrets. Of a provider only its name and models remain, without the options sent to a model."""
    config = loaded.config
    plain = config.but(provider={name: _provider(one) for name, one in config.provider.items()})
    written: dict[str, object] = {name: loaded.merged[name] for name in SHOWN if name in loaded.merged}
    known = {name: value for name, value in _as_object(plain).items() if name not in OURS}
    if isinstance(known.get("snapshot"), dict):
        known["snapshot"] = True  # Clients know only whether there are snapshots, and not the limits of them.
    masked = mask.json({**written, **known})
    assert isinstance(masked, dict), "a masked object is an object"
    return masked


def masked(agent: AgentEntry, mask: Mask) -> AgentEntry:
    """An agent without the values that the configuration took from variables and files."""
    rules = tuple(rule.but(pattern=mask.text(rule.pattern)) for rule in agent.permission)
    texts = {name: text and mask.text(text) for name in ("prompt", "description") if (text := getattr(agent, name))}
    name = f"{agent.model.provider_id}/{agent.model.model_id}" if agent.model else ""
    model = agent.model if mask.choice(name) == name else None
    return agent.but(**texts, permission=rules, options=mask.json(agent.options), model=model)


def masked_command(command: Command, mask: Mask) -> Command:
    """A command without the values that the configuration took from variables and files."""
    texts = {name: text and mask.text(text) for name in ("template", "description") if (text := getattr(command, name))}
    return command.but(**texts, model=mask.choice(command.model) if command.model is not None else None)


def _without_secrets(answer: Json, mask: Mask, *, has_names: bool = False) -> Json:
    """A list of providers with those texts and ids masked that the configuration can set."""
    match answer:
        case dict():
            return {
                mask.text(name) if has_names else name: mask.json(item)
                if name in ("default", "id", "name", "providerID", "variants")
                else _without_secrets(item, mask, has_names=name == "models")
                for name, item in answer.items()
            }
        case list():
            return [mask.text(item) if isinstance(item, str) else _without_secrets(item, mask) for item in answer]
        case _:
            return answer


def _provider(given: ProviderConfig) -> ProviderConfig:
    return ProviderConfig(
        npm=given.npm,
        name=given.name,
        env=given.env,
        models={name: one.but(options=None, variants=None, provider=None) for name, one in given.models.items()},
        whitelist=given.whitelist,
        blacklist=given.blacklist,
    )


def _as_object(config: Config) -> Mapping[str, object]:
    # Encoded as JSON, because only the encoder leaves out unset fields.
    return msgspec.json.decode(encode(config), type=dict[str, object])

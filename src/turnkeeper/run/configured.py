"""The configuration of directories: settings as plugins change them, agents, models, skills and commands.

It is looked up for each turn, so that an edit takes effect.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from anyio.abc import TaskGroup

from turnkeeper.context.texts import agent_prompts
from turnkeeper.core.agents import agents, default_agent, default_agent_problem, find_agent
from turnkeeper.core.limits import SETTINGS_POLL_S
from turnkeeper.core.permission import merge
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.config import Config
from turnkeeper.model.message import ModelChoice, model_choice
from turnkeeper.model.permission import Ruleset
from turnkeeper.model.plugin import PluginStatus
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.session import Session
from turnkeeper.plugins.hooks import SMALL_MODEL
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.payloads import SmallModelInput, SmallModelOutput
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.plugins.settings import PluggedSettings
from turnkeeper.providers import choice
from turnkeeper.providers.catalog import Catalog
from turnkeeper.providers.refresh import catalogue_file
from turnkeeper.run.toolboxes import Toolboxes
from turnkeeper.workspace import auth, sandbox
from turnkeeper.workspace.config import LoadedSettings, ProgramSettings
from turnkeeper.workspace.project import ProjectPlace, stored_place
from turnkeeper.workspace.settings_cache import SettingsCache
from turnkeeper.workspace.skill_files import FoundSkills
from turnkeeper.workspace.skills import SkillLibrary
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)

LEFT_OUT: Final = "%s: not in force until the project is trusted: %s; `turnkeeper trust %s` trusts it as it is now"
KEPT: Final = "%s; until this is mended, the last good settings of the file hold"
REFUSED: Final = "%s; until this is mended, prompts are refused"


def configured_agents(config: Config, environ: Mapping[str, str]) -> dict[str, Agent]:
    """The agents of a configuration on this machine, by name."""
    home = environ.get("HOME") or str(Path.home())
    return agents(config, home, agent_prompts(), is_confined=sandbox.is_confined(config.sandbox))


class DirectoryConfig(NamedTuple):
    """Values derived from the configuration of a directory, cached until it changes."""

    config: Config
    catalog: Catalog
    agents: Mapping[str, Agent]
    """The agents of the directory, by name."""

    def agent(self, name: str | None) -> Agent:
        """The agent of this name, or the default one. Raises Invalid with what there is."""
        return find_agent(self.agents, name) if name is not None else default_agent(self.agents, self.config)


class LookedAt(NamedTuple):
    """A snapshot of a place: its settings as written, its plugins, and the configuration that results from both."""

    loaded: LoadedSettings
    plugins: PluginSet
    config: DirectoryConfig


class ResolvedDirectory(NamedTuple):
    """A directory: its place and its configuration."""

    place: ProjectPlace
    config: DirectoryConfig


class _Logged(NamedTuple):
    """Settings whose warnings have been logged."""

    loaded: LoadedSettings
    lines: list[str]
    """The lines that were logged about these settings."""


class ConfiguredDirectories:
    """Reads the configuration of directories."""

    def __init__(
        self,
        environ: Mapping[str, str],
        toolboxes: Toolboxes,
        *,
        directories_max: int,
        group: TaskGroup | None,
        started_ns: int | None,
        own: ProgramSettings | None,
        plugins: PluginHost | None,
    ) -> None:
        self.own = own or ProgramSettings()
        """The settings that the program gives itself."""
        trust = ToolTrust(environ, started_ns=started_ns)
        self.plugins = PluggedSettings(PluginHost(environ, trust) if plugins is None else plugins)
        """The plugins of places, and the settings as they change them."""
        self._environ, self._toolboxes, self._auth = environ, toolboxes, auth.CredentialCache(environ)
        self._reader = SettingsCache(
            environ, directories_max=directories_max, started_ns=started_ns, own=self.own, tools=toolboxes.names
        )
        self._skills, self._told_problems = SkillLibrary(environ, group), set[str]()
        self._told_kept: dict[Path, tuple[str, ...]] = {}
        self._told: dict[Path, _Logged] = {}
        self._directories_max = directories_max
        self._known: dict[Path, DirectoryConfig] = {}
        self._places: dict[Path, ProjectPlace] = {}

    def catalog(self, place: ProjectPlace) -> tuple[Config, Catalog]:
        """The configuration that holds in a place, and the models it knows."""
        known = self.config(place)
        return known.config, known.catalog

    async def resolve(self, directory: str) -> ResolvedDirectory:
        """The place and configuration of a directory now. Raises Invalid if it leads elsewhere or is misconfigured."""
        place = await stored_place(directory)
        return ResolvedDirectory(place, (await self.look(place)).config)

    async def look(self, place: ProjectPlace) -> LookedAt:
        """The current snapshot of a place, with plugins reloaded if they changed. Raises Invalid if misconfigured."""
        loaded = self.settings(place.directory, place.worktree)
        plugins = await self.plugins.renew(place, loaded)
        return LookedAt(loaded, plugins, self._config(place, loaded))

    def config(self, place: ProjectPlace) -> DirectoryConfig:
        """The current configuration of a place. Raises Invalid if it is wrong."""
        return self._config(place, self.settings(place.directory, place.worktree))

    def _config(self, place: ProjectPlace, loaded: LoadedSettings) -> DirectoryConfig:
        config = self.plugins.config(place.directory, loaded)
        self._tell(place.directory, loaded)
        known = self._known.pop(place.directory, None)
        if known is None or (known.config is not config and known.config != config):
            found = configured_agents(config, self._environ)
            catalog = Catalog(config, refreshed=catalogue_file(self._environ))
            if (problem := default_agent_problem(found, config)) is not None:
                log.warning("%s", problem)
            known = DirectoryConfig(config, catalog, found)
        self._known[place.directory], self._places[place.directory] = known, place
        while len(self._known) > self._directories_max:
            oldest = next(iter(self._known))
            del self._known[oldest], self._places[oldest], self._told[oldest]
        return known

    def _tell(self, directory: Path, loaded: LoadedSettings) -> None:
        """Log settings without effect in a directory, each once, also if a mistake changes no setting."""
        told = self._told.get(directory)
        if told is not None and told.loaded is loaded:
            return
        lines = [LEFT_OUT % (where, ", ".join(names), directory) for where, names in loaded.left_out.items()]
        lines += loaded.warnings
        for line in lines:
            if told is None or line not in told.lines:
                log.warning("%s", line)
        self._told[directory] = _Logged(loaded, lines)

    def settings(self, directory: Path, worktree: Path) -> LoadedSettings:
        """The current settings of a directory. Of a file that has become invalid the last valid settings are used.

        That is logged once. Raises Invalid if there are no valid settings.
        """
        loaded = self._reader.load(directory, worktree)
        if loaded.kept != self._told_kept.pop(directory, ()):
            for problem in loaded.kept:
                log.warning(KEPT, problem)
        if loaded.kept:
            self._told_kept[directory] = loaded.kept
        return loaded

    async def watch(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Poll the settings of all places in use, so that mistakes are logged without a turn. Never ends."""
        told: dict[Path, str] = {}
        while True:
            await sleep(SETTINGS_POLL_S)
            refused: dict[Path, str] = {}
            for place in list(self._places.values()):
                try:
                    self.config(place)
                except Invalid as refusal:
                    refused[place.directory] = str(refusal)
            for problem in dict.fromkeys(refused[one] for one in refused if refused[one] != told.get(one)):
                log.warning(REFUSED, problem)
            told = refused

    async def rules(self, session: Session) -> Ruleset:
        """The rules of a session: those of its agent, then its own. Raises Invalid if there is no such agent."""
        _, config = await self.resolve(session.directory)
        return merge(config.agent(session.agent).permission, session.permission or ())

    def default_model(self, place: ProjectPlace) -> ModelChoice:
        """The model of a prompt that names none."""
        config, catalog = self.catalog(place)
        model = choice.default_model(catalog, config, self._auth.read())
        return ModelChoice(provider_id=model.provider_id, model_id=model.id)

    def model(self, place: ProjectPlace, wanted: ModelChoice) -> ModelInfo:
        """A model that can be used in a place. Raises NotFound with what looks alike."""
        return choice.find(self.catalog(place)[1], wanted)

    def require(self, place: ProjectPlace, wanted: ModelChoice, known: DirectoryConfig | None = None) -> None:
        """Check that a model can be asked in a place. Raises Invalid if it is not known, or has no key or address.

        The names of the tools are checked, too. ``known`` is what is configured there, if it was just looked up.
        """
        self._toolboxes.built_in()
        catalog = (known or self.config(place)).catalog
        try:
            model = choice.find(catalog, wanted)
            endpoint = choice.endpoint(catalog.provider(model.provider_id), model, self._auth.read())
        except NotFound as error:
            raise Invalid(str(error)) from error
        if endpoint.key_required and not endpoint.api_key:
            name = model.provider_id
            raise Invalid(
                f"there is no API key for provider {name!r}; `turnkeeper auth login {name}` keeps one, "
                "and -m chooses another model"
            )

    async def small_model(self, place: ProjectPlace, used: ModelChoice) -> ModelInfo:
        """The model for titles: that of a plugin, or a small one if the provider has one, else the one in use."""
        config, catalog = self.catalog(place)
        asked = SmallModelInput(provider_id=used.provider_id)
        plugins = self.plugins.now(place.directory)
        named, by = await plugins.trigger(SMALL_MODEL, asked, SmallModelOutput())
        if named.model is not None:
            try:
                return choice.find(catalog, model_choice(named.model))
            except NotFound as error:
                plugins.unusable(by, SMALL_MODEL.name, error)
        return choice.small_model(catalog, config, used.provider_id) or choice.find(catalog, used)

    async def skills(self, place: ProjectPlace, seen: LookedAt) -> FoundSkills:
        """The skills of a place that was just looked at, by name. What is wrong with a file is logged once."""
        found = await self._skills.skills(place, seen.config.config, seen.loaded.directories)
        for problem in found.problems:
            if problem not in self._told_problems:
                self._told_problems.add(problem)
                log.warning("%s", problem)
        return found

    def environ(self, config: Config) -> Mapping[str, str]:
        """The environment of the user's own commands, with the configured shell."""
        return {**self._environ, "SHELL": config.shell} if config.shell else self._environ

    async def plugin_statuses(self, place: ProjectPlace) -> tuple[PluginStatus, ...]:
        """The status of each plugin of a place, after reloading changed ones. Raises Invalid."""
        return tuple(plugin.status for plugin in (await self.look(place)).plugins.plugins)

"""Directories: what the configuration of each gives its sessions. Read for each turn, so an edit takes effect."""

import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
from anyio.abc import TaskGroup

from turnkeeper.context.texts import agent_prompts
from turnkeeper.core import flags
from turnkeeper.core.agents import agents, default_agent, default_agent_problem, find_agent
from turnkeeper.core.command_environ import command_environ
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX, SETTINGS_POLL_S, SUBAGENT_DEPTH
from turnkeeper.core.permission import from_top
from turnkeeper.core.sandbox import Confinement, confinement
from turnkeeper.core.window import Window, window
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.command import Command
from turnkeeper.model.config import AskConfig, Config
from turnkeeper.model.message import ModelChoice, model_choice
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.refusal import Invalid, NotFound
from turnkeeper.model.skill import Skill
from turnkeeper.model.value import encode
from turnkeeper.plugins.hooks import SMALL_MODEL
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.payloads import SmallModelInput, SmallModelOutput
from turnkeeper.plugins.plugin_set import NONE as NO_PLUGINS
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.plugins.settings import PluggedSettings
from turnkeeper.providers import choice
from turnkeeper.providers.catalog import Catalog
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.provider import Provider
from turnkeeper.providers.refresh import catalogue_file
from turnkeeper.run.commands import CommandPlaces, known_commands
from turnkeeper.run.delegation import Delegating
from turnkeeper.run.file_services import FileServices
from turnkeeper.run.toolboxes import Toolboxes
from turnkeeper.run.turn_snapshots import OpenRepository, no_snapshots
from turnkeeper.tools.output import Bounds
from turnkeeper.tools.reads import ReadFiles, SessionReads
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import AnyTool
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace import auth, paths, sandbox
from turnkeeper.workspace.config import LoadedSettings, ProgramSettings
from turnkeeper.workspace.lsp import LanguageServers
from turnkeeper.workspace.mcp_server import McpServer
from turnkeeper.workspace.mcp_servers import McpServers
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.project import ProjectPlace, stored_place
from turnkeeper.workspace.secret_files import SecretFiles
from turnkeeper.workspace.settings_cache import DIRECTORIES_MAX, SettingsCache
from turnkeeper.workspace.skill_files import FoundSkills
from turnkeeper.workspace.skills import SkillLibrary
from turnkeeper.workspace.snapshots import Snapshots
from turnkeeper.workspace.temporary import TemporaryDirectories
from turnkeeper.workspace.tool_files import ToolTrust

Transport = Callable[[Endpoint], Provider]
"""Makes a provider for an endpoint."""

log = logging.getLogger(__name__)

LEFT_OUT: Final = "%s: not in force until the project is trusted: %s; `turnkeeper trust %s` trusts it as it is now"
KEPT: Final = "%s; until this is mended, the last good settings of the file hold"


def configured_agents(config: Config, environ: Mapping[str, str]) -> dict[str, Agent]:
    """The agents of a configuration on this machine, by name."""
    home = environ.get("HOME") or str(Path.home())
    return agents(config, home, agent_prompts(), is_confined=sandbox.is_confined(config.sandbox))


class DirectorySetup(msgspec.Struct, frozen=True):
    """What a directory's configuration gives its sessions: agents, tools, rules and providers."""

    agents: Mapping[str, Agent]
    toolbox: Toolbox
    find: Callable[[ModelChoice], ModelInfo]
    """Raises a Refusal that says what there is instead."""
    provider: Callable[[ModelInfo], Provider]
    instructions: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    timezone: str | None = None
    window: Window = msgspec.field(default_factory=Window)
    bounds: Callable[[str], Bounds] = lambda session_id: Bounds()
    """The limits of one turn's results, which they share."""
    free: Callable[[str], Sequence[str]] = lambda session_id: ()
    """Directories outside the project that a session uses without asking, unless its rules deny them."""
    top: str = "/"
    """The top of the project's files, which the patterns of rules about files begin at."""
    own: tuple[str, ...] = ()
    """Patterns of the user's own settings and tools, whose change is always asked about."""
    environ: Mapping[str, str] = msgspec.field(default_factory=lambda: os.environ)
    """What the model's commands are run with."""
    services: Callable[[str], ToolServices] = lambda session_id: ToolServices()
    """What the tools of a session use that lives longer than a call."""
    confine: Callable[[str, Ruleset, Sequence[Rule]], Confinement | None] = lambda session_id, rules, approvals: None
    """How the kernel confines the commands of a session under these rules and approvals."""
    snapshots: OpenRepository = no_snapshots
    """Opens the shadow repository of the project."""
    ask: AskConfig = AskConfig()
    delegating: Delegating = Delegating()
    goes_on_when_rejected: bool = False
    plugins: PluginSet = NO_PLUGINS


class DirectoryConfig(NamedTuple):
    """What follows from the configuration of a directory as long as it stays the same."""

    config: Config
    catalog: Catalog
    agents: Mapping[str, Agent]
    """The agents of the directory, by name."""

    def agent(self, name: str | None) -> Agent:
        """The agent of this name, or the default one. Raises Invalid with what there is."""
        return find_agent(self.agents, name) if name is not None else default_agent(self.agents, self.config)


class ResolvedDirectory(NamedTuple):
    """A directory: the place it is, and what is configured there."""

    place: ProjectPlace
    config: DirectoryConfig


class Directories:
    """Reads the configuration of directories and gives what sessions there may use."""

    def __init__(
        self,
        transport: Transport,
        tools: Callable[[], Sequence[AnyTool]],
        environ: Mapping[str, str],
        outputs: OutputFiles | None = None,
        *,
        directories_max: int = DIRECTORIES_MAX,
        group: TaskGroup | None = None,
        snapshots: Snapshots | None = None,
        started_ns: int | None = None,
        own: ProgramSettings | None = None,
        plugins: PluginHost | None = None,
    ) -> None:
        """``group`` is where language servers run; without one none is started. None: there are no snapshots.

        ``started_ns`` is when the program was started, by the clock of the file system; now by default.
        """
        self._snapshots = snapshots
        self.own = own or ProgramSettings()
        """The settings that the program gives itself."""
        self._transport, self._environ, self._outputs = transport, environ, outputs
        self._toolboxes = Toolboxes(tools, environ, kept_max=directories_max, started_ns=started_ns)
        self._reader, self._auth = (
            SettingsCache(
                environ,
                directories_max=directories_max,
                started_ns=started_ns,
                own=self.own,
                tools=self._toolboxes.names,
            ),
            auth.CredentialCache(environ),
        )
        self.temporary = TemporaryDirectories(environ)
        trust = ToolTrust(environ, started_ns=started_ns)
        self.plugins = PluggedSettings(PluginHost(environ, trust) if plugins is None else plugins)
        """The plugins of places, and what they make of the settings."""
        self._told_kept: dict[Path, tuple[str, ...]] = {}
        self._skills, self._told_problems = SkillLibrary(environ, group), set[str]()
        self._services = FileServices(LanguageServers(group), self.temporary, SecretFiles(environ))
        self._reads, self._mcp = ReadFiles(), McpServers(group)
        self._directories_max = directories_max
        self._known: dict[Path, DirectoryConfig] = {}
        self._places: dict[Path, ProjectPlace] = {}
        self._providers: dict[bytes, Provider] = {}

    async def setup(self, place: ProjectPlace) -> DirectorySetup:
        """What a session in this place may use now. Raises Invalid if the configuration is wrong."""
        plugins = await self._plug(place)
        config, catalog, known = self.config(place)
        credentials, skills = self._auth.read(), await self.skills(place)
        environ = self._command_environ(config, catalog)
        servers = await self._mcp.ready(place.directory, config, environ)

        def provider(model: ModelInfo) -> Provider:
            return self._provider(choice.endpoint(catalog.provider(model.provider_id), model, credentials))

        return DirectorySetup(
            agents=known,
            toolbox=await self._toolboxes.of(place, servers, tuple(plugins.contributed.tools)),
            find=lambda wanted: choice.find(catalog, wanted),
            provider=provider,
            instructions=config.instructions,
            skills=skills.skills,
            timezone=config.timezone,
            window=window(config.compaction, self._environ),
            bounds=lambda session_id: self.bounds(config, session_id),
            free=lambda session_id: [*self._free(session_id), *skills.outside],
            top=str(place.top),
            own=tuple(self._own_settings(str(place.top))),
            environ=environ,
            services=lambda session_id: self._services.of(
                config, place, environ, skills.skills, self.reads(session_id)
            ),
            confine=partial(self._confine, config, place),
            snapshots=partial(self._snapshots.of, place, config) if self._snapshots is not None else no_snapshots,
            ask=config.ask,
            delegating=Delegating(
                depth_max=config.subagent_depth if config.subagent_depth is not None else SUBAGENT_DEPTH,
                primary_tools=config.experimental.primary_tools,
                inherits_plan=config.experimental.inherit_plan is not False,
            ),
            goes_on_when_rejected=bool(config.experimental.continue_loop_on_deny),
            plugins=plugins,
        )

    async def mcp(self, place: ProjectPlace) -> tuple[McpServer, ...]:
        """The MCP servers of a place, once they are connected or have failed. Raises Invalid."""
        config, catalog, _ = self.config(place)
        return await self._mcp.ready(place.directory, config, self._command_environ(config, catalog))

    def _command_environ(self, config: Config, catalog: Catalog) -> Mapping[str, str]:
        """What programs are run with that the user did not call."""
        return command_environ(self.environ(config), config.command_environment, catalog.key_variables)

    async def _plug(self, place: ProjectPlace) -> PluginSet:
        """Bring the plugins of a place up to date."""
        return await self.plugins.renew(place, self.settings(place.directory, place.worktree))

    async def skills(self, place: ProjectPlace) -> FoundSkills:
        """The skills of a place, by name. What is wrong with a file is logged once. Raises Invalid."""
        found = await self._skills.skills(place, self.config(place).config)
        for problem in found.problems:
            if problem not in self._told_problems:
                self._told_problems.add(problem)
                log.warning("%s", problem)
        return found

    def _free(self, session_id: str) -> list[str]:
        """Where whole outputs are kept, and where the session keeps temporary files."""
        outputs = [str(self._outputs.place)] if self._outputs is not None else []
        with suppress(OSError):  # Commands are told why there is no directory for temporary files.
            return [*outputs, self.temporary.path(session_id)]
        return outputs

    def _own_settings(self, top: str) -> Iterator[str]:
        """Patterns of the user's configuration directories, as tools write paths."""
        with suppress(ValueError):  # Without a home there are none.
            named = map(Path, flags.CONFIG_DIR.values(self._environ))
            for place in (*(paths.config(self._environ, one) for one in (paths.PROGRAM, paths.OPENCODE)), *named):
                for pattern in (f"{place}/*", f"{os.path.realpath(place)}/*"):
                    yield from_top(pattern, top) or pattern

    def reads(self, session_id: str) -> SessionReads:
        """Which files a session has read in this process."""
        return self._reads.of(session_id)

    def _confine(
        self, config: Config, place: ProjectPlace, session_id: str, rules: Ruleset, approvals: Sequence[Rule]
    ) -> Confinement | None:
        """How the kernel confines the model's commands. Raises OSError without a place for temporary files."""
        policy = sandbox.policy(config.sandbox, place.directory, place.worktree, self._environ)
        if policy.mode == "off":
            return None
        return confinement(policy, rules, approvals, self.temporary.directory(session_id))

    def environ(self, config: Config) -> Mapping[str, str]:
        """What the user's own commands are run with: in the shell that is configured, if one is."""
        return {**self._environ, "SHELL": config.shell} if config.shell else self._environ

    def bounds(self, config: Config, session_id: str) -> Bounds:
        """The limits of the results of one turn of a session."""
        given = config.tool_output
        return Bounds(
            lines_max=given.max_lines or OUTPUT_LINES_MAX,
            bytes_max=given.max_bytes or OUTPUT_BYTES_MAX,
            keep=partial(self._outputs.keep, session_id=session_id) if self._outputs is not None else None,
        )

    def catalog(self, place: ProjectPlace) -> tuple[Config, Catalog]:
        """The configuration that holds in a place, and the models it knows."""
        known = self.config(place)
        return known.config, known.catalog

    async def resolve(self, directory: str) -> ResolvedDirectory:
        """What a session's directory is now. Raises Invalid if it leads elsewhere, or its configuration is wrong."""
        place = await stored_place(directory)
        await self._plug(place)
        return ResolvedDirectory(place, self.config(place))

    def config(self, place: ProjectPlace) -> DirectoryConfig:
        """What is configured in a place now. Raises Invalid if the configuration is wrong."""
        loaded = self.settings(place.directory, place.worktree)
        config = self.plugins.config(place.directory, loaded)
        known = self._known.pop(place.directory, None)
        if known is None or (known.config is not config and known.config != config):
            for where, names in loaded.left_out.items():
                log.warning(LEFT_OUT, where, ", ".join(names), place.directory)
            for warning in loaded.warnings:
                log.warning("%s", warning)
            found = configured_agents(config, self._environ)
            catalog = Catalog(config, refreshed=catalogue_file(self._environ))
            if (problem := default_agent_problem(found, config)) is not None:
                log.warning("%s", problem)
            known = DirectoryConfig(config, catalog, found)
        self._known[place.directory], self._places[place.directory] = known, place
        while len(self._known) > self._directories_max:
            oldest = next(iter(self._known))
            del self._known[oldest], self._places[oldest]
        return known

    def settings(self, directory: Path, worktree: Path) -> LoadedSettings:
        """The settings of a directory now. A file that no longer is right keeps its last good settings.

        The user is told so once. Raises Invalid if there are none.
        """
        loaded = self._reader.load(directory, worktree)
        if loaded.kept != self._told_kept.pop(directory, ()):
            for problem in loaded.kept:
                log.warning(KEPT, problem)
        if loaded.kept:
            self._told_kept[directory] = loaded.kept
        return loaded

    async def watch(self, sleep: Callable[[float], Awaitable[None]]) -> None:
        """Look at the settings of all places in use between turns, so that mistakes are told at once. Never ends."""
        while True:
            await sleep(SETTINGS_POLL_S)
            for place in list(self._places.values()):
                with suppress(Invalid):  # The next turn says so.
                    self.config(place)

    async def commands(self, place: ProjectPlace) -> dict[str, Command]:
        """The commands of a place, by name. Raises Invalid if the configuration is wrong."""
        await self._plug(place)
        skills, loaded = await self.skills(place), self.settings(place.directory, place.worktree)
        return known_commands(CommandPlaces(loaded, skills.skills, self.plugins.commands(place.directory, loaded)))

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
        named, _ = await self.plugins.now(place.directory).trigger(SMALL_MODEL, asked, SmallModelOutput())
        if named.model is not None:
            return choice.find(catalog, model_choice(named.model))
        return choice.small_model(catalog, config, used.provider_id) or choice.find(catalog, used)

    def _provider(self, endpoint: Endpoint) -> Provider:
        key = encode(endpoint)
        if key not in self._providers:
            self._providers[key] = self._transport(endpoint)
        return self._providers[key]

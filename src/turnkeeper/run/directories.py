"""Directories: what sessions in each may use: agents, tools, providers, limits and what confines commands."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

import anyio.lowlevel
import msgspec
from anyio.abc import TaskGroup

from turnkeeper.core import flags
from turnkeeper.core.command_environ import command_environ
from turnkeeper.core.limits import OUTPUT_BYTES_MAX, OUTPUT_LINES_MAX, SUBAGENT_DEPTH
from turnkeeper.core.permission import from_top
from turnkeeper.core.sandbox import Confinement, confinement
from turnkeeper.core.window import Window, window
from turnkeeper.model.agent import Agent
from turnkeeper.model.catalog import ModelInfo
from turnkeeper.model.command import Command
from turnkeeper.model.config import AskConfig, Config
from turnkeeper.model.message import ModelChoice
from turnkeeper.model.permission import Rule, Ruleset
from turnkeeper.model.skill import Skill
from turnkeeper.model.value import encode
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.plugin_set import NONE as NO_PLUGINS
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.providers import choice
from turnkeeper.providers.catalog import Catalog
from turnkeeper.providers.endpoint import Endpoint
from turnkeeper.providers.provider import Provider
from turnkeeper.run.commands import CommandPlaces, known_commands
from turnkeeper.run.configured import ConfiguredDirectories
from turnkeeper.run.delegation import Delegating
from turnkeeper.run.file_services import FileServices
from turnkeeper.run.mcp_places import McpPlaces
from turnkeeper.run.toolboxes import Toolboxes
from turnkeeper.run.turn_snapshots import OpenRepository, no_snapshots
from turnkeeper.tools.output import Bounds
from turnkeeper.tools.reads import ReadFiles, SessionReads
from turnkeeper.tools.services import ToolServices
from turnkeeper.tools.tool import AnyTool
from turnkeeper.tools.toolbox import Toolbox
from turnkeeper.workspace import paths, sandbox
from turnkeeper.workspace.config import ProgramSettings
from turnkeeper.workspace.lsp import LanguageServers
from turnkeeper.workspace.mcp_logins import McpLogins
from turnkeeper.workspace.mcp_server import McpServer
from turnkeeper.workspace.mcp_servers import McpServers
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.project import ProjectPlace, identify
from turnkeeper.workspace.secret_files import SecretFiles
from turnkeeper.workspace.settings_cache import DIRECTORIES_MAX
from turnkeeper.workspace.snapshots import Snapshots
from turnkeeper.workspace.temporary import TemporaryDirectories

Transport = Callable[[Endpoint], Provider]
"""Makes a provider for an endpoint."""


class DirectorySetup(msgspec.Struct, frozen=True):
    """Everything that sessions use in a directory, by its configuration: agents, tools, rules and providers."""

    agents: Mapping[str, Agent]
    toolbox: Toolbox
    find: Callable[[ModelChoice], ModelInfo]
    """Raises a Refusal that says what there is instead."""
    provider: Callable[[ModelInfo], Provider]
    instructions: tuple[str, ...] = ()
    skills: tuple[Skill, ...] = ()
    servers: tuple[McpServer, ...] = ()
    """The MCP servers, connected or not."""
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
    """The environment of the model's commands."""
    services: Callable[[str], ToolServices] = lambda session_id: ToolServices()
    """The services of a session's tools that live longer than a call."""
    confine: Callable[[str, Ruleset, Sequence[Rule]], Confinement | None] = lambda session_id, rules, approvals: None
    """How the kernel confines the commands of a session under these rules and approvals."""
    snapshots: OpenRepository = no_snapshots
    """Opens the shadow repository of the project."""
    ask: AskConfig = AskConfig()
    delegating: Delegating = Delegating()
    goes_on_when_rejected: bool = False
    plugins: PluginSet = NO_PLUGINS


class Directories(ConfiguredDirectories):
    """Builds the setup of directories from their configuration."""

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
        """``group`` runs language servers; without it none is started. Without ``snapshots`` none are taken.

        ``started_ns`` is when the program was started, by the clock of the file system; now by default.
        """
        super().__init__(
            environ,
            Toolboxes(tools, environ, kept_max=directories_max, started_ns=started_ns),
            directories_max=directories_max,
            group=group,
            started_ns=started_ns,
            own=own,
            plugins=plugins,
        )
        self._transport, self._outputs, self._snapshots = transport, outputs, snapshots
        self.temporary = TemporaryDirectories(environ)
        self._services = FileServices(LanguageServers(group), self.temporary, SecretFiles(environ))
        self._reads = ReadFiles()
        self.mcp = McpPlaces(McpServers(group, logins=McpLogins.of(environ)), self._mcp_setting)
        """The MCP servers of places."""
        self._providers: dict[bytes, Provider] = {}

    async def setup(self, place: ProjectPlace) -> DirectorySetup:
        """The current setup of sessions in this place. Raises Invalid if the configuration is wrong."""
        seen = await self.look(place)
        loaded, plugins, (config, catalog, known) = seen
        credentials, skills = self._auth.read(), await self.skills(place, seen)
        environ = self._command_environ(config, catalog)
        servers = await self.mcp.all.ready(place.directory, config, environ)

        def provider(model: ModelInfo) -> Provider:
            return self._provider(choice.endpoint(catalog.provider(model.provider_id), model, credentials))

        return DirectorySetup(
            agents=known,
            toolbox=await self._toolboxes.of(
                place, loaded.directories, servers, [one.tool for one in plugins.contributed.tools]
            ),
            servers=servers,
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

    async def preload(self, directory: Path) -> None:
        """Load what the first turn in a directory will need, in steps, so that other tasks can run between them.

        Raises a Refusal where that turn would be refused.
        """
        place = await identify(directory)
        model = self.model(place, self.default_model(place))
        await anyio.lowlevel.checkpoint()
        setup = await self.setup(place)
        await anyio.lowlevel.checkpoint()
        setup.toolbox.definitions()
        await anyio.lowlevel.checkpoint()
        setup.provider(model)

    def close_tools(self) -> None:
        """End the background work of tools that were loaded from files."""
        self._toolboxes.close()

    def _mcp_setting(self, place: ProjectPlace) -> tuple[Config, Mapping[str, str]]:
        config, catalog, _ = self.config(place)
        return config, self._command_environ(config, catalog)

    def _command_environ(self, config: Config, catalog: Catalog) -> Mapping[str, str]:
        """The environment of programs that the user did not start."""
        return command_environ(self.environ(config), config.command_environment, catalog.key_variables)

    def _free(self, session_id: str) -> list[str]:
        """The directories of whole outputs and of the session's temporary files."""
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

    def bounds(self, config: Config, session_id: str) -> Bounds:
        """The limits of the results of one turn of a session."""
        given = config.tool_output
        return Bounds(
            lines_max=given.max_lines or OUTPUT_LINES_MAX,
            bytes_max=given.max_bytes or OUTPUT_BYTES_MAX,
            keep=partial(self._outputs.keep, session_id=session_id) if self._outputs is not None else None,
        )

    async def commands(self, place: ProjectPlace) -> dict[str, Command]:
        """The commands of a place, by name. Raises Invalid if the configuration is wrong."""
        seen = await self.look(place)
        skills, loaded = await self.skills(place, seen), seen.loaded
        plugged, served = self.plugins.commands(place.directory, loaded), await self.mcp.commands(place)
        return known_commands(CommandPlaces(loaded, skills.skills, plugged, served))

    def _provider(self, endpoint: Endpoint) -> Provider:
        key = encode(endpoint)
        if key not in self._providers:
            self._providers[key] = self._transport(endpoint)
        return self._providers[key]

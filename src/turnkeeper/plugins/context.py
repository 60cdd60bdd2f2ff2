"""The context of a plugin: its directory, and its registrations, which are removed with the plugin."""

import logging
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import msgspec

from turnkeeper.context.component import ContextComponent, Sample, Sampling
from turnkeeper.context.components import Components
from turnkeeper.core.settings import checked, merged
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.value import JsonObject
from turnkeeper.outside_code.threads import OutsideThreads
from turnkeeper.plugins.hooks import NAMES, name_of
from turnkeeper.registry import Registration, Registry
from turnkeeper.tools.custom import Function, tool
from turnkeeper.tools.isolation import isolated
from turnkeeper.tools.tool import AnyTool, Tool

R = TypeVar("R")

Handler: TypeAlias = Callable[..., object]
"""A function of a hook."""


class Entry(NamedTuple):
    """Settings of a provider, a command or an agent under its name."""

    name: str
    settings: JsonObject
    plugin: str


class PluginTool(NamedTuple):
    """A tool, and the plugin that registered it."""

    tool: AnyTool
    plugin: str


class Contributions:
    """The registries of the plugins of one place, one for each kind of registration."""

    def __init__(self) -> None:
        self.tools: Registry[PluginTool] = Registry("tool of a plugin")
        self.components = Components()
        self.providers: Registry[Entry] = Registry("provider of a plugin")
        self.keys: Registry[Entry] = Registry("API key of a plugin")
        self.commands: Registry[Entry] = Registry("command of a plugin")
        self.agents: Registry[Entry] = Registry("agent of a plugin")

    def settings(self, plugin: str) -> JsonObject:
        """The providers, agents and commands of a plugin as settings."""
        given = {"provider": self.providers, "agent": self.agents, "command": self.commands}
        found = {
            key: {one.name: one.settings for one in entries if one.plugin == plugin} for key, entries in given.items()
        }
        keys = {"provider": {one.name: one.settings for one in self.keys if one.plugin == plugin}}
        return {key: entries for key, entries in merged([found, keys]).items() if entries}


class PluginContext:
    """What a plugin is given when it is made.

    Each ``register_*`` adds something for as long as the plugin is loaded, and gives a Registration whose ``close``
    removes it earlier. Raises Conflict for a name that another plugin uses, and Invalid for what cannot be registered.
    """

    def __init__(
        self,
        name: str,
        directory: Path,
        worktree: Path,
        environ: Mapping[str, str],
        contributed: Contributions,
        threads: OutsideThreads,
    ) -> None:
        self.name = name
        """The name of the plugin."""
        self.directory = directory
        """The directory of the sessions that the plugin is loaded for."""
        self.worktree = worktree
        """The top of the project; the root of the file system where there is none."""
        self.environ = environ
        self.log = logging.getLogger(f"turnkeeper.plugin.{name}")
        self._contributed, self._threads = contributed, threads
        self._scope, self._numbers = ExitStack(), count()
        self._is_closed = False
        self._handlers: Registry[tuple[str, Handler]] = Registry("hook")
        self.noted: set[str] = set()
        """Hooks that are objects, and were registered."""

    def register_tool(self, given: AnyTool | Function, *, name: str | None = None) -> Registration[PluginTool]:
        """Add a tool: a function, as for ``turnkeeper.tool``, or a Tool."""
        made = given if isinstance(given, Tool) else tool(name=name)(given)
        brought = PluginTool(isolated(made, self._threads), self.name)
        return self._kept(self._contributed.tools.register(made.name, brought))

    def register_component(self, component: ContextComponent) -> Registration[ContextComponent]:
        """Add a Context Component. When it is removed, the model is told so."""
        return self._kept(self._contributed.components.register(self._isolated(component)))

    def register_provider(self, provider_id: str, settings: JsonObject) -> Registration[Entry]:
        """Add a provider, with settings as in ``provider`` of the configuration, which overrides them."""
        return self._entry(self._contributed.providers, "provider", provider_id, settings)

    def register_key(self, provider_id: str, key: str) -> Registration[Entry]:
        """Add the API key of a provider. One of the configuration is stronger."""
        if not isinstance(key, str):
            raise Invalid(f"the API key of {provider_id!r} is text, not {type(key).__name__}")
        return self._entry(self._contributed.keys, "provider", provider_id, {"options": {"apiKey": key}})

    def register_command(self, name: str, settings: str | JsonObject) -> Registration[Entry]:
        """Add a command, by its template or with settings as in ``command`` of the configuration."""
        given = {"template": settings} if isinstance(settings, str) else settings
        return self._entry(self._contributed.commands, "command", name, given)

    def register_agent(self, name: str, settings: JsonObject) -> Registration[Entry]:
        """Add an agent, with settings as in ``agent`` of the configuration, which overrides them."""
        return self._entry(self._contributed.agents, "agent", name, settings)

    def register_hook(self, name: str, handler: Handler) -> Registration[tuple[str, Handler]]:
        """Add a function to a hook, after those that the plugin has there."""
        found = name_of(name)
        if found is None:
            raise Invalid(f"{name!r} is no hook; there are: {', '.join(sorted(NAMES))}")
        if not callable(handler):
            raise Invalid(f"the hook {name!r} takes a function, not {handler!r:.80}")
        return self._kept(self._handlers.register(f"{next(self._numbers):06}", (found, handler)))

    def handlers(self, name: str) -> list[Handler]:
        """The functions of a hook, in the order of their registration."""
        return [handler for hook, handler in self._handlers if hook == name]

    @property
    def hook_names(self) -> list[str]:
        """The hooks that the plugin has."""
        return sorted({*self.noted, *(hook for hook, _ in self._handlers)})

    def close(self) -> None:
        """Remove everything that was registered. What code of the plugin registers after that is refused."""
        self._is_closed = True
        self._scope.close()
        self.noted.clear()

    def _isolated(self, component: ContextComponent) -> ContextComponent:
        """The component, loaded on the threads of the plugin. One that never waits has no task to wait in."""
        if component.waits is not True:
            return component

        async def load(sampling: Sampling) -> Sample:
            return await self._threads.call(component.load, sampling)  # type: ignore[return-value] # It is checked.

        return msgspec.structs.replace(component, load=load)

    def _entry(self, registry: Registry[Entry], kind: str, name: str, settings: JsonObject) -> Registration[Entry]:
        if not isinstance(name, str):
            raise Invalid(f"the name of a {kind} is text, not {name!r:.80}")
        if not isinstance(settings, Mapping):
            raise Invalid(f"the settings of {name!r} are an object, not {settings!r:.80}")
        plain = msgspec.to_builtins(settings)
        checked({kind: {name: plain}}, f"the {kind} {name!r}")
        return self._kept(registry.register(name, Entry(name, plain, self.name)))

    def _kept(self, registration: Registration[R]) -> Registration[R]:
        if self._is_closed:  # A thread that could not be stopped goes on with code of the plugin.
            registration.close()
            raise Invalid(f"the plugin {self.name!r} is removed, and registers nothing more")
        self._scope.callback(registration.close)
        return registration

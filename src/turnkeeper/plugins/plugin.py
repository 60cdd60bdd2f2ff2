"""A plugin: made by its function, with the hooks that it has. A call of a hook is contained and has a time limit."""

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final

import anyio
import msgspec

from turnkeeper.core.limits import HOOK_S, PLUGIN_LOAD_S
from turnkeeper.model.plugin import PluginState, PluginStatus
from turnkeeper.model.refusal import Invalid
from turnkeeper.outside_code import contained
from turnkeeper.outside_code.threads import OutsideThreads
from turnkeeper.plugins.context import Handler, PluginContext
from turnkeeper.plugins.hooks import AUTH, NAMES, PROVIDER, TOOL, name_of
from turnkeeper.plugins.sources import PluginFunction, PluginSource

_READ: Final = frozenset({TOOL, PROVIDER, AUTH})
"""Hooks that are objects instead of functions."""


class Limits(msgspec.Struct, frozen=True):
    """The time limits of plugins."""

    hook_s: float = HOOK_S
    load_s: float = PLUGIN_LOAD_S


class Plugin:
    """A plugin that is loaded, or the reason why it is not."""

    def __init__(
        self,
        source: PluginSource,
        context: PluginContext,
        threads: OutsideThreads,
        limits: Limits,
        now: Callable[[], int],
    ) -> None:
        self.source, self.context = source, context
        self._threads, self._limits, self._now = threads, limits, now
        self.state: PluginState = "left out" if source.problem is not None else "loaded"
        self.error = source.problem
        """The last error."""
        self._failures = 0
        self._failed_at: int | None = None
        self._hung: set[str] = set()
        """Hooks that exceeded their time; they are not called again."""
        self._told: dict[str, tuple[str, str]] = {}
        """The last published message about each hook, and its session."""

    @property
    def name(self) -> str:
        """The name of the plugin."""
        return self.source.name

    @property
    def hooks(self) -> list[str]:
        """The names of the plugin's hooks."""
        return self.context.hook_names

    @property
    def status(self) -> PluginStatus:
        """The state of the plugin, with its failures."""
        return PluginStatus(
            name=self.name,
            kind=self.source.kind,
            source=self.source.where,
            hooks=tuple(self.hooks),
            state=self.state,
            error=self.error,
            failures=self._failures,
            failed_at=self._failed_at,
            stopped=tuple(sorted(self._hung)),
        )

    def handlers(self, hook: str) -> list[Handler]:
        """The functions of a hook; none once it hung."""
        return [] if hook in self._hung else self.context.handlers(hook)

    async def load(self, find: Callable[[], PluginFunction]) -> None:
        """Run the module and make the plugin. A failure is stored in ``error``, and its registrations are removed."""
        options = msgspec.json.decode(self.source.options, type=dict[str, object])

        async def made() -> object:
            function = await self._threads.call(find)
            assert callable(function)
            found = await self._threads.call(function, self.context, options)
            return await self._threads.call(self._take, found)

        try:
            await self._bounded(made, self._limits.load_s)
        except Exception as error:
            # The module is a user's program: the others must work also if it raises anything.
            self.state = "failed"
            self._note(_words(error))
            await self.aclose()

    async def call(self, hook: str, handler: Handler, *given: object) -> object:
        """Call a function of a hook. Raises what it raises, and TimeoutError if it takes too long."""
        try:
            return await self._bounded(partial(self._threads.call, handler, *given), self._limits.hook_s)
        except TimeoutError:
            # A hanging call may block its thread for ever, so the hook is not called again.
            self._hung.add(hook)
            raise

    async def aclose(self) -> None:
        """Remove all registrations, and end the threads of the plugin."""
        self.context.close()
        await self._threads.aclose()

    def failed(self, hook: str, error: Exception, session_id: str = "") -> str | None:
        """Record the failure of a hook; returns the message, or None if it repeats the hook's last one in a session.

        Some hooks are called for each tool of each request, and one for each event: the message would be repeated
        hundreds of times.
        """
        self._note(f"{hook}: {_words(error)}")
        left = "; the hook is not called again until the plugin is loaded again" if hook in self._hung else ""
        words = f"the plugin {self.name!r} ({self.source.where}) failed in {self.error}{left}"
        is_news = self._told.get(hook) != (words, session_id)
        self._told[hook] = words, session_id
        return words if is_news else None

    def _note(self, error: str) -> None:
        self.error, self._failed_at = error, self._now()
        self._failures += 1

    async def _bounded(self, work: Callable[[], Awaitable[object]], limit_s: float) -> object:
        late = anyio.move_on_after(limit_s)
        with late, contained():
            return await work()
        assert late.cancelled_caught, "nothing else ends the block without a result"
        raise TimeoutError(f"it took more than {limit_s:g} s")

    def _take(self, made: object) -> None:
        """Register the hooks in the result of the plugin function: an object with methods, or a mapping."""
        for name, value in _members(made):
            hook = name_of(name)
            if hook is None:
                raise Invalid(f"{name!r} is no hook; there are: {', '.join(sorted(NAMES))}")
            if hook in _READ:
                self._read(hook, value)
            else:
                self.context.register_hook(hook, value)  # type: ignore[arg-type] # It checks that it is a function.

    def _read(self, hook: str, value: object) -> None:
        found = value() if callable(value) else value
        if not isinstance(found, Mapping):
            raise Invalid(f"the hook {hook!r} is an object by name, not {found!r:.80}")
        for name, one in found.items():
            match hook:
                case "tool":
                    self.context.register_tool(one, name=name)
                case "provider":
                    self.context.register_provider(name, one)
                case _:
                    self.context.register_key(name, one() if callable(one) else one)
            self.context.noted.add(hook)


def _members(made: object) -> list[tuple[str, object]]:
    if made is None:
        return []
    if isinstance(made, Mapping):
        return [(str(name), value) for name, value in made.items() if value is not None]
    public = (name for name in dir(made) if not name.startswith("_"))
    return [(name, value) for name in public if name_of(name) and (value := getattr(made, name)) is not None]


def _words(error: Exception) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")

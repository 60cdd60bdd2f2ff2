"""The plugins of one place, in their order: each hook calls them one after the other.

A plugin gets a copy of the output. Its changes are used if all types are right; if the plugin raises, hangs or breaks
a type, the output of the plugin before it is kept, the problem is published, and work goes on.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Generic, NamedTuple, TypeVar

import msgspec

from turnkeeper.core.settings import checked
from turnkeeper.model.value import JsonObject, Value
from turnkeeper.plugins.context import Contributions
from turnkeeper.plugins.hooks import CONFIG, DISPOSE, EVENT, Hook
from turnkeeper.plugins.payloads import EventInput, Output
from turnkeeper.plugins.plugin import Plugin

I = TypeVar("I", bound=Value)  # noqa: E741 # As in hooks.py.
O = TypeVar("O", bound=Output)  # noqa: E741

log = logging.getLogger(__name__)


class Changed(NamedTuple, Generic[O]):
    """An output, and the plugins that changed it."""

    output: O
    by: tuple[str, ...] = ()


def _unheard(session_id: str, problem: str) -> None:
    pass


class PluginSet:
    """The plugins of one place."""

    def __init__(
        self,
        plugins: Iterable[Plugin] = (),
        contributed: Contributions | None = None,
        tell: Callable[[str, str], None] = _unheard,
    ) -> None:
        """``tell`` receives problems: the session (or an empty text), and the message."""
        self.plugins: Sequence[Plugin] = tuple(plugins)
        self.contributed = contributed or Contributions()
        self._tell = tell

    def has(self, hook: str) -> bool:
        """Whether a plugin has a hook."""
        return any(plugin.handlers(hook) for plugin in self.plugins)

    async def trigger(self, hook: Hook[I, O], input: I, output: O, *, session_id: str = "") -> Changed[O]:
        """Call a hook of all plugins, one after the other; the final output."""
        by: list[str] = []
        for plugin in self.plugins:
            for handler in plugin.handlers(hook.name):
                before = msgspec.json.encode(output)
                given = msgspec.json.decode(before, type=hook.output)
                with _contained(partial(self.problem, plugin, hook.name, session_id=session_id)):
                    await plugin.call(hook.name, handler, input, given)
                    after = msgspec.json.encode(given)
                    if after != before:
                        made = msgspec.json.decode(after, type=hook.output)
                        hook.check(made)
                        output = made
                        by += [plugin.name] if plugin.name not in by else []
        return Changed(output, tuple(by))

    async def event(self, event: EventInput) -> None:
        """Pass an event to the plugins. A failure is only logged: as an event it could fail again, without end."""
        for plugin in self.plugins:
            for handler in plugin.handlers(EVENT):
                with _contained(partial(self._log_failure, plugin, EVENT)):
                    await plugin.call(EVENT, handler, event)

    async def configured(self, settings: JsonObject) -> list[tuple[Plugin, JsonObject]]:
        """The settings after each plugin that was called with them, in order; ``settings`` itself is not changed.

        The result of a plugin is used if all types are right.
        """
        made: list[tuple[Plugin, JsonObject]] = []
        for plugin in self.plugins:
            for handler in plugin.handlers(CONFIG):
                given = msgspec.json.decode(msgspec.json.encode(settings))
                with _contained(partial(self.problem, plugin, CONFIG)):
                    await plugin.call(CONFIG, handler, given)
                    settings = checked(msgspec.json.decode(msgspec.json.encode(given)), "the settings it made")
                    made.append((plugin, settings))
        return made

    async def dispose(self, plugin: Plugin) -> None:
        """Call the dispose hook of a plugin, and remove its registrations."""
        for handler in plugin.handlers(DISPOSE):
            with _contained(partial(self._log_failure, plugin, DISPOSE)):
                await plugin.call(DISPOSE, handler)
        await plugin.aclose()

    def unusable(self, names: Sequence[str], hook: str, error: Exception, session_id: str = "") -> None:
        """Report that the output of these plugins cannot be used here, for example an unknown model."""
        for plugin in self.plugins:
            if plugin.name in names:
                self.problem(plugin, hook, error, session_id)

    def problem(self, plugin: Plugin, hook: str, error: Exception, session_id: str = "") -> None:
        """Log and publish the failure of a hook; not twice in a row."""
        if (words := plugin.failed(hook, error, session_id)) is not None:
            self._log(words)
            self._tell(session_id, words)

    def _log_failure(self, plugin: Plugin, hook: str, error: Exception) -> None:
        self._log(plugin.failed(hook, error))

    def _log(self, words: str | None) -> None:
        if words is not None:
            log.warning("%s", words)


@contextmanager
def _contained(report: Callable[[Exception], None]) -> Iterator[None]:
    """Report an exception of a plugin and go on: it is a program of the user, and must not end a turn."""
    try:
        yield
    except Exception as error:
        report(error)


NONE = PluginSet()
"""The empty set of plugins."""

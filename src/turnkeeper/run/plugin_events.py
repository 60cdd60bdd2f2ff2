"""Events for plugins: each plugin gets the events of its directory. A failure of a plugin is an event, too."""

import logging
from collections.abc import Callable
from pathlib import Path

import anyio
from anyio.abc import TaskGroup

from turnkeeper.bus import Bus, Overflow, Subscription
from turnkeeper.model.failure import UnknownData, UnknownFailure
from turnkeeper.model.notification import AnyNotification, Delta, Notification, SessionFailed
from turnkeeper.plugins.hooks import EVENT
from turnkeeper.plugins.host import PluginHost
from turnkeeper.plugins.payloads import EventInput
from turnkeeper.plugins.plugin_set import PluginSet
from turnkeeper.run.settings import Settings
from turnkeeper.workspace.tool_files import ToolTrust

log = logging.getLogger(__name__)

GRACE_S = 1.0
"""How long the delivery of the remaining events may take when the runtime closes."""


class PluginEvents:
    """Connects plugins with the bus."""

    def __init__(self, bus: Bus[AnyNotification] | None, group: TaskGroup, now: Callable[[], int]) -> None:
        self._bus, self._group, self._now = bus, group, now
        self._host: PluginHost | None = None
        self._heard: dict[Path, _Listening] = {}

    def host(self, settings: Settings) -> PluginHost:
        """The plugins of this process."""
        self._host = PluginHost(
            settings.environ,
            ToolTrust(settings.environ, started_ns=settings.started_ns),
            tell=self._tell,
            renewed=self._renewed,
            limits=settings.plugin_limits,
            now=self._now,
        )
        return self._host

    async def aclose(self) -> None:
        """Tell no more events, and then all plugins that they leave."""
        with anyio.move_on_after(GRACE_S):
            for listening in self._heard.values():
                listening.notifications.close()
                await listening.done.wait()
        for listening in self._heard.values():
            listening.scope.cancel()
        self._heard.clear()
        if self._host is not None:
            await self._host.aclose()

    def _tell(self, directory: Path, session_id: str, problem: str) -> None:
        if self._bus is not None:
            error = UnknownFailure(data=UnknownData(message=problem))
            properties = {"error": error, **({"sessionID": session_id} if session_id else {})}
            told = SessionFailed(
                type="session.error", session_id=session_id, directory=str(directory), seq=0, properties=properties
            )
            self._bus.publish(told)

    def _renewed(self, directory: Path, plugins: PluginSet) -> None:
        """Let other plugins hear from now on what happens in a directory."""
        if (before := self._heard.pop(directory, None)) is not None:
            before.scope.cancel()
        if self._bus is not None and plugins.has(EVENT):
            self._heard[directory] = listening = _Listening(self._bus, str(directory), plugins)
            self._group.start_soon(listening.run)


class _Listening:
    """Tells the plugins of a directory what happens in it."""

    def __init__(self, bus: Bus[AnyNotification], directory: str, plugins: PluginSet) -> None:
        self._bus, self._directory, self._plugins = bus, directory, plugins
        self.scope, self.done = anyio.CancelScope(), anyio.Event()
        self.notifications = self._subscribe()

    async def run(self) -> None:
        """Tell events until the subscription is closed."""
        try:
            with self.scope:
                while not await self._all_told():
                    self.notifications = self._subscribe()
        finally:
            self.done.set()

    async def _all_told(self) -> bool:
        """Tell events; False if there were too many, and it has to begin again."""
        try:
            async with self.notifications as notifications:
                async for one in notifications:
                    if not isinstance(one, Delta):
                        await self._plugins.event(_event(one))
        except Overflow as error:
            log.warning("plugins of %s are too slow for its events and miss some: %s", self._directory, error)
            return False
        return True

    def _subscribe(self) -> Subscription[AnyNotification]:
        # Pieces of text are left out: there are too many of them, and the whole text follows.
        return self._bus.subscribe(match=lambda one: _is_told(one, self._directory))


def _is_told(one: AnyNotification, directory: str) -> bool:
    return one.directory == directory and not isinstance(one, Delta)


def _event(one: Notification) -> EventInput:
    return EventInput(id=one.id, type=one.type, session_id=one.session_id, properties=one.properties)

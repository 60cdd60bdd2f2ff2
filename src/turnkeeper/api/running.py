"""Running: prompts, runs, stopping and recovery: the methods that need the runtime."""

import os
import warnings
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
from anyio import to_thread
from anyio.abc import TaskGroup

from turnkeeper.api.records import Records
from turnkeeper.bus import Bus, Subscription
from turnkeeper.core.arguments import checked
from turnkeeper.core.limits import STOP_S
from turnkeeper.model.message import ModelName, model_choice
from turnkeeper.model.message_with_parts import MessageWithParts
from turnkeeper.model.notification import AnyNotification
from turnkeeper.model.refusal import Invalid
from turnkeeper.model.session import Session
from turnkeeper.sessions import remove
from turnkeeper.store.store import Store
from turnkeeper.workspace.outputs import OutputFiles
from turnkeeper.workspace.project import stored_place

if TYPE_CHECKING:
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.interop.remote_share import RemoteShares
    from turnkeeper.model.cluster import ClusterReport
    from turnkeeper.model.config import Config
    from turnkeeper.model.prompt import Prompt, Receipt
    from turnkeeper.registry import Registration
    from turnkeeper.run.coordinator import Outcome
    from turnkeeper.run.recover import Failed, Left, Recovery
    from turnkeeper.run.runtime import Runtime, Settings
    from turnkeeper.sessions.compact import Compacted
    from turnkeeper.workspace.project import ProjectPlace


@checked
class Running(Records):
    """The methods that run sessions. Imports are inside of them, because programs that only read should start fast."""

    def __init__(
        self,
        store: Store,
        bus: "Bus[AnyNotification]",
        directory: Path,
        settings: "Settings | Callable[[], Settings] | None" = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(store, directory)
        self.group: TaskGroup | None = None
        """The task group of drains; None if this store was opened without a runtime."""
        self._bus, self._settings, self._given_environ = bus, settings, environ
        self._running: Runtime | None = None

    @property
    def runtime(self) -> "Runtime":
        """The runtime of this process, created at the first use."""
        if self._running is None:
            # Imported here, because programs that only read sessions should start fast.
            from turnkeeper.run.runtime import Runtime, Settings
            from turnkeeper.sessions.child import CalledSessions

            assert self.group is not None, "the store was opened without a runtime"
            settings = self._settings() if callable(self._settings) else self._settings
            called = CalledSessions(self.store, lambda: self.runtime)
            self._running = Runtime(
                self.store, self.group, self.store.journal.fanout.tell, settings or Settings(), called, self._bus
            )
        return self._running

    @property
    def running(self) -> frozenset[str]:
        """The sessions that this process runs."""
        return self._running.active if self._running is not None else frozenset()

    @property
    def bus(self) -> "Bus[AnyNotification]":
        """The bus of notifications, for metrics."""
        return self._bus

    def context(self, component: "ContextComponent") -> "Registration[ContextComponent]":
        """Add a Context Component to every session that this process runs: ``with tk.context(component): ...``.

        The model gets it at the next boundary. Leaving the scope removes it; a reloaded plugin registers it again.
        """
        return self.runtime.components.register(component)

    async def prompt(self, session_id: str, prompt: "str | Prompt", *, resume: bool = True) -> "Receipt":
        """Admit a prompt, durably, and start running the session unless ``resume`` is False.

        Raises Elsewhere, and admits nothing, if only hosts with another label may run the session.
        """
        from turnkeeper.model.prompt import Prompt, TextInput
        from turnkeeper.sessions import prompt as prompting

        if isinstance(prompt, str):
            prompt = Prompt(parts=(TextInput(text=prompt),))
        runs = resume and not prompt.no_reply
        if runs:
            await self.runtime.lease_keeper.host.check_prompt(session_id)
        receipt = await prompting.prompt(self.store, self.runtime, session_id, prompt)
        if runs:
            await self.runtime.request(session_id)
        return receipt

    async def withdraw(self, session_id: str, message_id: str) -> MessageWithParts:
        """Withdraw a prompt that waits in the inbox, and return it. Raises Conflict if it was promoted."""
        from turnkeeper.sessions import withdraw

        return await withdraw.withdraw(self.store, session_id, message_id)

    async def shell(
        self, session_id: str, command: str, *, agent: str | None = None, model: ModelName | None = None
    ) -> MessageWithParts:
        """Run a shell command of the user in an idle session. Its output becomes part of the history.

        No model is asked. Raises Busy while the session runs. A prompt that arrives meanwhile is run afterwards.
        """
        from turnkeeper.sessions import shell

        chosen = model_choice(model) if model is not None else None
        session = await self.store.queries.session(session_id)
        place = await stored_place(session.directory)
        return await shell.shell(self.store, self.runtime, place, session, command, agent=agent, model=chosen)

    async def run(self, session_id: str, *, resume: bool = False) -> "Outcome":
        """Run a session until it rests. ``resume`` adds a turn if the last one failed or was stopped."""
        await self.store.queries.state(session_id)
        return await self.runtime.run(session_id, resume=resume)

    async def compact(
        self, session_id: str, *, force: bool = False, auto: bool = False, model: ModelName | None = None
    ) -> "Compacted":
        """Replace older history by a Summary for the model, if the session is large enough. ``recall`` still reads it.

        ``force`` also compacts a small session; ``auto`` continues its work afterwards. Raises Busy while it runs.
        """
        from turnkeeper.sessions import compact

        chosen = model_choice(model) if model is not None else None
        session = await self.store.queries.session(session_id)
        place = await stored_place(session.directory)
        done = await compact.compact(self.store, self.runtime, place, session, force=force, auto=auto, model=chosen)
        if auto and done.summary is not None:
            await self.runtime.request(session_id)
        return done

    async def wait(self, session_id: str) -> "Outcome":
        """Wait until a session rests, also if another process runs it.

        The outcome has the kind ``abandoned`` if the process that ran the session died: see ``is_abandoned``.
        """
        from turnkeeper.sessions import wait

        return await wait.wait(self.store, self.runtime, session_id)

    async def wait_family(self, session_id: str) -> "Outcome":
        """Wait as ``wait`` does, and also for the Child Sessions that work for the session in the background.

        The outcome has the kind ``abandoned`` if one of them was cut off: ``recover`` reports it to the session.
        """
        from turnkeeper.sessions import wait

        return await wait.wait_family(self.store, self.runtime, session_id)

    async def is_abandoned(self, session_id: str) -> bool:
        """Whether the process that ran a session died. The status stays busy until the open turn is closed.

        ``run`` closes the turn and answers waiting prompts, and with ``resume`` continues the turn that was cut off.
        ``abort`` only closes the turn. ``recover`` does either for all such sessions.
        """
        from turnkeeper.sessions import wait

        owner = (await self.store.queries.state(session_id)).owner
        here = self._running.owner if self._running is not None else None
        return owner is not None and session_id not in self.running and wait.is_abandoned(owner, here)

    async def stop(self, session_id: str | None = None, *, timeout_s: float = STOP_S) -> bool:
        """Stop a session and wait until its turn is settled, or close the turn that a dead process left open.

        Without a session: stop all sessions that this process runs, for at most ``timeout_s``. Returns whether there
        was something to stop. A session that another process runs is stopped by that one. Raises Busy if it does not
        do so in time, or is of a version that cannot be asked.
        """
        if session_id is not None:
            from turnkeeper.run.stop_elsewhere import stop_elsewhere
            from turnkeeper.sessions import abort

            here = self._running.owner if self._running is not None else None
            return (
                await self._interrupt(session_id)
                or await stop_elsewhere(self.store, session_id, here, self._interrupt)
                or await abort.close(self.store, session_id, self.stop)
            )
        was_running = bool(self.running)
        if self._running is not None:
            await self._running.aclose(timeout_s)
        return was_running

    async def end_calls(self) -> None:
        """Wait a bounded time for tools that ignored an interrupt. Those that do not end are named in a warning."""
        if self._running is not None:
            await self._running.end_calls()

    async def interrupt(self, session_id: str) -> bool:
        """Deprecated: use ``stop``. Returns False if this process does not run the session."""
        warnings.warn("interrupt is deprecated; use stop", DeprecationWarning, stacklevel=2)
        return await self._interrupt(session_id)

    async def abort(self, session_id: str) -> bool:
        """Deprecated: use ``stop``, which does the same."""
        warnings.warn("abort is deprecated; use stop", DeprecationWarning, stacklevel=2)
        return await self.stop(session_id)

    async def _interrupt(self, session_id: str) -> bool:
        if self._running is not None and await self._running.interrupt(session_id):
            return True
        await self.store.queries.state(session_id)
        return False

    def subscribe(self, *, session_id: str | None = None, size: int = 1024) -> Subscription[AnyNotification]:
        """New notifications: ``async with tk.subscribe() as notifications: async for one in notifications``.

        Each kind has its class, for ``match``. They are those of this process; ``tail`` follows the log of a session
        that another process runs.
        """
        if size < 1:
            raise Invalid(f"a subscriber needs room for at least one notification, not {size}")
        self._opener.check()  # Nothing is ever published in a forked process.
        match = (lambda one: one.session_id == session_id) if session_id is not None else None
        return self._bus.subscribe(match=match, size=size)

    async def wait_upkeep(self, session_id: str) -> None:
        """Wait for the background work of a session, such as writing its title."""
        await self.store.queries.state(session_id)
        if self._running is not None:
            await self._running.wait_upkeep(session_id)

    async def recover(
        self,
        policy: "Recovery | None" = None,
        *,
        ask: Callable[[str], Awaitable[bool]] | None = None,
        failed: "Failed | None" = None,
    ) -> Sequence[str]:
        """Close the turns that dead processes left open, and continue sessions by policy; the ids of the sessions.

        Those that could not be closed are added to ``failed``, a dict, with the reasons.
        """
        return await self.runtime.failover.recover(policy, ask=ask, failed=failed)

    async def take_over(self) -> "Sequence[Left]":
        """Close the turns that dead processes left open: the first half of ``recover``."""
        if not await self.store.engine.scan(("busy",), limit=1):
            return ()  # No turn is open, so the runtime need not be imported.
        return await self.runtime.failover.take_over()

    async def resume_taken_over(self, left: "Sequence[Left]") -> None:
        """Run the sessions that were taken over: the second half of ``recover``. What stops one of them is logged."""
        if left:
            await self.runtime.failover.resume_in_background(left)

    async def cluster(self) -> "ClusterReport":
        """The processes that share the store, the sessions they run, and what waits for a worker."""
        from turnkeeper.sessions import cluster

        return await cluster.report(self.store)

    async def catch_up(self) -> None:
        """Read what other processes wrote while there was no subscriber, so that the first one gets only new events.

        Does nothing if there is a subscriber: ``follow`` has read it then.
        """
        from turnkeeper.store.follower import catch_up

        if not self._bus.subscribers:
            await catch_up(self.store, self.running, is_heard=False)

    async def follow(self) -> None:
        """Publish to subscribers what other processes write to the sessions that they run. Never ends."""
        from turnkeeper.store.follower import follow

        await follow(self.store, lambda: self._bus.subscribers > 0, lambda: self.running)

    async def watch_leases(self) -> None:
        """Take over the sessions of processes that die or fall silent, and run them on. Never ends."""
        await self.runtime.failover.watch()

    async def remove(self, session_id: str) -> Sequence[Session]:
        """Remove a session and its descendants with all their data; the removed sessions, children first.

        Their links on other hosts are removed first. If a host cannot be reached, nothing is removed: ``unshare`` with
        ``forget`` gives such a link up.
        """
        await self._end_remote_shares(session_id)
        if self._running is not None:
            await self._running.forget(session_id)
        removed = await remove.remove(self.store, session_id, self._bus.publish, self._outputs())
        from turnkeeper.workspace import snapshot_upkeep

        await to_thread.run_sync(snapshot_upkeep.forget, self._environ, [session.id for session in removed])
        return removed

    async def _end_remote(self, session_id: str) -> None:
        hosted = await self.store.queries.hosted(session_id)
        if hosted is not None and hosted.remote is not None:
            await self.remote_shares.remove(hosted.remote)

    async def _end_remote_shares(self, session_id: str) -> None:
        """Remove the links to a session and its descendants from other hosts. Raises Invalid if a host does not."""
        if shared := set(await self.store.queries.remote_shares()):
            below = await self.children(session_id, recursive=True)
            for one in (session_id, *(child.id for child in below)):
                if one in shared:
                    await self._end_remote(one)

    @cached_property
    def remote_shares(self) -> "RemoteShares":
        """The sessions of this store that are shared on other hosts."""
        from turnkeeper.interop.remote_share import RemoteShares

        return RemoteShares(self.store, self._environ, anyio.sleep)

    def _outputs(self) -> OutputFiles | None:
        """The files with the complete outputs of tools."""
        if self._running is not None:
            return self._running.outputs
        return OutputFiles.of(self._environ, self.store.mint.now, self.store.mint.ascending)

    async def _config(self, place: "ProjectPlace") -> "Config":
        """The settings of a directory: with those of the program, if this store can run sessions."""
        if self.group is not None:
            return self.runtime.directories.settings(place.directory, place.worktree).config
        from turnkeeper.workspace import config

        return (await to_thread.run_sync(config.load, place.directory, place.worktree, self._environ)).config

    @property
    def _environ(self) -> Mapping[str, str]:
        if self._settings is None or callable(self._settings):
            return os.environ if self._given_environ is None else self._given_environ
        return self._settings.environ

    @property
    def _sleep(self) -> Callable[[float], Awaitable[None]]:
        return anyio.sleep if self._settings is None or callable(self._settings) else self._settings.sleep

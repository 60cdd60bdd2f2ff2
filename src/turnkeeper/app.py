"""The composition root: opens a store, builds its parts and returns the Python interface."""

import os
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar, Unpack, overload

import anyio

from turnkeeper.api import Turnkeeper
from turnkeeper.bus import Bus
from turnkeeper.core.arguments import checked_function
from turnkeeper.mint import Mint
from turnkeeper.model.notification import AnyNotification
from turnkeeper.model.refusal import Invalid
from turnkeeper.store import keys
from turnkeeper.store.engine import Engine, OnDisk
from turnkeeper.store.engines import open_engine
from turnkeeper.store.journal import Journal
from turnkeeper.store.queries import Queries
from turnkeeper.store.store import Store
from turnkeeper.workspace import paths

if TYPE_CHECKING:
    from turnkeeper.api.agent import Agent
    from turnkeeper.api.blocking import BlockingTurnkeeper
    from turnkeeper.context.component import ContextComponent
    from turnkeeper.model.answer import Answer
    from turnkeeper.model.message import ModelName
    from turnkeeper.model.prompt import Prompt
    from turnkeeper.model.session import Session
    from turnkeeper.providers.provider import Provider
    from turnkeeper.run.runtime import Settings
    from turnkeeper.tools.custom import Function
    from turnkeeper.tools.tool import AnyTool

T = TypeVar("T")


@asynccontextmanager
async def open_store(
    store: str | Engine | None = None,
    *,
    directory: str | Path | None = None,
    mint: Mint | None = None,
    settings: "Settings | Callable[[], Settings] | None" = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Turnkeeper]:
    """Open a store (``sqlite:PATH``, ``files:DIR``, ``postgresql://USER@HOST/DATABASE`` or ``memory:``; by default
    SQLite in the data directory).

    An Engine can be given instead, which is closed with the store. If ``settings`` is a function, it is called when the
    first session is run. ``environ`` is the environment of what needs no settings, by default that of the process.
    """
    async with look(store, directory=directory, mint=mint, settings=settings, environ=environ) as turnkeeper:
        raised: BaseException | None = None
        try:
            async with anyio.create_task_group() as group:
                turnkeeper.group = group
                try:
                    yield turnkeeper
                except (Exception, KeyboardInterrupt, SystemExit) as error:
                    raised = error  # Raised again outside of the task group, which would wrap it.
                finally:
                    await turnkeeper.stop()
                    group.cancel_scope.cancel()
        finally:
            await turnkeeper.end_calls()
        if raised is not None:
            raise raised


@checked_function
def open_program(
    store: str | Engine | None = None,
    *,
    directory: str | Path | None = None,
    config: Mapping[str, object] | None = None,
    tools: "Sequence[AnyTool | Function]" = (),
    components: "Sequence[ContextComponent]" = (),
    agents: "Sequence[Agent]" = (),
    provider: "Provider | None" = None,
    settings: "Settings | None" = None,
    mint: Mint | None = None,
) -> AbstractAsyncContextManager[Turnkeeper]:
    """Open a store with what a program gives: see ``turnkeeper.open``. Raises Invalid if something of it is wrong."""
    from turnkeeper.api.program import settings_of

    given = settings_of(settings, config=config, tools=tools, components=components, agents=agents, provider=provider)
    return open_store(store, directory=directory, mint=mint, settings=given)


@contextmanager
def open_blocking(opening: AbstractAsyncContextManager[Turnkeeper]) -> Iterator["BlockingTurnkeeper"]:
    """An open store for scripts without ``async``, on an event loop in a thread of its own."""
    from anyio.from_thread import start_blocking_portal

    from turnkeeper.api.blocking import BlockingTurnkeeper, OpenLoop

    with start_blocking_portal() as portal, ExitStack() as closing:
        turnkeeper = closing.enter_context(portal.wrap_async_context_manager(opening))
        loop = OpenLoop(portal)
        try:
            yield BlockingTurnkeeper(turnkeeper, loop)
        finally:
            loop.is_closed = True
            if loop.is_lost():
                closing.pop_all()  # The process that opened the store closes it.


class OpenOptions(TypedDict, total=False):
    """What ``turnkeeper.open`` takes besides the store."""

    directory: str | Path | None
    config: Mapping[str, object] | None
    tools: "Sequence[AnyTool | Function]"
    components: "Sequence[ContextComponent]"
    agents: "Sequence[Agent]"
    provider: "Provider | None"
    settings: "Settings | None"
    mint: Mint | None


class AskOptions(OpenOptions, total=False):
    """What ``turnkeeper.ask`` takes besides the prompt and the type of its answer."""

    store: str | Engine | None
    session: "str | Session | None"
    id: str | None
    agent: "str | Agent | None"
    model: "ModelName | None"
    system: str | None


@overload
async def ask(prompt: "str | Prompt", *, output_type: None = None, **given: Unpack[AskOptions]) -> "Answer[str]": ...


@overload
async def ask(prompt: "str | Prompt", *, output_type: type[T], **given: Unpack[AskOptions]) -> "Answer[T]": ...


@checked_function
async def ask(
    prompt: "str | Prompt",
    *,
    output_type: type[Any] | None = None,
    store: str | Engine | None = None,
    session: "str | Session | None" = None,
    id: str | None = None,
    agent: "str | Agent | None" = None,
    model: "ModelName | None" = None,
    system: str | None = None,
    **opening: Unpack[OpenOptions],
) -> "Answer[Any]":
    """Open a store, ask once, and close it: ``(await turnkeeper.ask("...", tools=[tide])).text``.

    The arguments are those of ``Turnkeeper.ask`` and of ``open``, with the store as ``store``: by default that of the
    user. Raises TurnFailed if there is no answer.
    """
    async with open_program(store, **opening) as turnkeeper:
        asked: Any = turnkeeper.ask  # Which type comes of which argument is said by the overloads above.
        answer: Answer[Any] = await asked(
            prompt, session=session, id=id, agent=agent, model=model, system=system, output_type=output_type
        )
        return answer


@overload
def ask_sync(prompt: "str | Prompt", *, output_type: None = None, **given: Unpack[AskOptions]) -> "Answer[str]": ...


@overload
def ask_sync(prompt: "str | Prompt", *, output_type: type[T], **given: Unpack[AskOptions]) -> "Answer[T]": ...


def ask_sync(
    prompt: "str | Prompt", *, output_type: type[Any] | None = None, **given: Unpack[AskOptions]
) -> "Answer[Any]":
    """As ``ask``, for scripts without ``async``: ``turnkeeper.ask_sync("...", tools=[tide]).text``."""
    from anyio.from_thread import start_blocking_portal

    # Not anyio.run, which a program could not call while its own event loop runs.
    with start_blocking_portal() as portal:
        return portal.call(partial(ask, prompt, output_type=output_type, **given))


@asynccontextmanager
async def look(
    store: str | Engine | None = None,
    *,
    directory: str | Path | None = None,
    mint: Mint | None = None,
    settings: "Settings | Callable[[], Settings] | None" = None,
    environ: Mapping[str, str] | None = None,
) -> AsyncIterator[Turnkeeper]:
    """Open a store without a runtime, for programs that only read and change sessions. They start faster."""
    engine = store if isinstance(store, Engine) else await _opened(store)
    bus: Bus[AnyNotification] = Bus()
    mint = mint or Mint()
    try:
        places = engine.places if isinstance(engine, OnDisk) else ()
        journal = Journal(engine, mint, bus.publish, lambda: bus.subscribers > 0, bus.publish)
        opened = Store(engine, journal, Queries(engine), mint, places)
        if engine.name == "files":
            await _adopt(opened)
        yield Turnkeeper(opened, bus, Path(directory or Path.cwd()), settings, environ)
    finally:
        bus.close()
        await engine.aclose()


async def _opened(store: str | None) -> Engine:
    """The engine of a named store. Raises Invalid for a wrong name."""
    if not isinstance(store, str | None):
        raise Invalid(f"a store is named by text such as 'sqlite:PATH', not by {store!r:.80}")
    try:
        return await open_engine(default_store() if store is None else store)
    except ValueError as error:
        raise Invalid(str(error)) from error


async def _adopt(store: Store) -> None:
    """Adopt a tree that opencode wrote: migrate it, and create logs for its sessions, which have only documents.

    The marker document is written last, so that an incomplete adoption continues when the store is opened next.
    """
    [done] = await store.engine.get([keys.ADOPTED])
    if done is not None:
        return
    from turnkeeper.interop.opencode_v0.migrate import migrate

    directory = Path(str((await store.engine.inspect())["path"]))
    report = await migrate(directory)
    if await store.engine.scan(("session",), limit=1):
        from turnkeeper.interop.opencode import import_opencode

        await import_opencode(store, directory)
    if not report.failures:
        await store.engine.put({keys.ADOPTED: keys.ADOPTED_MARK})


def default_store() -> str:
    """The default store."""
    return f"sqlite:{paths.data(os.environ) / 'turnkeeper.db'}"


__all__ = ["Turnkeeper", "ask", "ask_sync", "default_store", "look", "open_blocking", "open_program", "open_store"]
